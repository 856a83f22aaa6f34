"""Where architecture parameters live, and how they move."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.spaces._base import Group

Params = Mapping[str, Tensor]


class Geometry(ABC):
    """One parameter a group of weights, its map to the simplex and its optimiser; holds settings only.

    `lr` is the published rate of a search of `steps` architecture steps. If `moves` is False there is no optimiser.
    """

    moves: ClassVar[bool] = True
    lr: float
    steps: int

    @abstractmethod
    def initial(self, groups: Iterable[Group], generator: torch.Generator) -> dict[str, nn.Parameter]:
        """The parameters at which a search starts, on the generator's device."""

    @abstractmethod
    def weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        """The simplex rows that the parameters stand for; differentiable."""

    @abstractmethod
    def log_weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        """The logarithms of `weights`, always finite; differentiable."""

    @abstractmethod
    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float) -> torch.optim.Optimizer:
        """What moves the parameters."""

    def default_lr(self, steps: int) -> float:
        """The rate for a search of so many steps: proportional to 1/sqrt(steps) (GAEA, theorem 1), `lr` at `steps`."""
        if steps < 1:
            raise RequestError(f"a search takes at least 1 architecture step, got {steps!r}")
        return self.lr * math.sqrt(self.steps / steps)
