"""A pass through a network with every use of its layers written down.

Batch norms run with statistics that count as constants, so that examples do not meet in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.modules.batchnorm import _BatchNorm

from nasight.errors import RequestError

BATCH_NORMS = ("train", "eval", "coupled")
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
# Exactly these types: a subclass may compute something else with the same parameters.
LAYERS = (nn.Linear, nn.Conv2d, *NORMS)


@dataclass(slots=True)
class LayerCall:
    """One use of a layer: its input, and where in the graph the gradient of its output is found."""

    layer: nn.Module
    x: Tensor
    edge: GradientEdge
    mean: Tensor | None = None
    inverse: Tensor | None = None
    """Of a batch norm: the mean it subtracted and the inverse deviation it multiplied with, (channels,)."""


class NotContractible(Exception):
    """Why the gradients of this module cannot be contracted layer by layer."""


class _FrozenNorm(torch.autograd.Function):
    """Batch norm with the statistics of the batch, through which no gradient flows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Any:
        out, mean, inverse = torch.native_batch_norm(x, weight, bias, None, None, True, 0.0, eps)
        ctx.save_for_backward(x, weight, mean, inverse)
        ctx.mark_non_differentiable(mean, inverse)
        return out, mean, inverse

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight, mean, inverse = ctx.saved_tensors
        grad: Tensor = grads[0]
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        shape = (1, -1, *[1] * (x.dim() - 2))
        others = [d for d in range(x.dim()) if d != 1]
        scale = inverse if weight is None else inverse * weight
        normalized = (x - mean.view(shape)) * inverse.view(shape) if needs_weight else None
        return (
            grad * scale.view(shape) if needs_x else None,
            None if normalized is None else (grad * normalized).sum(others),
            grad.sum(others) if needs_bias else None,
            None,
        )


Statistics = dict[nn.Module, list[tuple[Tensor, Tensor]]]
"""Of every batch norm, call by call: the mean it subtracted and the inverse deviation it multiplied with."""
Targets = Callable[[Tensor, Tensor | None], Tensor]
"""From the outputs (n, classes) and the labels, if any, to the numbers that are differentiated, (k, n)."""
Forward = Callable[[_BatchNorm, Tensor], Tensor]


class Tape:
    """The calls of every layer with parameters, in their order, and the statistics of every batch norm."""

    def __init__(self, batch_norm: str) -> None:
        self.batch_norm = batch_norm
        self.calls: list[LayerCall] = []
        self.statistics: Statistics = {}

    def remember(self, layer: nn.Module, args: tuple[Any, ...], out: Tensor) -> Tensor:
        if out.requires_grad:
            # A view that is then changed in place would leave the graph, and its edge with it.
            out = out.clone() if out._is_view() else out
            self.calls.append(LayerCall(layer, args[0].detach(), get_gradient_edge(out)))
        return out

    def norm(self, layer: _BatchNorm, x: Tensor) -> Tensor:
        mean, var = layer.running_mean, layer.running_var
        if self.batch_norm == "eval" and mean is not None and var is not None:
            inverse = torch.rsqrt(var + layer.eps)
            out = F.batch_norm(x, mean, var, layer.weight, layer.bias, False, 0.0, layer.eps)
        else:
            out, mean, inverse = _FrozenNorm.apply(x, layer.weight, layer.bias, layer.eps)  # type: ignore[no-untyped-call]
        self.statistics.setdefault(layer, []).append((mean, inverse))
        if out.requires_grad:
            self.calls.append(LayerCall(layer, x.detach(), get_gradient_edge(out), mean, inverse))
        return out


@contextmanager
def norms_as(module: nn.Module, forward: Forward) -> Iterator[None]:
    """Inside, all is in evaluation mode (no dropout) and batch norms compute `forward`; afterwards all is as before.

    Parameters
    ----------
    module : the network.
    forward : (batch norm, its input) -> its output, such as `coupled_norm`.
    """
    modes = [(part, part.training) for part in module.modules()]
    norms = [part for part in module.modules() if type(part) in NORMS]
    try:
        module.eval()
        for norm in norms:
            norm.forward = partial(forward, norm)  # type: ignore[arg-type]
        yield
    finally:
        for norm in norms:
            norm.__dict__.pop("forward", None)
        for part, training in modes:
            part.training = training


@contextmanager
def recording(module: nn.Module, batch_norm: str) -> Iterator[Tape]:
    """Inside, every use of a layer with parameters is written down.

    Batch norms use the statistics of the batch, as constants, with `batch_norm="train"`; with "eval" the running
    ones, where they have any. Running statistics are left as they are.
    """
    tape = Tape(batch_norm)
    hooked = [part for part in module.modules() if type(part) in LAYERS and type(part) not in NORMS]
    handles = [part.register_forward_hook(tape.remember) for part in hooked]
    try:
        with norms_as(module, tape.norm):
            yield tape
    finally:
        for handle in handles:
            handle.remove()


def check_batch_norm(batch_norm: str) -> None:
    """Refuse what is not "train", "eval" or "coupled"."""
    if batch_norm not in BATCH_NORMS:
        raise RequestError(f"batch_norm must be one of {', '.join(BATCH_NORMS)}, got {batch_norm!r}")


def logits_of(out: Any) -> Tensor:
    """The outputs (n, classes) in `out`, what a network returns: of several, as with an auxiliary head, the first.

    >>> logits_of((torch.zeros(4, 3), None)).shape
    torch.Size([4, 3])
    """
    first = out[0] if isinstance(out, tuple) else out
    if not isinstance(first, Tensor) or first.dim() == 0:
        raise RequestError(f"a network must return a tensor with a row for each example, got {type(first).__name__}")
    return first.flatten(1) if first.dim() > 1 else first[:, None]


def learned(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of a module that a gradient is taken of, by their names.

    >>> list(learned(nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    return {name: p for name, p in module.named_parameters() if p.requires_grad}
