"""Architecture weights on a device, and what is known of them without asking it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod

import torch
from torch import Tensor


class Placed(dict[str, Tensor]):
    """Weights on a device; `known` are tensors on the CPU that are zero where these are.

    Which operations of a pass are evaluated is decided by what is zero. To read that from a device would wait for it.
    """

    def __init__(self, weights: Mapping[str, Tensor], known: Mapping[str, Tensor]) -> None:
        super().__init__(weights)
        self.known = known


def placed(weights: Mapping[str, Tensor], device: torch.device) -> Mapping[str, Tensor]:
    """The weights on this device; where they come from the CPU, their zeros stay known.

    They travel as one tensor, and so do their gradients on the way back.
    """
    if isinstance(weights, Placed) or all(w.device == device for w in weights.values()):
        return weights
    flat = torch.cat([w.reshape(-1) for w in weights.values()]).to(device, non_blocking=True)
    shapes = [w.shape for w in weights.values()]
    parts = torch.split(flat, [prod(shape) for shape in shapes])
    moved = {name: part.reshape(shape) for name, part, shape in zip(weights, parts, shapes, strict=True)}
    return Placed(moved, {name: w.detach() for name, w in weights.items()})


def zeros_of(weights: Mapping[str, Tensor], name: str, asked: bool = True) -> Tensor:
    """On the CPU: a tensor that is zero where the weights of this group are; nowhere, if nobody `asked`."""
    if not asked:
        return torch.ones(weights[name].shape)
    known = weights.known if isinstance(weights, Placed) else weights
    return known[name].detach().cpu()


@lru_cache(maxsize=4096)
def _index(places: tuple[int, ...], device: torch.device) -> Tensor:
    # An index made in inference mode could not be saved for a later backward pass.
    with torch.inference_mode(False):
        return torch.tensor(places, dtype=torch.int64).to(device, non_blocking=True)


def index(places: Iterable[int], like: Tensor) -> Tensor:
    """These numbers as an index of `like`: copied to its device once, where a list would be copied every time."""
    return _index(tuple(places), like.device)
