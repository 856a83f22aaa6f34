"""A batch in slices: each passes through the network on its own, and their gradients add up to the batch's.

How many slices there are decides what is computed, since batch norm sees a slice and not the batch. How many ranks
share them does not: one process with two slices and two ranks with one each compute the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nasight.compute._ranks import ALONE, Ranks
from nasight.errors import RequestError

if TYPE_CHECKING:
    from torch import Tensor, nn

SMALLEST = 2
"""Batch norm needs two rows."""


@dataclass(frozen=True)
class Slice:
    """Some rows of a batch, and their share of it."""

    number: int
    rows: slice
    share: float


class Slices:
    """`number` slices of every batch, of which this rank takes some."""

    def __init__(self, number: int = 1, ranks: Ranks = ALONE) -> None:
        if number < ranks.size:
            raise RequestError(
                f"every batch is cut into {number} slice{'' if number == 1 else 's'}, too few for {ranks.size} ranks"
            )
        self.number, self.ranks = number, ranks
        self.own = range(ranks.rank * number // ranks.size, (ranks.rank + 1) * number // ranks.size)

    @property
    def whole(self) -> bool:
        """Whether a batch is one slice."""
        return self.number == 1

    def check(self, batch: int) -> None:
        """Refuse batches that are too small for so many slices."""
        if batch < SMALLEST * self.number and not self.whole:
            raise RequestError(
                f"a batch of {batch} rows is too small for {self.number} slices: each needs at least {SMALLEST} rows"
            )

    def of(self, batch: int) -> Iterator[Slice]:
        """Those of a batch of so many rows that are this rank's."""
        for number in self.own:
            rows = slice(number * batch // self.number, (number + 1) * batch // self.number)
            yield Slice(number, rows, (rows.stop - rows.start) / batch)


class RunningStatistics:
    """The buffers of a network after a batch in slices: the mean over the slices of what each would have left.

    Every slice begins with the buffers of before, so that neither the order of the slices nor who takes them matters.
    """

    def __init__(self, network: nn.Module, slices: Slices) -> None:
        # Behind autograd's back: a batch norm learns nothing from its running statistics.
        buffers = [] if slices.whole else [buffer.data for buffer in network.buffers()]
        self.buffers = [buffer for buffer in buffers if buffer.is_floating_point()]
        self.counters = [buffer for buffer in buffers if not buffer.is_floating_point()]
        self.before = [buffer.clone() for buffer in self.buffers]
        self.counted = [buffer.clone() for buffer in self.counters]
        self.sums = [buffer * 0 for buffer in self.buffers]
        """Of this rank's slices; the sums over the ranks are handed to `end`."""

    def passed(self, share: float) -> None:
        """A slice of this share of the batch has passed through the network."""
        for buffer, before, total in zip(self.buffers, self.before, self.sums, strict=True):
            total.add_(buffer, alpha=share)
            buffer.copy_(before)
        self.after = [buffer.clone() for buffer in self.counters]
        for buffer, counted in zip(self.counters, self.counted, strict=True):
            buffer.copy_(counted)

    def end(self, sums: list[Tensor]) -> None:
        """All slices have passed."""
        for buffer, total in zip(self.buffers, sums, strict=True):
            buffer.copy_(total)
        # A batch counts once, in however many slices it came.
        for buffer, after in zip(self.counters, self.after if self.counters else [], strict=True):
            buffer.copy_(after)
