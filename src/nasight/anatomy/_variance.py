"""Gradient variance Var(grad f_i) = E|g_i|^2 - |E g_i|^2: norms and one mean, no gradient of a single example held."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from nasight.compute import double
from nasight.errors import RequestError
from nasight.gradients import Loss, gradient_moments

CROSS_ENTROPY: Loss = partial(cross_entropy, reduction="none")
CHUNK = 128


def gradient_variance(model: nn.Module, x: Tensor, y: Tensor, *, loss: Loss | None = None, chunk: int = CHUNK) -> float:
    """The mean of |g_i - E g|^2 over the examples, g_i the gradient of example i's loss (Cells, Section 4.2.2).

    Taken over all parameters that require a gradient, each example with the same weight. `chunk` examples are
    passed at once: forward, backward and a contraction layer by layer. For modules with other layers than linear,
    2-d convolution and batch norm, torch.func gives the gradients of one chunk, which are held: chunk x parameters
    numbers. Batch norms use their running statistics, whatever mode the model is in: with those of the batch a
    loss of one example depends on the others, and the gradient of one example is not defined. `loss(outputs, y)` gives
    one number an example; without it, cross entropy. Infinite where a gradient overflows.

    The difference is exact to the rounding of E|g_i|^2: about 1e-7 of it for a network in float32, 1e-15 in float64.

    >>> net = nn.Linear(1, 2, bias=False)
    >>> nn.init.zeros_(net.weight)  # gradients (1/2, -1/2) and (-1/2, 1/2)
    Parameter containing:
    tensor([[0.],
            [0.]], requires_grad=True)
    >>> gradient_variance(net, torch.ones(4, 1), torch.tensor([0, 1, 0, 1]))
    0.5
    """
    check_examples(x, y, chunk)
    squares, sums = 0.0, dict[str, Tensor]()
    for part_x, part_y in zip(torch.split(x, chunk), torch.split(y, chunk), strict=True):
        moments = gradient_moments(model, part_x, loss or CROSS_ENTROPY, part_y, batch_norm="eval", chunk=chunk)
        squares += float(moments.square_norms.sum())
        for name, mean in moments.mean.items():
            total = double(mean) * len(part_x)
            sums[name] = sums[name] + total if name in sums else total
    mean_square = squares / len(x)
    square_mean = sum(float((total / len(x)).square().sum()) for total in sums.values())
    value = mean_square - square_mean
    return max(0.0, value) if math.isfinite(value) else math.inf


def check_examples(x: Tensor, y: Tensor, chunk: int) -> None:
    if len(x) == 0 or len(x) != len(y):
        raise RequestError(f"examples and labels must be as many, at least one, got {len(x)} and {len(y)}")
    if chunk < 1:
        raise RequestError(f"a chunk must hold at least 1 example, got {chunk}")
