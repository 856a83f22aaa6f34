"""Architecture gradients example by example, from one pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from nasight.compute import autocast
from nasight.data import Task
from nasight.spaces import Placed, Supernet, zeros_of


class PerExample:
    """Stands for a matrix of weights in a supernet's plain path; every example of the batch has its own copy."""

    requires_grad = True

    def __init__(self, weights: Tensor, examples: int) -> None:
        self.values = weights.detach()
        self.copies = self.values.expand(examples, *weights.shape).clone().requires_grad_()
        self.shape, self.dtype = weights.shape, weights.dtype

    def __getitem__(self, place: tuple[int, int]) -> Tensor:
        """The weight as a column that multiplies images: (examples, 1, 1, 1)."""
        return self.copies[:, place[0], place[1], None, None, None]

    def new_ones(self, *shape: int) -> Tensor:
        return self.values.new_ones(*shape)


def example_gradients(
    supernet: Supernet,
    weights: Mapping[str, Tensor],
    x: Tensor,
    y: Tensor,
    task: Task | None = None,
    precision: str = "32",
    **how: Any,
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Mean loss, logits, and for each group of weights what each example asks for: (examples, rows, options).

    The gradient of example n is that of the summed loss with respect to the weights with which n itself is mixed. This
    is XNAS's reward, the gradient at a mixture's output times the output of an operation, taken for one example.
    Batch statistics are part of the network, so a loss of one example depends on the others a little; that part is
    counted where the weights act. The mean over the examples is the gradient of the mean loss, exactly. `how` is handed
    to the supernet.
    """
    copies = {name: PerExample(value, len(y)) for name, value in weights.items()}
    path, supernet.path = supernet.path, "plain"
    try:
        stand_ins: dict[str, Any] = dict(copies)
        known = {name: zeros_of(weights, name) for name in weights}
        with autocast(x.device, precision):
            logits = supernet(x, Placed(stand_ins, known), skip_zeros=True, **how)
        logits = logits if precision == "32" else logits.float()
    finally:
        supernet.path = path
    loss = (task or Task()).loss(logits, y, reduction="sum")
    grads = torch.autograd.grad(loss, [c.copies for c in copies.values()])
    return loss.detach() / len(y), logits.detach(), dict(zip(copies, grads, strict=True))


def clipped_mean(grads: Tensor, bound: float) -> Tensor:
    """The mean over examples of gradients (examples, rows, options), each row of each scaled to entries <= bound."""
    largest = grads.abs().amax(-1, keepdim=True)
    return (grads * (bound / largest.clamp(min=bound))).mean(0)
