"""Norms and mean of per-example gradients, by the cheapest exact route.

Linear and convolutional layers and batch norms are contracted layer by layer (`_contract`): one forward and one
backward pass of the whole batch, no Jacobian. Any other module takes the road of torch.func, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nasight.compute import double, double_zeros
from nasight.errors import RequestError
from nasight.gradients._contract import Layer, square_norms
from nasight.gradients._jacobians import coupled, coupled_norm, materialized
from nasight.gradients._signals import signals
from nasight.gradients._tape import NotContractible, Targets, check_batch_norm, learned, norms_as

Loss = Callable[..., Tensor]
"""`loss(outputs)`, or `loss(outputs, y)` where labels are given: one number per example, (n,)."""


def per_example_square_norms(
    module: nn.Module,
    x: Tensor,
    loss: Loss | None = None,
    y: Tensor | None = None,
    *,
    batch_norm: str = "train",
    chunk: int | None = None,
) -> Tensor:
    """|g_i|^2, (n,), float64: g_i the gradient of example i's loss, or of the sum of its outputs without one.

    Parameters
    ----------
    module : the network.
    x : examples, (n, ...).
    loss : one number per example, (n,), from the outputs (n, classes) and, where given, the labels.
    y : labels, (n,).
    batch_norm : "train", "eval" or "coupled".
    chunk : at most this many examples are differentiated at once, where layers cannot be contracted.

    >>> from functools import partial
    >>> loss = partial(nn.functional.cross_entropy, reduction="none")
    >>> per_example_square_norms(nn.Linear(2, 3), torch.randn(5, 2), loss, torch.tensor([0, 1, 2, 0, 1])).shape
    torch.Size([5])
    """
    check_examples(x)
    check_batch_norm(batch_norm)
    return target_square_norms(module, x, batch_norm, _losses(loss), chunk, y)[0]


@dataclass(frozen=True, slots=True)
class GradientMoments:
    """First and second moment of the gradient over the examples of a batch."""

    square_norms: Tensor
    """|g_i|^2, (n,)."""
    mean: dict[str, Tensor]
    """The mean gradient, parameter by parameter."""

    @property
    def variance(self) -> float:
        """The mean of |g_i - mean|^2 over the examples."""
        mean = sum(float(double(g).square().sum()) for g in self.mean.values())
        return max(0.0, float(self.square_norms.mean()) - mean)


def gradient_moments(
    module: nn.Module,
    x: Tensor,
    loss: Loss | None = None,
    y: Tensor | None = None,
    *,
    batch_norm: str = "train",
    chunk: int | None = None,
) -> GradientMoments:
    """Norms of the examples' gradients and their mean, from one forward pass and two backward passes.

    The parameters are those of `per_example_square_norms`.

    >>> moments = gradient_moments(nn.Linear(2, 1, bias=False), torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    >>> moments.mean["weight"], moments.variance
    (tensor([[1., 1.]]), 1.0)
    """
    check_examples(x)
    check_batch_norm(batch_norm)
    parameters = learned(module)
    sums: list[Tensor | None]
    if batch_norm == "coupled":
        rows = coupled_rows(module, x, _losses(loss), y)[0]
        norms = double(rows).square().sum(1)
        sums = list(_split(rows.sum(0), list(parameters.values())))
    else:
        try:
            (found,) = signals(module, x, batch_norm, _losses(loss), y, list(parameters.values()))
            norms, sums = _norms_of(found.layers, x), found.parameters
        except NotContractible:
            parts = [part[:, 0] for part in materialized(module, x, batch_norm, _losses(loss), chunk, y)]
            norms = torch.stack([double(part).square().sum(1) for part in parts]).sum(0)
            sums = [part.sum(0).view_as(p) for part, p in zip(parts, parameters.values(), strict=True)]
    means = {
        name: torch.zeros_like(p) if total is None else total / len(x)
        for (name, p), total in zip(parameters.items(), sums, strict=True)
    }
    return GradientMoments(norms, means)


def target_square_norms(
    module: nn.Module, x: Tensor, batch_norm: str, targets: Targets, chunk: int | None, y: Tensor | None = None
) -> Tensor:
    """|g_i|^2 of every row of targets, (k, n), float64.

    Parameters
    ----------
    module, x, y, batch_norm, chunk : as in `per_example_square_norms`.
    targets : from the outputs (n, classes) and the labels to the numbers that are differentiated, (k, n).
    """
    if batch_norm == "coupled":
        return double(coupled_rows(module, x, targets, y)).square().sum(2)
    try:
        passes = signals(module, x, batch_norm, targets, y)
        return torch.stack([_norms_of(found.layers, x) for found in passes])
    except NotContractible:
        parts = materialized(module, x, batch_norm, targets, chunk, y)
        return torch.stack([double(part).square().sum(2).t() for part in parts]).sum(0)


def _norms_of(layers: list[Layer], x: Tensor) -> Tensor:
    total = double_zeros(len(x), like=x)
    for layer in layers:
        total += square_norms(layer)
    return total


def coupled_rows(module: nn.Module, x: Tensor, targets: Targets, y: Tensor | None = None) -> Tensor:
    """The gradients of the targets, each through the statistics of the batch: (k, n, size).

    Parameters
    ----------
    module : the network; all its parameters that require a gradient count.
    x : examples, (n, ...).
    targets : from the outputs (n, classes) and the labels to the numbers that are differentiated, (k, n).
    y : labels, (n,).
    """
    with norms_as(module, coupled_norm):
        return coupled(module, x, targets, list(learned(module).values()), y)


def _split(flat: Tensor, like: list[nn.Parameter]) -> list[Tensor]:
    parts = torch.split(flat, [p.numel() for p in like])
    return [part.view_as(p) for part, p in zip(parts, like, strict=True)]


def _sum_of_outputs(logits: Tensor, y: Tensor | None) -> Tensor:
    return logits.sum(1)[None]


def _losses(loss: Loss | None) -> Targets:
    if loss is None:
        return _sum_of_outputs

    def targets(logits: Tensor, y: Tensor | None) -> Tensor:
        values = loss(logits) if y is None else loss(logits, y)
        if values.shape != (len(logits),):
            raise RequestError(
                f"a loss must give one number for each of {len(logits)} examples, got shape {tuple(values.shape)}"
            )
        return values[None]

    return targets


def check_examples(x: Tensor) -> None:
    """Refuse what is not rows (n, ...), at least one of them."""
    if x.dim() < 2 or len(x) == 0:
        raise RequestError(f"examples must be rows (n, ...), at least one of them, got shape {tuple(x.shape)}")
