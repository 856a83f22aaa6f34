"""Ranks: the processes that torchrun starts for one search or training, and what they decide together.

No rank may leave while the others wait for it. So whatever ends a run (an error, a signal, a clock) is agreed on first.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from nasight.errors import RequestError, RunError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Value = TypeVar("Value")
PATIENCE = timedelta(hours=1)
"""How long a rank waits for the others; one that has died is noticed at once."""
POLL_SECONDS = 1.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_by_itself: ContextVar[bool] = ContextVar("by_itself", default=False)


def world() -> tuple[int, int]:
    """The number of this process and how many there are, as torchrun says; (0, 1) without it."""
    if _by_itself.get():
        return 0, 1
    try:
        rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        return 0, 1
    return (rank, size) if 0 <= rank < size else (0, 1)


@contextmanager
def by_itself() -> Iterator[None]:
    """Inside, this process works alone, whatever torchrun started."""
    token = _by_itself.set(True)
    try:
        yield
    finally:
        _by_itself.reset(token)


class Ranks:
    """The processes that work on one thing. This class is one process alone; its methods then cost nothing."""

    rank: int = 0
    size: int = 1

    def __repr__(self) -> str:
        return f"Ranks({self.rank} of {self.size})"

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return self.rank == 0

    def sums(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sum over all ranks of each tensor, in one message for each device that they are on."""
        return list(tensors)

    def total(self, *numbers: float) -> list[float]:
        """The sums over all ranks of plain numbers."""
        return list(numbers)

    def largest(self, *numbers: float) -> list[float]:
        """The largest over all ranks of each number."""
        return list(numbers)

    def all_values(self, value: Value) -> list[Value]:
        """What each rank has, in their order."""
        return [value]

    def of_first(self, make: Callable[[], Value]) -> Value:
        """What the first rank makes, on all of them; an error of it is raised on all."""
        return make()

    @contextmanager
    def together(self) -> Iterator[None]:
        """An error of any rank inside is raised on all of them, so that none waits for one that is gone."""
        yield


ALONE = Ranks()


class ManyRanks(Ranks):
    """Several processes, joined by `torch.distributed`."""

    def __init__(self) -> None:
        import torch.distributed as dist

        self._dist: Any = dist
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def _reduce(self, flat: Tensor, how: str) -> Tensor:
        with _heard():
            self._dist.all_reduce(flat, getattr(self._dist.ReduceOp, how))
        return flat

    def sums(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        import torch

        found: list[Any] = list(tensors)
        places: dict[torch.device, list[int]] = {}
        for number, tensor in enumerate(tensors):
            places.setdefault(tensor.device, []).append(number)
        for numbers in places.values():
            own = [tensors[number] for number in numbers]
            flat = self._reduce(torch.cat([tensor.detach().reshape(-1) for tensor in own]), "SUM")
            for number, part in zip(numbers, torch.split(flat, [tensor.numel() for tensor in own]), strict=True):
                # In the memory layout of the tensor: the order of a later sum over it decides its last bits.
                found[number] = torch.empty_like(tensors[number]).copy_(part.view(tensors[number].shape))
        return found

    def total(self, *numbers: float) -> list[float]:
        found: list[float] = self._reduce(self._numbers(numbers), "SUM").tolist()
        return found

    def largest(self, *numbers: float) -> list[float]:
        found: list[float] = self._reduce(self._numbers(numbers), "MAX").tolist()
        return found

    def _numbers(self, numbers: Sequence[float]) -> Tensor:
        import torch

        on = "cuda" if self._dist.get_backend() == "nccl" else "cpu"
        return torch.tensor(numbers, dtype=torch.float64, device=on)

    def all_values(self, value: Value) -> list[Value]:
        found: list[Any] = [None] * self.size
        with _heard():
            self._dist.all_gather_object(found, value)
        return found

    def of_first(self, make: Callable[[], Value]) -> Value:
        made: list[Any] = [None]
        with self.together():
            if self.first:
                made = [make()]
        with _heard():
            self._dist.broadcast_object_list(made, src=0)
        value: Value = made[0]
        return value

    @contextmanager
    def together(self) -> Iterator[None]:
        error: Exception | None = None
        try:
            yield
        except (RequestError, RunError, OSError) as raised:
            if getattr(raised, "everywhere", False):
                raise
            error = raised
        except Exception as raised:
            # The others end with a sentence, this one with what a programmer needs.
            self.all_values((RunError, f"rank {self.rank} failed: {raised!r}"))
            raise
        told = None if error is None else (RequestError if isinstance(error, RequestError) else RunError, str(error))
        wrong = [(rank, found) for rank, found in enumerate(self.all_values(told)) if found is not None]
        if wrong:
            rank, (kind, text) = wrong[0]
            raise everywhere(kind(text if len(wrong) == self.size or rank == 0 else f"rank {rank}: {text}")) from error


def everywhere(error: Exception) -> Exception:
    """The error, marked as one that every rank raises, so that one of them says it."""
    error.everywhere = True  # type: ignore[attr-defined]
    return error


@contextmanager
def _heard() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        # The words of the backend are about sockets; what happened is that a process is gone.
        raise everywhere(
            RunError("another rank ended before its work was done; what was saved is kept, and can be resumed")
        ) from error


def current_ranks() -> Ranks:
    """The processes that torchrun started together with this one, joined on the first call."""
    if world()[1] == 1:
        return ALONE
    import torch.distributed as dist

    if not dist.is_available():
        raise RequestError("this build of torch has no torch.distributed, so it cannot work in several ranks")
    if not dist.is_initialized():
        _join(dist)
    return ManyRanks()


def _join(dist: Any) -> None:
    import torch

    if os.environ.get("MASTER_ADDR") in LOOPBACK and os.path.exists("/sys/class/net/lo"):  # noqa: PTH110
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(name, "lo")
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    try:
        dist.init_process_group(backend, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise RunError(f"the ranks did not find each other ({first}); start them with torchrun") from error
    # A process that ends with the group open is taken for one that crashed.
    atexit.register(_leave, dist)


def _leave(dist: Any) -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def end_rank(status: int) -> None:
    """End this process if it has joined other ranks; otherwise do nothing.

    What is registered for the end runs, but the interpreter is not taken down: a thread of gloo that asks for it in
    that moment would abort a process whose work is done.
    """
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


class Poll:
    """Asks all ranks about once per second, in the same step everywhere, whether to stop or to save."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self.every, self.steps, self.start = ranks, 1, 0, time.monotonic()

    def __call__(self, *, stop: bool, due: bool) -> tuple[bool, bool]:
        """Whether any rank was asked to stop, and whether the first rank finds that it is time to save."""
        if self.ranks.size == 1:
            return stop, due
        self.steps += 1
        if self.steps < self.every:
            return False, False
        pace = (time.monotonic() - self.start) / self.steps
        first = self.ranks.first
        wanted = max(1, min(1_000, int(POLL_SECONDS / max(pace, 1e-6)))) if first else 0
        stopping, saving, every = self.ranks.largest(float(stop), float(due and first), float(wanted))
        self.every, self.steps, self.start = int(every), 0, time.monotonic()
        return bool(stopping), bool(saving)
