"""Dropout behind skip connections and of whole edges, drawn from a generator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from nasight.errors import RequestError

Masks = Mapping[int, Tensor]
"""Edge -> what its skip connection, or all that it gives, is multiplied by."""
NO_MASKS: Masks = MappingProxyType({})


def drawing(like: Tensor, *shape: int) -> Tensor:
    """Memory on the CPU to draw numbers in, in the precision of `like`, which is at least float32 for that."""
    return torch.empty(shape, dtype=like.dtype if like.dtype.itemsize >= 4 else torch.float32)


@dataclass(frozen=True)
class Dropout:
    """Each number becomes zero with probability `p` and is divided by 1 - `p` otherwise, so its mean stays.

    >>> kept = Dropout(0.5, torch.Generator().manual_seed(0)).masks([0, 3], torch.ones(1, 2, 2, 2))
    >>> {edge: sorted(set(mask.flatten().tolist())) for edge, mask in kept.items()}
    {0: [0.0, 2.0], 3: [0.0, 2.0]}
    """

    p: float
    generator: torch.Generator

    def __post_init__(self) -> None:
        if not 0 <= self.p < 1:
            raise RequestError(f"the probability of a dropout must be at least 0 and below 1, got {self.p!r}")

    def masks(self, edges: Iterable[int], like: Tensor) -> dict[int, Tensor]:
        """For each edge, in this order, zeros and 1 / (1 - p) of the shape of `like` (b, c, h, w), channels last."""
        b, c, h, w = like.shape
        keep = 1 - self.p
        # Uniform numbers and a comparison take half the time of bernoulli_, and the whole is most of a dropout's cost.
        # Drawn where the generator is, so that all devices drop the same numbers.
        drawn = {e: drawing(like, b, h, w, c).uniform_(generator=self.generator).lt_(keep).div_(keep) for e in edges}
        return {e: mask.to(like, non_blocking=True).permute(0, 3, 1, 2) for e, mask in drawn.items()}

    def paths(self, edges: int, like: Tensor) -> dict[int, Tensor]:
        """For each of so many edges a number for every image of `like`, zero or 1 / (1 - p): (b, 1, 1, 1)."""
        keep = 1 - self.p
        drawn = drawing(like, edges, len(like), 1, 1, 1).uniform_(generator=self.generator).lt_(keep).div_(keep)
        return dict(enumerate(drawn.to(like, non_blocking=True)))
