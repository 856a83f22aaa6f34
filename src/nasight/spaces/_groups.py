"""What is decided, and the tensors of weights that stand for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Decision:
    """A question with a finite number of answers."""

    name: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """One tensor of architecture weights: a stack of simplices, one per row.

    A regular group (every row has the same options) is a tensor (rows, options). A ragged one, such as the
    weights of the edges into each node of a cell, is flat: its rows stand one behind the other, `sizes` long.
    Of an `exclusive` row one option is chosen in the end; of any other row (edges) several are kept.
    """

    name: str
    rows: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    exclusive: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(o) for o in self.options)

    @property
    def ragged(self) -> bool:
        return len(set(self.options)) > 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(self.sizes),) if self.ragged else (len(self.rows), self.sizes[0])

    def split(self, weights: Tensor) -> list[Tensor]:
        """The simplices of the group, one tensor per row."""
        return list(torch.split(weights, list(self.sizes))) if self.ragged else list(weights.unbind(0))

    def join(self, rows: Sequence[Tensor]) -> Tensor:
        """The tensor of the group from its rows: the way back from `split`."""
        return torch.cat(list(rows)).reshape(self.shape)

    def uniform(self, **kwargs: Any) -> Tensor:
        """The center of every simplex."""
        return self.join([torch.full((size,), 1.0 / size, **kwargs) for size in self.sizes])
