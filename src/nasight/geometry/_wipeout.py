"""Exponentiated gradient that wipes out what can no longer win (XNAS)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from nasight.errors import RequestError, RunError
from nasight.geometry._base import Params
from nasight.geometry._mirror import MirrorDescent
from nasight.geometry._rows import map_rows
from nasight.geometry._simplex import _Weights
from nasight.spaces import Group

PUBLISHED_STEPS = 19_550
SLACK = 1e-4
"""The share by which rounding may carry a clipped gradient over its bound."""
FAINT = 1e-30
"""The weight at which an option that has not been wiped out still enters a pass."""


@dataclass(frozen=True)
class Wipeout(_Weights):
    """Weights of experts, moved by `ExpertAdvice` under gradients of at most `bound` (XNAS).

    The default learning rate is the one of the regret bound, sqrt(2 ln k / T) / bound, with k = 8 operations and T
    steps.

    Parameters
    ----------
    bound : no entry of a gradient may be larger; larger ones are clipped before they come here.
    lr, steps : the learning rate of `steps` steps under a bound of 1; see `Geometry`.
    """

    bound: float = 1.0
    lr: float = math.sqrt(2 * math.log(8) / PUBLISHED_STEPS)
    steps: int = PUBLISHED_STEPS

    def optimizer(self, params: Params, groups: Iterable[Group], *, lr: float, steps: int = 1) -> ExpertAdvice:
        rows: list[dict[str, Any]] = [
            {"params": [params[g.name]], "name": g.name, "sizes": g.sizes if g.ragged else None} for g in groups
        ]
        return ExpertAdvice(rows, lr, bound=self.bound, steps=steps)

    def default_lr(self, steps: int, gradient: float | None = None) -> float:
        return super().default_lr(steps) / self.bound


class ExpertAdvice(MirrorDescent):
    """Exponentiated gradient over `steps` steps; an option that cannot win any more has weight 0 for good.

    With no entry of a gradient larger than `bound`, a step changes the ratio of two weights by a factor of at most
    exp(2 lr bound). So an option under max * exp(-2 lr bound * steps left) stays under the present best whatever
    comes, and is wiped out (XNAS, algorithm 1); after the last step only the best are left. The weights are
    kept as logarithms, because a ratio that can still be made up for may be far below the smallest float.
    A gradient over the bound is refused.

    Parameters
    ----------
    params : tensors or parameter groups, whose rows (the last dimension) are points of the simplex.
    lr : learning rate.
    bound : the largest entry that a gradient may have.
    steps : how many steps there will be.

    >>> theta = torch.full((1, 3), 1 / 3, requires_grad=True)
    >>> advice = ExpertAdvice([theta], lr=1.0, bound=1.0, steps=3)
    >>> for _ in range(2):
    ...     theta.grad = torch.tensor([[0.0, 1.0, -1.0]])
    ...     advice.step()
    >>> theta.detach()
    tensor([[0.1192, 0.0000, 0.8808]])
    """

    def __init__(self, params: ParamsT, lr: float, *, bound: float, steps: int) -> None:
        if not bound > 0 or steps < 1:
            raise RequestError(f"bound must be greater than 0 and steps at least 1, got {bound!r} and {steps!r}")
        self.bound, self.steps = bound, steps
        super().__init__(params, lr)

    def _moved(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        if float(grad.abs().max()) > self.bound * (1 + SLACK):
            raise RunError(f"a gradient of {float(grad.abs().max()):g} is over the bound {self.bound:g} of wipe-out")
        super()._moved(p, grad, group)  # checks the start and the gradient
        left = max(self.steps - self.state[p].get("step", 0) - 1, 0)
        lowest = -2 * group["lr"] * self.bound * left

        def rows(logs: Tensor, grad: Tensor) -> Tensor:
            # What was wiped out stays at -inf.
            moved = logs - group["lr"] * grad
            moved = moved - moved.amax(-1, keepdim=True)
            # The slack is for rounding: of two equal experts neither goes.
            return torch.where(moved < lowest - 1e-5 * (1 - lowest), -math.inf, moved)

        before = self.state[p].get("logs", p.log())
        logs = self.state[p]["logs"] = map_rows(rows, group["sizes"], before, grad)
        return map_rows(_weights, group["sizes"], logs)


def _weights(logs: Tensor) -> Tensor:
    faint = torch.where(logs.isfinite(), FAINT, 0.0)
    return torch.maximum(logs.softmax(-1), faint)
