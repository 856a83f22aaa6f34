"""Ragged stacks of simplices: rows of different lengths, one behind the other in a flat tensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

Sizes = tuple[int, ...]


def map_rows(function: Callable[..., Tensor], sizes: Sizes | None, *tensors: Tensor) -> Tensor:
    """`function` of the rows of the tensors: at once if all are equally long (`sizes` None), else once per length.

    `function` takes and returns stacks of rows (..., k). Differentiable, and no row sees another.
    """
    if sizes is None:
        return function(*tensors)
    stacks, back = _stacks(sizes, tensors[0].device)
    return torch.cat([function(*(t[stack] for t in tensors)).reshape(-1) for stack in stacks])[back]


@lru_cache(maxsize=256)
def _stacks(sizes: Sizes, device: torch.device) -> tuple[list[Tensor], Tensor]:
    """Where the rows of each length stand, (rows, k) each, and the way back from these stacks to the flat order."""
    starts = [sum(sizes[:row]) for row in range(len(sizes))]
    # An index made in inference mode could not be saved for a later backward pass.
    with torch.inference_mode(False):
        stacks = [
            torch.tensor([[*range(at, at + k)] for at, size in zip(starts, sizes, strict=True) if size == k])
            for k in sorted(set(sizes))
        ]
        back = torch.cat([stack.reshape(-1) for stack in stacks]).argsort()
        return [stack.to(device, non_blocking=True) for stack in stacks], back.to(device, non_blocking=True)
