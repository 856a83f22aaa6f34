"""Parameters that are weights: the simplex itself (GAEA), and its center (no architecture parameters)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.geometry._base import Geometry, Params
from nasight.geometry._exponentiated import ExponentiatedGradient, check_lift
from nasight.geometry._mirror import ENTROPY, MirrorDescent
from nasight.geometry._potentials import Euclidean, Potential
from nasight.geometry._rows import map_rows
from nasight.spaces import Group

POTENTIALS: Mapping[str, Potential] = {"entropy": ENTROPY, "euclidean": Euclidean()}


class _Weights(Geometry):
    """The parameters are the weights, uniform at the start."""

    def initial(self, groups: Iterable[Group], generator: torch.Generator) -> dict[str, nn.Parameter]:
        return {g.name: nn.Parameter(g.uniform(device=generator.device), requires_grad=self.moves) for g in groups}

    def weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        return {g.name: params[g.name] for g in groups}

    def log_weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        # The smallest float in place of 0: its logarithm and the gradient there are finite.
        found = self.weights(params, groups := tuple(groups))
        return {g.name: found[g.name].clamp(min=torch.finfo(found[g.name].dtype).tiny).log() for g in groups}


@dataclass(frozen=True)
class Simplex(_Weights):
    """Mirror descent on the simplex; with the entropy, exponentiated gradient (GAEA).

    The learning rate 0.1 is that of GAEA's NAS-Bench-201 search with empirical risk minimization: 25 epochs of 50,000
    images, 64 per step.

    Parameters
    ----------
    potential : "entropy", "euclidean" or a `Potential` of your own.
    lr, steps, gradient : the published learning rate, the steps of the search that it is for, and the size of a
        gradient there; see `Geometry`.
    floor : what a weight is lifted to in every step.
    pull : how much of the relative entropy to uniform weights is added to what is minimized.
    lift : with the entropy, when small weights are lifted; see `ExponentiatedGradient`.
    edge_floor : what the weights of edges are lifted to; None: as all others.
    """

    potential: str | Potential = "entropy"
    lr: float = 0.1
    steps: int = 19_531
    floor: float = 1e-5
    gradient: float | None = 0.29
    pull: float = 0.0
    lift: str = "before"
    edge_floor: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.potential, Potential) and self.potential not in POTENTIALS:
            raise RequestError(f"potential {self.potential!r} is not one of {', '.join(POTENTIALS)} nor a Potential")
        check_lift(self.lift)

    def weights(self, params: Params, groups: Iterable[Group]) -> dict[str, Tensor]:
        if self.lift != "after":
            return super().weights(params, groups)
        # The parameters that were lifted last sum to a little more than 1.
        return {g.name: map_rows(_divided, g.sizes if g.ragged else None, params[g.name]) for g in groups}

    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float, steps: int = 1) -> MirrorDescent:
        """`MirrorDescent`; with the entropy `ExponentiatedGradient`, which is one."""
        potential = self.potential if isinstance(self.potential, Potential) else POTENTIALS[self.potential]
        rows: list[dict[str, Any]] = [
            {
                "params": [params[g.name]],
                "name": g.name,
                "sizes": g.sizes if g.ragged else None,
                "floor": self.floor if g.exclusive or self.edge_floor is None else self.edge_floor,
            }
            for g in groups
        ]
        if potential == ENTROPY:
            return ExponentiatedGradient(rows, lr, self.floor, self.pull, self.lift)
        return MirrorDescent(rows, lr, potential, self.floor, self.pull)


def _divided(x: Tensor) -> Tensor:
    return x / x.sum(-1, keepdim=True)


@dataclass(frozen=True)
class Fixed(_Weights):
    """Uniform weights that never move: what is left of a search by random sampling. It has no optimizer."""

    moves: ClassVar[bool] = False
    lr: float = field(default=0.0, init=False)
    steps: int = field(default=1, init=False)

    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float, steps: int = 1) -> torch.optim.Optimizer:
        raise RequestError("fixed architecture weights have no optimizer: ask `moves` of a geometry first")
