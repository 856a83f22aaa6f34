"""How many parameters the stand-alone network of an architecture has, without building each one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import torch

from nasight.architecture import Architecture

if TYPE_CHECKING:
    from nasight.spaces._base import Space

LOOKED_AT = 2_000
"""The smallest count of a space without a rule of its own is looked for among this many architectures."""


class Parameters:
    """Counts of the networks of a space at one size; what two architectures share is counted once.

    >>> from nasight.spaces import load
    >>> space = load("nasbench201")
    >>> count = space.parameters((3, 32, 32), 10, channels=16, cells=5)
    >>> count(space.parse("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|skip_connect~1|none~2|"))
    316346
    """

    def __init__(self, space: Space, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> None:
        self.space, self.inputs, self.classes, self.size = space, tuple(inputs), classes, dict(size)
        self._known = dict[Hashable, int]()

    def __call__(self, arch: Architecture) -> int:
        key = self.space.counts_alike(arch)
        if key not in self._known:
            self._known[key] = self.built(arch)
        return self._known[key]

    def smallest(self) -> tuple[int, bool]:
        """The smallest count there is, and whether that is certain: in a large space of one's own it may not be."""
        found, certain = self.space.lightest(), True
        if not found:
            certain = len(self.space) <= LOOKED_AT
            looked_at = islice(self.space, None if certain else LOOKED_AT)
            found = tuple(a for a in looked_at if self.space.usable(a) is None)
        return min(map(self, found)), certain

    def built(self, arch: Architecture) -> int:
        """The count of a network that is built for it, where possible without memory for its weights."""
        if self.space.builds_without_memory:
            with torch.device("meta"):
                network = self.space.network(arch, self.inputs, self.classes, **self.size)
        else:
            network = self.space.network(arch, self.inputs, self.classes, **self.size)
        return sum(p.numel() for p in network.parameters())
