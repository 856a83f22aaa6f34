"""Where tensors live: which device, how they get there, and how values come back without waiting more than once.

A device computes while the program goes on. Reading a number back, or a copy that blocks, waits until all that was
asked for is done. So copies to a device never block here, and values come back many at a time, with one wait.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from nasight.errors import RequestError

# torch is imported where it is needed: work that needs none starts faster without it.
if TYPE_CHECKING:
    import torch

Tree = TypeVar("Tree")
"""A tensor, or lists, tuples and mappings of trees; anything else in one is left as it is."""
ACCELERATORS = ("cuda", "mps", "xpu")
NO_DOUBLE = ("mps",)
"""Devices without float64."""
DEVICES = "auto, cpu, cuda, cuda:N or mps"


def choose_device(name: str | torch.device = "auto") -> torch.device:
    """The device of this name; "auto" is the best that is here.

    A device that is not here is refused.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    import torch

    if name == "auto":
        return _best()
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise RequestError(f"device must be one of {DEVICES}, got {str(name)!r}") from None
    if device.type == "cpu":
        return torch.device("cpu")
    number = _number(device.type)
    if not number:
        raise RequestError(f"device {str(name)!r} is not on this machine: {_here()}")
    if device.index is not None and device.index >= number:
        raise RequestError(f"there is no device {str(name)!r}: {device.type} has {number} here, counted from 0")
    return torch.device(device.type, _own(device.type) if several_ranks() else device.index or 0)


def _best() -> torch.device:
    import torch

    kinds: tuple[str, ...] = ACCELERATORS
    if (other := torch.accelerator.current_accelerator()) is not None and other.type not in kinds:
        kinds = (*kinds, other.type)
    for kind in kinds:
        if _number(kind):
            return torch.device(kind, _own(kind))
    return torch.device("cpu")


def several_ranks() -> bool:
    """Whether torchrun started this process beside others: then each has the device of its number on its machine."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def _own(kind: str) -> int:
    return int(os.environ.get("LOCAL_RANK", "0")) % _number(kind) if several_ranks() else 0


def _number(kind: str) -> int:
    """How many devices of a kind there are."""
    import torch

    module = getattr(torch, kind, None)
    if module is None or not hasattr(module, "is_available") or not module.is_available():
        return 0
    return int(module.device_count())


def _here() -> str:
    best = _best()
    return "torch sees the CPU alone" if best.type == "cpu" else f"torch sees {best.type} and the CPU"


def is_device(device: torch.device) -> bool:
    """Whether it is another one than the CPU."""
    return device.type != "cpu"


def device_count(device: torch.device) -> int:
    """How many devices of its kind there are; 1 for the CPU."""
    return _number(device.type) if is_device(device) else 1


def has_double(device: torch.device) -> bool:
    """Whether it computes in float64; what needs it stays on the CPU otherwise (MPS has none)."""
    return device.type not in NO_DOUBLE


def moved_note(then: str, now: str) -> str | None:
    """What to tell a user whose work is resumed on another kind of device than it started on; None: the same kind."""
    kinds = [name.split(":")[0] for name in (then, now)]
    if kinds[0] == kinds[1]:
        return None
    return (
        f"started on {kinds[0]}, resumed on {kinds[1]}: random numbers are the same, but rounding differs, so the "
        "result is not bit for bit the same as on one device"
    )


def resumed_device(then: str, asked: str | None) -> tuple[str, str | None]:
    """Where work goes on that began on `then`, and what to say of a change; None: nothing.

    A device that is not here is replaced by the best there is, unless it was asked for.
    """
    try:
        chosen = str(choose_device(asked or then))
    except RequestError:
        if asked is not None:
            raise
        chosen = str(choose_device("auto"))
    return chosen, moved_note(then, chosen)


def to_device(values: Tree, device: torch.device) -> Tree:
    """The values on a device; the program does not wait for the copies."""
    moved: Tree = _mapped(values, lambda tensor: tensor.to(device, non_blocking=True))
    return moved


def to_host(values: Tree) -> Tree:
    """The values on the CPU; one wait for all of them.

    >>> import torch
    >>> to_host({"a": [torch.ones(2), 3]})
    {'a': [tensor([1., 1.]), 3]}
    """
    far = set["torch.device"]()

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if not is_device(tensor.device):
            return tensor
        far.add(tensor.device)
        return tensor.detach().to("cpu", non_blocking=True)

    found: Tree = _mapped(values, copy)
    for device in far:
        synchronize(device)
    return found


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all that it was asked for."""
    import torch

    if is_device(device):
        torch.get_device_module(device).synchronize()


def _mapped(values: Any, function: Any) -> Any:
    from torch import Tensor

    if isinstance(values, Tensor):
        return function(values)
    if isinstance(values, Mapping):
        return {key: _mapped(value, function) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        mapped = [_mapped(value, function) for value in values]
        return type(values)(*mapped) if hasattr(values, "_fields") else type(values)(mapped)
    return values


def fits(size: int, device: torch.device, share: float = 0.5) -> bool:
    """Whether so many bytes are at most a share of the memory that is free on a device.

    Where a device does not say how much is free, a gigabyte is taken for what fits.
    """
    import torch

    if not is_device(device):
        return True
    module = torch.get_device_module(device)
    if not hasattr(module, "mem_get_info"):
        return size <= 1 << 30
    free, _ = module.mem_get_info(device)
    return bool(size <= share * free)


def double(tensor: torch.Tensor) -> torch.Tensor:
    """In float64: on its device, or on the CPU where the device has none (MPS)."""
    return tensor.double() if has_double(tensor.device) else tensor.cpu().double()


def double_zeros(*shape: int, like: torch.Tensor) -> torch.Tensor:
    """Zeros to add what `double` gives to."""
    import torch

    return torch.zeros(shape, dtype=torch.float64, device=like.device if has_double(like.device) else "cpu")
