"""How a search keeps count without waiting: numbers stay on their device until somebody asks for them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from nasight.compute import Ranks, everywhere, is_device, to_host
from nasight.errors import RunError

Tree = TypeVar("Tree")


class Waiting(Protocol):
    """Something with numbers that are still on a device."""

    def waiting(self) -> list[Tensor]:
        """These numbers."""

    def arrived(self, values: list[Tensor]) -> None:
        """The same, on the CPU."""


def settle(counts: Iterable[Waiting], beside: Tree = None) -> Tree:  # type: ignore[assignment]
    """Read all that these wait for: one wait for the device, none where nothing is on one.

    With the same wait come the tensors `beside`, which are given back on the CPU.
    """
    asked = [(count, count.waiting()) for count in counts]
    read, near = to_host(([values for _, values in asked], beside))
    for (count, _), values in zip(asked, read, strict=True):
        count.arrived(values)
    return near


class Tally:
    """Loss and score (accuracy), summed over examples.

    What was added is summed in the same order and precision wherever it comes from: as Python's floats, on the CPU.
    """

    def __init__(self, loss: float = 0.0, right: float = 0, count: int = 0) -> None:
        self._loss, self._right, self.count = loss, right, count
        self._added = list[tuple[Tensor, Tensor, int]]()

    def add(self, loss: Tensor, scores: Tensor) -> None:
        """A mean loss, and the scores of its rows (n,), such as whether each is right."""
        self._added.append((loss.detach(), scores.detach().sum(), len(scores)))
        self.count += len(scores)
        if not is_device(loss.device):
            settle([self])

    def waiting(self) -> list[Tensor]:
        if not self._added:
            return []
        losses, right, _ = zip(*self._added, strict=True)
        return [torch.stack(losses), torch.stack(right)]

    def arrived(self, values: list[Tensor]) -> None:
        if values:
            losses, right = (value.tolist() for value in values)
            for loss, number, (_, _, examples) in zip(losses, right, self._added, strict=True):
                self._loss += loss * examples
                self._right += number
            self._added.clear()

    @property
    def loss(self) -> float:
        settle([self])
        return self._loss

    @property
    def right(self) -> float:
        settle([self])
        return self._right

    def values(self) -> list[float]:
        return [self.loss, self.right, self.count]

    def over(self, ranks: Ranks) -> Tally:
        """What all ranks have seen together."""
        if ranks.size == 1:
            return self
        loss, right, count = ranks.total(*self.values())
        return Tally(loss, right, int(count))

    def means(self, prefix: str) -> dict[str, float]:
        return {f"{prefix}_loss": self.loss / self.count, f"{prefix}_accuracy": 100.0 * self.right / self.count}


class Diverged(RunError):
    """A loss, or a weight, is not finite."""


class Watch:
    """Raises where a loss is not finite: at once on the CPU, when it is settled where the loss is on a device."""

    def __init__(self) -> None:
        self._seen = list[tuple[int, int, Tensor]]()

    def see(self, loss: Tensor, epoch: int, step: int) -> None:
        self._seen.append((epoch, step, loss.detach()))
        if not is_device(loss.device):
            settle([self])

    def waiting(self) -> list[Tensor]:
        return [torch.stack([loss for _, _, loss in self._seen])] if self._seen else []

    def arrived(self, values: list[Tensor]) -> None:
        seen, self._seen = self._seen, []
        for value in values:
            for (epoch, step, _), loss in zip(seen, value.tolist(), strict=True):
                if not math.isfinite(loss):
                    # Ranks see the sum of their losses, so all of them come here.
                    raise everywhere(Diverged(f"the loss became {loss} at step {step} of epoch {epoch}"))
