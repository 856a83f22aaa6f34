"""A device that is none: tensors in CPU memory that behave as if they lay on a GPU.

It computes real numbers, refuses what CUDA refuses, and counts what makes a program wait for a GPU. The backend that
torch lends for it is experimental, so it stays in the tests.

- Refused: a CPU tensor with dimensions beside a device tensor, a CPU generator in an operation here, `.numpy()`.
- `.item()`, `.tolist()`, `bool()`, `nonzero` and whatever else has a shape that depends on values, `unique`, blocking
  copies in either direction: counted as synchronizations, by the file and line of the library that asked.
- A copy that does not block is there only after `torch.fakegpu.synchronize()`: until then it is filled with NaN.
- float64 can be refused too, as MPS does.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils import backend_registration

NAME = "fakegpu"
aten = torch.ops.aten
SYNCHRONIZING = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "unique_dim",
    "_unique2",
    "unique_consecutive",
    "equal",
    "is_nonzero",
    "linalg_eigh",  # CUDA's solvers report through the host
    "_linalg_eigh",
    "_linalg_svd",
}
RANDOM = {
    "bernoulli_",
    "bernoulli",
    "exponential_",
    "multinomial",
    "native_dropout",
    "normal",
    "normal_",
    "normal_functional",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random_",
    "randperm",
    "uniform_",
}
MIXES = {"copy_", "_to_copy", "index", "index_put_", "_index_put_impl_", "_unsafe_index", "index_put"}
"""Operations that take tensors of two devices; indices on the CPU are copied, which CUDA allows and waits for."""


class Ledger:
    """What the device was asked for while `counting`."""

    def __init__(self) -> None:
        self.waits = Counter[str]()
        """Place in the library -> synchronizations."""
        self.kinds = Counter[tuple[str, str]]()
        self.to_device = self.to_host = self.operations = 0
        """Bytes copied, and operations run."""

    @property
    def synchronizations(self) -> int:
        return self.waits.total()

    def wait(self, kind: str) -> None:
        place = _place()
        self.waits[place] += 1
        self.kinds[place, kind] += 1


class _State:
    available = False
    double = True
    ledger: Ledger | None = None
    pending: ClassVar[list[tuple[Tensor, Tensor]]] = []
    generator = torch.Generator().manual_seed(0)


def _place() -> str:
    """The innermost line of the library on the stack; of the tests, if none is."""
    frame, test = sys._getframe(2), "?"
    while frame is not None:
        name = frame.f_code.co_filename
        if "/nasight/" in name and "/site-packages/" not in name and not name.endswith("compute/_device.py"):
            return f"{name.split('/nasight/', 1)[1]}:{frame.f_lineno}"
        if test == "?" and "/tests/" in name and not name.endswith("fakegpu.py"):
            test = f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return test


def _wait(kind: str) -> None:
    _arrive()
    if _State.ledger is not None:
        _State.ledger.wait(kind)


def _arrive() -> None:
    """Copies that were begun are there now."""
    for target, source in _State.pending:
        target.copy_(source)
    _State.pending.clear()


class FakeTensor(Tensor):
    """Lies on the device; `raw` is its memory."""

    raw: Tensor

    @staticmethod
    def __new__(cls, raw: Tensor) -> FakeTensor:
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=f"{NAME}:0",
        )
        made.raw = raw
        return made  # type: ignore[no-any-return]

    @property
    def data(self) -> Any:
        return self.detach()

    @data.setter
    def data(self, other: FakeTensor) -> None:
        self.raw = other.raw

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"can't convert {NAME} device type tensor to numpy. Use Tensor.cpu() to copy it first.")

    __array__ = numpy

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"FakeTensor({self.raw!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            made = FakeTensor(self.raw.clone())
            made.requires_grad_(self.requires_grad)
            if isinstance(self, torch.nn.Parameter):
                made._is_param = True
            memo[id(self)] = made
        return memo[id(self)]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


def _run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    name = func.overloadpacket.__name__
    if _State.ledger is not None:
        _State.ledger.operations += 1
    if name == "_to_copy":
        return _to_copy(*args, **kwargs)
    if name == "copy_":
        return _copy(*args, **kwargs)
    if name in ("_pin_memory", "pin_memory", "is_pinned"):
        raise RuntimeError(f"{name} is for CPU tensors")
    _refuse(name, args, kwargs)
    if name in SYNCHRONIZING or (name in ("index", "index_put_", "index_put") and _by_mask(args[1])):
        _wait(name)
    wrappers: dict[int, FakeTensor] = {}

    def unwrap(value: Any) -> Any:
        if isinstance(value, FakeTensor):
            wrappers[id(value.raw)] = value
            return value.raw
        if isinstance(value, (list, tuple)):
            return type(value)(map(unwrap, value))
        return value

    given = {key: unwrap(value) for key, value in kwargs.items()}
    if isinstance(given.get("device"), torch.device):
        given["device"] = torch.device("cpu")
    if name in RANDOM and given.get("generator") is None:
        given["generator"] = _State.generator
        given = {k: v for k, v in given.items() if name not in ("native_dropout",) or k != "generator"}
    out = func(*map(unwrap, args), **given)
    if name == "_local_scalar_dense":
        return out

    def wrap(value: Any) -> Any:
        if isinstance(value, Tensor):
            _check_dtype(value)
            return wrappers.get(id(value)) if id(value) in wrappers else FakeTensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(map(wrap, value))
        return value

    return wrap(out)


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values.values() if isinstance(values, Mapping) else values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _refuse(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    for tensor in (*_tensors(args), *_tensors(kwargs)):
        if not isinstance(tensor, FakeTensor) and tensor.dim():
            if name in MIXES and tensor.dtype in (torch.int64, torch.int32, torch.bool, torch.uint8):
                _count_bytes("to_device", tensor)
                _wait(f"{name} by indices of the CPU")
                continue
            raise RuntimeError(
                f"{name}: expected all tensors on the same device, but found at least two, {NAME}:0 and cpu"
            )
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Generator):
            raise RuntimeError(f"{name}: expected a {NAME} device type for generator but found {value.device.type}")


def _by_mask(indices: Sequence[Any]) -> bool:
    return any(isinstance(i, Tensor) and i.dtype in (torch.bool, torch.uint8) for i in indices)


def _check_dtype(tensor: Tensor) -> None:
    if tensor.dtype == torch.float64 and not _State.double:
        raise TypeError(f"cannot convert a tensor to float64: {NAME} does not support it")


def _count_bytes(way: str, tensor: Tensor) -> None:
    if _State.ledger is not None:
        setattr(_State.ledger, way, getattr(_State.ledger, way) + tensor.numel() * tensor.element_size())


def _to_copy(source: Tensor, *, device: torch.device | None = None, non_blocking: bool = False, **how: Any) -> Tensor:
    how.pop("pin_memory", None)
    how.pop("layout", None)
    target = source.device if device is None else torch.device(device)
    raw = source.raw if isinstance(source, FakeTensor) else source
    made = aten._to_copy.default(raw, **how)
    if target.type == NAME:
        if not isinstance(source, FakeTensor):
            _count_bytes("to_device", made)
            if not non_blocking:
                _wait("copy to the device")
        _check_dtype(made)
        return FakeTensor(made)
    assert isinstance(source, FakeTensor)
    _count_bytes("to_host", made)
    return _to_host(made, torch.empty_like(made), non_blocking)


def _to_host(made: Tensor, target: Tensor, non_blocking: bool) -> Tensor:
    if not non_blocking:
        _wait("copy to the host")
        return target.copy_(made)
    _State.pending.append((target, made))
    return target.fill_(float("nan")) if target.is_floating_point() else target.fill_(0)


def _copy(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    if isinstance(target, FakeTensor):
        if not isinstance(source, FakeTensor) and source.dim():
            _count_bytes("to_device", source)
            if not non_blocking:
                _wait("copy to the device")
        target.raw.copy_(source.raw if isinstance(source, FakeTensor) else source)
        return target
    assert isinstance(source, FakeTensor)
    _count_bytes("to_host", source.raw)
    return _to_host(source.raw.clone(), target, non_blocking)


class _Memory:
    free = 1 << 34


MEMORY = _Memory()
"""How much of it the device says it has."""


class _Module:
    """`torch.fakegpu`."""

    @staticmethod
    def is_initialized() -> bool:
        return _State.available

    @staticmethod
    def is_available() -> bool:
        return _State.available

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def device_count() -> int:
        return 1 if _State.available else 0

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def manual_seed(seed: int) -> None:
        _State.generator.manual_seed(seed)

    manual_seed_all = manual_seed

    @staticmethod
    def get_rng_state(device: Any = None) -> Tensor:
        return _State.generator.get_state()

    @staticmethod
    def set_rng_state(state: Tensor, device: Any = None) -> None:
        _State.generator.set_state(state)

    @staticmethod
    def synchronize(device: Any = None) -> None:
        _wait("synchronize")

    @staticmethod
    def mem_get_info(device: Any = None) -> tuple[int, int]:
        return MEMORY.free, MEMORY.free

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


class _Hook(torch._C._acc.PrivateUse1Hooks):  # type: ignore[name-defined,misc]
    def is_available(self) -> bool:
        return _State.available

    def has_primary_context(self, index: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


_kept: list[torch.library.Library] = []


def install() -> None:
    """Make the device known to torch, once per process; it is there only `while present`."""
    if _kept:
        return
    backend_registration._setup_privateuseone_for_python_backend(NAME, _Module(), _Hook())
    library = torch.library.Library("aten", "IMPL")
    # All other tensors are made from these, or from tensors of the device.
    for operation in (aten.empty.memory_format, aten.empty_strided.default):
        library.impl(operation, partial(_empty, operation), "PrivateUse1")
    # `torch.tensor(..., device=...)` and lists as indices come here, beneath all wrappers.
    library.impl(aten._copy_from.default, lambda source, target, wait=False: _copy(target, source, wait), "PrivateUse1")
    _kept.append(library)


def _empty(operation: Any, *args: Any, **kwargs: Any) -> FakeTensor:
    made = operation(*args, **{**kwargs, "device": torch.device("cpu"), "pin_memory": False})
    _check_dtype(made)
    return FakeTensor(made)


@contextmanager
def present(*, double: bool = True) -> Iterator[torch.device]:
    """The device, there inside; without `double` it has no float64."""
    install()
    _State.available, _State.double = True, double
    try:
        # In the calling thread, so that a wait in a backward pass is seen at the line that asked for the pass.
        with torch.autograd.set_multithreading_enabled(False):
            yield torch.device(NAME, 0)
    finally:
        _State.available, _State.double = False, True
        _State.pending.clear()


@contextmanager
def counting() -> Iterator[Ledger]:
    """Counts inside."""
    before, _State.ledger = _State.ledger, Ledger()
    try:
        yield _State.ledger
    finally:
        _State.ledger = before
