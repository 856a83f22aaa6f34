"""Materialized Jacobians: for modules whose gradients cannot be contracted, and for coupled batch norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from nasight.errors import RequestError
from nasight.gradients._signals import Statistics, Targets, learned, logits_of, norms_as, recording


def materialized(
    module: nn.Module,
    x: Tensor,
    batch_norm: str,
    targets: Targets,
    chunk: int | None = None,
    y: Tensor | None = None,
) -> Iterator[Tensor]:
    """The gradients of the targets, one parameter after the other: (n, k, size).

    Parameters
    ----------
    module : the network.
    x : examples, (n, ...); each has a pass of its own (torch.func).
    batch_norm : "train" or "eval".
    targets : from the outputs (n, classes) and the labels to the numbers that are differentiated, (k, n).
    chunk : at most this many examples are differentiated at once.
    y : labels, (n,).

    >>> net = nn.Linear(2, 1, bias=False)
    >>> [weight] = materialized(net, torch.tensor([[1.0, 2.0]]), "eval", lambda logits, y: logits.t())
    >>> weight
    tensor([[[1., 2.]]])
    """
    with recording(module, batch_norm) as tape, torch.no_grad():
        module(x)
    parameters = {name: p.detach() for name, p in learned(module).items()}
    replay = _Replay(tape.statistics)

    def one(parameters: dict[str, Tensor], example: Tensor, label: Tensor | None) -> Tensor:
        replay.used.clear()
        out = torch.func.functional_call(module, parameters, (example[None],))
        return targets(logits_of(out), None if label is None else label[None])[:, 0]

    with norms_as(module, replay.norm):
        jacobian = torch.func.vmap(
            torch.func.jacrev(one), in_dims=(None, 0, None if y is None else 0), chunk_size=chunk
        )
        found: dict[str, Tensor] = jacobian(parameters, x, y)
    for gradient in found.values():  # (n, k, ...)
        yield gradient.flatten(2) if gradient.dim() > 2 else gradient[:, :, None]


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
        rows = targets(logits_of(module(x)), y)
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
