"""Exponentiated gradient, the architecture update of GAEA."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from nasight.errors import RequestError
from nasight.geometry._mirror import ENTROPY, MirrorDescent
from nasight.geometry._potentials import least_alive

LIFTS = ("before", "after", "between")


def check_lift(lift: str) -> None:
    """Refuse a word that does not say when small weights are lifted."""
    if lift not in LIFTS:
        raise RequestError(f"lift must be one of {', '.join(LIFTS)}, got {lift!r}")


class ExponentiatedGradient(MirrorDescent):
    """theta <- theta * exp(-lr * grad), lifted to `floor`, divided by the sum of its row (GAEA, eq. 8).

    The floor is one of theta * exp(-lr * grad), as in GAEA's released code. So where a row is lifted, a constant added
    to its gradient counts, which otherwise means nothing on the simplex. A weight that is lifted to f in a row of sum s
    is f / s after the division.

    Parameters
    ----------
    params : tensors or parameter groups, whose rows (the last dimension) are points of the simplex.
    lr : learning rate.
    floor : what a weight is lifted to; 0 for nothing.
    pull : as in `MirrorDescent`.
    lift : when small weights are lifted: "before" the division (GAEA-DARTS's code), "after" it (GAEA-GDAS's code), so
        that a row may sum to a little more than 1, or "between" two divisions, as `MirrorDescent` does.

    >>> import torch
    >>> theta = torch.full((1, 2), 0.5, requires_grad=True)
    >>> optimizer = ExponentiatedGradient([theta], lr=1.0)
    >>> theta.grad = torch.tensor([[0.0, 1.0]])
    >>> optimizer.step()
    >>> theta.detach()
    tensor([[0.7311, 0.2689]])
    """

    def __init__(
        self, params: ParamsT, lr: float, floor: float = 1e-5, pull: float = 0.0, lift: str = "before"
    ) -> None:
        check_lift(lift)
        self.lift = lift
        super().__init__(params, lr, ENTROPY, floor, pull)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "lift": self.lift}

    def _row_step(self, x: Tensor, grad: Tensor, lr: float, floor: float) -> Tensor:
        if self.lift == "after":
            return ENTROPY.mirror_step(x, grad, lr).clamp(min=floor)
        if self.lift == "between" or not floor:
            return super()._row_step(x, grad, lr, floor)
        return _lifted_first(x, grad, lr, floor)


def _lifted_first(x: Tensor, grad: Tensor, lr: float, floor: float) -> Tensor:
    """max(x * exp(-lr * grad), floor) over the sum of its row; in logarithms, so that no gradient overflows.

    All logarithms of a row are shifted by the same number, that of the floor too, so nothing is changed by it.
    """
    alive = x > 0
    least = least_alive(grad, alive)
    logs = torch.where(alive, x.log() - lr * (grad - least), -math.inf)
    # No logarithm is over 0, so a floor over 0 lifts them all, as one of 0 does.
    return torch.maximum(logs, (math.log(floor) + lr * least).clamp(max=0)).softmax(-1)
