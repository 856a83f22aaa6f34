"""Materialized Jacobians: for modules whose gradients cannot be contracted, and for coupled batch norm.

torch.func takes every example through the module alone. Where it cannot, or where an example alone is not what it is in
the batch, there is one backward pass of the batch for every example.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from textwrap import shorten
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from nasight.errors import RequestError
from nasight.gradients._guard import Mismatch, SlowGradients, Sums, factors, unequal
from nasight.gradients._tape import Statistics, Targets, learned, logits_of, norms_as, recording


def materialized(
    module: nn.Module,
    x: Tensor,
    batch_norm: str,
    targets: Targets,
    chunk: int | None = None,
    y: Tensor | None = None,
) -> Iterator[Tensor]:
    """The gradients of the targets, one parameter after the other: (n, k, size).

    A module that torch.func cannot take apart, or in which examples meet, has a backward pass of the batch for every
    example and target instead, which is exact for any module, and a `SlowGradients` warning says so.

    Parameters
    ----------
    module : the network.
    x : examples, (n, ...).
    batch_norm : "train" or "eval".
    targets : from the outputs (n, classes) and the labels to the numbers that are differentiated, (k, n).
    chunk : at most this many examples are differentiated at once.
    y : labels, (n,).

    >>> net = nn.Linear(2, 1, bias=False)
    >>> [weight] = materialized(net, torch.tensor([[1.0, 2.0]]), "eval", lambda logits, y: logits.t())
    >>> weight
    tensor([[[1., 2.]]])
    """
    with recording(module, batch_norm) as tape, torch.enable_grad():
        rows = targets(logits_of(module(x)), y)
        parameters = learned(module)
        try:
            parts = _by_example(module, x, y, targets, chunk, tape.statistics)
            _check_parts(parts, rows, list(parameters.values()))
        except Exception as error:  # the batch went through the module: what fails is this way, not the module
            _say(module, error)
            gradients = row_gradients(rows, list(parameters.values()))
            sizes = [p.numel() for p in parameters.values()]
            parts = [part.transpose(0, 1) for part in torch.split(gradients, sizes, 2)]
    yield from parts


def _by_example(
    module: nn.Module, x: Tensor, y: Tensor | None, targets: Targets, chunk: int | None, statistics: Statistics
) -> list[Tensor]:
    """A pass of its own for every example, by torch.func: (n, k, size) of every parameter."""
    parameters = {name: p.detach() for name, p in learned(module).items()}
    replay = _Replay(statistics)

    def one(parameters: dict[str, Tensor], example: Tensor, label: Tensor | None) -> Tensor:
        replay.used.clear()
        out = torch.func.functional_call(module, parameters, (example[None],))
        return targets(logits_of(out), None if label is None else label[None])[:, 0]

    with norms_as(module, replay.norm), warnings.catch_warnings():
        # An operation without a rule of its own is taken in a loop: slower, and right.
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        jacobian = torch.func.vmap(
            torch.func.jacrev(one), in_dims=(None, 0, None if y is None else 0), chunk_size=chunk
        )
        found: dict[str, Tensor] = jacobian(parameters, x, y)
    return [gradient.flatten(2) if gradient.dim() > 2 else gradient[:, :, None] for gradient in found.values()]


def _check_parts(parts: list[Tensor], rows: Tensor, parameters: list[nn.Parameter]) -> None:
    """Refuse gradients of examples alone that do not add up to those of the batch (`_guard`)."""
    if not rows.requires_grad:
        return
    c = factors(rows)
    sums = torch.autograd.grad((c * rows).sum(), parameters, retain_graph=True, allow_unused=True)
    compared = list[Sums]()
    for part, total in zip(parts, sums, strict=True):
        weighted = c.t()[:, :, None] * part
        expected = torch.zeros_like(part[0, 0]) if total is None else total.flatten()
        compared.append((weighted.sum((0, 1)), expected, weighted.square().sum()))
    if unequal(compared) is not None:
        raise Mismatch("an example alone has other gradients than in the batch")


def _say(module: nn.Module, error: Exception) -> None:
    why = str(error)
    if not isinstance(error, Mismatch):  # a message may be long, or none at all
        message = shorten(why.partition("\n")[0], 80, placeholder=" ...")
        why = f"an example alone ends in {type(error).__name__}{message and ': '}{message}"
    text = f"{type(module).__name__} takes one backward pass of the batch for every example and output ({why})"
    warnings.warn(text, SlowGradients, stacklevel=4)


class _Replay:
    """Batch norms with the statistics of an earlier pass over the whole batch."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.used: dict[nn.Module, int] = {}

    def norm(self, layer: _BatchNorm, x: Tensor) -> Tensor:
        use = self.used.get(layer, 0)
        self.used[layer] = use + 1
        shape = (1, -1, *[1] * (x.dim() - 2))
        mean, inverse = (value.view(shape) for value in self.statistics[layer][use])
        out = (x - mean) * inverse
        if layer.weight is not None:
            out = out * layer.weight.view(shape) + layer.bias.view(shape)
        return out


def coupled(
    module: Callable[..., Any], x: Tensor, targets: Targets, parameters: Sequence[Tensor], y: Tensor | None = None
) -> Tensor:
    """The gradients of the targets, each through the statistics that the batch shares: (k, n, size).

    Parameters
    ----------
    module : the network, with batch norms that use the statistics of the batch; see `norms_as`.
    x : examples, (n, ...).
    targets : from the outputs (n, classes) and the labels to the numbers that are differentiated, (k, n).
    parameters : what they are differentiated with respect to.
    y : labels, (n,).
    """
    with torch.enable_grad():
        return row_gradients(targets(logits_of(module(x)), y), parameters)


def row_gradients(rows: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The gradient of each of `rows`, (k, n), by a backward pass of its own: (k, n, size)."""
    flat = rows.flatten()
    if not parameters or not flat.requires_grad:
        raise RequestError("the network's outputs depend on no parameter, so they have no kernel")
    gradients = []
    for value in flat:
        grads = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        filled = [torch.zeros_like(p) if g is None else g for g, p in zip(grads, parameters, strict=True)]
        gradients.append(torch.cat([g.flatten() for g in filled]))
    return torch.stack(gradients).view(*rows.shape, -1)


def coupled_norm(layer: _BatchNorm, x: Tensor) -> Tensor:
    """What the batch norm `layer` makes of `x` with the statistics of the batch, which gradients flow through.

    Its running statistics are left alone.
    """
    return F.batch_norm(x, None, None, layer.weight, layer.bias, True, 0.0, layer.eps)
