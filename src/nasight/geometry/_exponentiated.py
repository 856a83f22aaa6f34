"""Exponentiated gradient, the architecture update of GAEA."""

from __future__ import annotations

from torch.optim.optimizer import ParamsT

from nasight.geometry._mirror import ENTROPY, MirrorDescent


class ExponentiatedGradient(MirrorDescent):
    """theta <- theta * exp(-lr * grad), divided by the sum of its row (GAEA, eq. 8), no weight far under `floor`.

    The floor is taken after the division (and the row divided again), because a floor on theta * exp(-lr * grad) itself
    would depend on a constant added to the gradient, which means nothing on the simplex. A weight is therefore never
    less than floor / (1 + k * floor) in a row of k.

    Parameters
    ----------
    params : tensors or parameter groups, whose rows (the last dimension) are points of the simplex.
    lr : learning rate.
    floor : what a weight is lifted to.

    >>> import torch
    >>> theta = torch.full((1, 2), 0.5, requires_grad=True)
    >>> optimizer = ExponentiatedGradient([theta], lr=1.0)
    >>> theta.grad = torch.tensor([[0.0, 1.0]])
    >>> optimizer.step()
    >>> theta.detach()
    tensor([[0.7311, 0.2689]])
    """

    def __init__(self, params: ParamsT, lr: float, floor: float = 1e-5) -> None:
        super().__init__(params, lr, ENTROPY, floor)
