"""Which way the gradients of a module are taken, and why not a faster one."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from torch import Tensor, nn

from nasight.gradients._guard import SlowGradients
from nasight.gradients._jacobians import materialized
from nasight.gradients._signals import signals
from nasight.gradients._tape import NotContractible


class Route(NamedTuple):
    """A way and, where it is not the fastest, the reason."""

    way: str
    why: str = ""


def gradient_route(module: nn.Module, x: Tensor, *, batch_norm: str = "train") -> Route:
    """The way on which `gradient_moments` and `empirical_ntk` take the gradients of a module.

    "layers": contracted layer by layer, the fastest; "examples": torch.func, example by example; "passes": one backward
    pass of the batch for every example, the slowest.

    Parameters
    ----------
    module : the network.
    x : examples, (n, ...).
    batch_norm : "train" or "eval".

    >>> import torch
    >>> gradient_route(nn.Linear(2, 1), torch.randn(3, 2)).way
    'layers'
    >>> gradient_route(nn.LayerNorm(2), torch.randn(3, 2))
    Route(way='examples', why="LayerNorm has a parameter 'weight' of its own")
    """

    def total(logits: Tensor, y: Tensor | None) -> Tensor:
        return logits.sum(1)[None]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SlowGradients)
        try:
            for _ in signals(module, x, batch_norm, total):
                pass
            return Route("layers")
        except NotContractible as error:
            why = str(error)
        caught.clear()
        for _ in materialized(module, x, batch_norm, total):
            pass
        slow = [str(w.message) for w in caught if issubclass(w.category, SlowGradients)]
    return Route("passes", slow[0].partition(" (")[2][:-1]) if slow else Route("examples", why)
