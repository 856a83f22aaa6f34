"""What enters every layer of a network and what comes back to it: one forward and one backward pass.

The gradient of an example with respect to a layer's weights is a contraction of the two, so that Gram matrices and
norms of such gradients need no Jacobian. It holds where examples do not meet on their way and only a layer itself uses
its parameters, which a second backward pass checks (`_guard`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nasight.gradients._guard import LayerGuard, Mismatch, SlowGradients, factors
from nasight.gradients._tape import LAYERS, LayerCall, NotContractible, Targets, learned, logits_of, recording


def _check_layers(module: nn.Module) -> None:
    """Refuse parameters outside the layers whose gradients are contracted, and shared ones."""
    owner: dict[Tensor, nn.Module] = {}
    for part in module.modules():
        for name, p in part.named_parameters(recurse=False):
            if not p.requires_grad:
                continue
            if type(part) not in LAYERS or name not in ("weight", "bias"):
                raise NotContractible(f"{type(part).__name__} has a parameter {name!r} of its own")
            if owner.setdefault(p, part) is not part:
                raise NotContractible("two layers share a parameter")
        if isinstance(part, nn.Conv2d) and part.padding_mode != "zeros":
            raise NotContractible(f"padding mode {part.padding_mode!r}")


def _check_rows(calls: list[LayerCall], examples: int) -> None:
    if any(call.x.shape[0] != examples for call in calls):
        raise NotContractible("a layer's input has not one row for each example")


@dataclass(slots=True)
class Signals:
    """One backward pass: (call, gradient at its output) layer by layer, and the gradients of parameters asked for."""

    layers: list[list[tuple[LayerCall, Tensor]]]
    parameters: list[Tensor | None]


def signals(
    module: nn.Module,
    x: Tensor,
    batch_norm: str,
    targets: Targets,
    y: Tensor | None = None,
    parameters: Sequence[Tensor] = (),
) -> Iterator[Signals]:
    """For every row of the targets: what comes back to the layers when its sum is differentiated.

    Parameters
    ----------
    module : the network; one whose gradients cannot be contracted raises `NotContractible`.
    x : examples, (n, ...).
    batch_norm : "train" or "eval".
    targets : from the outputs (n, classes) and the labels to the numbers that are differentiated, (k, n).
    y : labels, (n,).
    parameters : the gradients of these are given too.
    """
    _check_layers(module)
    with recording(module, batch_norm) as tape, torch.enable_grad():
        rows = targets(logits_of(module(x)), y)
        calls = list(tape.calls)  # a checkpointed part is run again, and written down again, in backward passes
        _check_rows(calls, len(x))
        guard, c = _guard(module, rows)
        wanted: list[Any] = [*(call.edge for call in calls), *parameters]
        for i, row in enumerate(rows):
            if not wanted or not row.requires_grad:
                yield Signals([], [None] * len(parameters))
                continue
            last = i + 1 == len(rows)
            grads = torch.autograd.grad(row.sum(), wanted, retain_graph=not last, allow_unused=True)
            layers: dict[nn.Module, list[tuple[LayerCall, Tensor]]] = {}
            for call, grad in zip(calls, grads, strict=False):
                if grad is not None:
                    layers.setdefault(call.layer, []).append((call, grad))
                    guard.add(call, grad, c[i])
            if last:
                _check(guard, module)
            yield Signals(list(layers.values()), list(grads[len(calls) :]))


def _check(guard: LayerGuard, module: nn.Module) -> None:
    try:
        guard.check()
    except Mismatch as error:
        text = f"{type(module).__name__} is not taken layer by layer, but by a slower way: {error}"
        warnings.warn(text, SlowGradients, stacklevel=2)
        raise


def _guard(module: nn.Module, rows: Tensor) -> tuple[LayerGuard, Tensor]:
    """Autograd's gradients of the sum of all targets, each with a factor of its own, and these factors, (k, n)."""
    c, parameters = factors(rows), list(learned(module).values())
    sums: Sequence[Tensor | None] = [None] * len(parameters)
    if parameters and rows.requires_grad:
        sums = torch.autograd.grad((c * rows).sum(), parameters, retain_graph=True, allow_unused=True)
    return LayerGuard(dict(zip(parameters, sums, strict=True))), c
