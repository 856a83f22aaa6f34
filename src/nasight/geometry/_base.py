"""Where architecture parameters live, and how they move."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.spaces import Group

Params = Mapping[str, Tensor]


class Geometry(ABC):
    """One parameter per group of weights, its map to the simplex and its optimizer; holds settings only.

    A geometry of your own sets `lr` and `steps` and defines `initial`, `weights`, `log_weights` and `optimizer`.
    `lr` is the published learning rate of a search of `steps` architecture steps; `gradient` is the size of a gradient
    there (the largest entry after each row's mean is taken off), None where the update does not depend on it, as
    Adam's. If `moves` is False there is no optimizer. `groups` are always those of the space that is searched.
    """

    moves: ClassVar[bool] = True
    lr: float
    steps: int
    gradient: float | None = None

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
    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float, steps: int = 1) -> torch.optim.Optimizer:
        """What moves the parameters, in a search of `steps` architecture steps with the learning rate `lr`."""

    def default_lr(self, steps: int, gradient: float | None = None) -> float:
        """The learning rate for a search of this many steps; the published `lr` at the published `steps`.

        Proportional to 1/(G sqrt(T)), as theory has it (GAEA, theorem 1): T steps, and G the size of a gradient. The
        second part needs the measured `gradient` and a geometry that knows the published setting's own.

        >>> from nasight.geometry import Simplex
        >>> Simplex(lr=0.1, steps=100).default_lr(400)
        0.05
        """
        if steps < 1:
            raise RequestError(f"a search takes at least 1 architecture step, got {steps!r}")
        scale = 1.0 if gradient is None or self.gradient is None else self.gradient / max(gradient, 1e-12)
        return self.lr * math.sqrt(self.steps / steps) * scale

    def least_lr(self, steps: int) -> float:
        """The published learning rate, or what theory has for a longer search: no default is smaller.

        Gradients grow in a search, so a rate from those after a warm-up falls below the published one in long searches.

        >>> from nasight.geometry import Simplex
        >>> Simplex(lr=0.1, steps=100).least_lr(25), Simplex(lr=0.1, steps=100).least_lr(400)
        (0.1, 0.05)
        """
        return self.lr * min(1.0, math.sqrt(self.steps / steps))
