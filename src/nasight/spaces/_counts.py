"""How large the stand-alone network of an architecture is, without building each one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch import nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._cost import known_multiply_adds

if TYPE_CHECKING:
    from nasight.spaces._base import Space

LOOKED_AT = 2_000
"""The smallest count of a space without a rule of its own is looked for among this many architectures."""


class Counts(ABC):
    """Counts of the networks of a space at one size; what two architectures share is counted once."""

    def __init__(self, space: Space, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> None:
        self.space, self.inputs, self.classes, self.size = space, tuple(inputs), classes, dict(size)
        self._known = dict[Hashable, int]()

    @abstractmethod
    def built(self, arch: Architecture) -> int:
        """The count of a network that is built for it, where possible without memory for its weights."""

    def counted(self, arch: Architecture) -> int:
        """The same from as few networks as the space needs."""
        return self.space.counted(arch, self._once)

    def _once(self, arch: Architecture) -> int:
        key = self.space.counts_alike(arch)
        if key not in self._known:
            self._known[key] = self.built(arch)
        return self._known[key]

    def _bare(self, arch: Architecture) -> nn.Module:
        if not self.space.builds_without_memory:
            return self._whole(arch)
        with torch.device("meta"):
            return self._whole(arch)

    def _whole(self, arch: Architecture) -> nn.Module:
        return self.space.network(arch, self.inputs, self.classes, **self.size)


class Parameters(Counts):
    """Parameters of the networks of a space at one size.

    >>> from nasight.spaces import load
    >>> space = load("nasbench201")
    >>> count = space.parameters((3, 32, 32), 10, channels=16, cells=5)
    >>> count(space.parse("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|skip_connect~1|none~2|"))
    316346
    """

    def __call__(self, arch: Architecture) -> int:
        return self.counted(arch)

    def smallest(self) -> tuple[int, bool]:
        """The smallest count there is, and whether that is certain: in a large space of one's own it may not be."""
        found, certain = self.space.lightest(), True
        if not found:
            certain = len(self.space) <= LOOKED_AT
            looked_at = islice(self.space, None if certain else LOOKED_AT)
            found = tuple(a for a in looked_at if self.space.usable(a) is None)
        return min(map(self, found)), certain

    def built(self, arch: Architecture) -> int:
        return sum(p.numel() for p in self._bare(arch).parameters())


class MultiplyAdds(Counts):
    """Multiply-adds per example of the networks of a space at one size; None where they cannot be told.

    >>> from nasight.spaces import load
    >>> space = load("nasbench201")
    >>> count = space.multiply_adds((3, 32, 32), 10, channels=16, cells=5)
    >>> count(space.parse("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|skip_connect~1|none~2|"))
    43172480
    """

    def __call__(self, arch: Architecture) -> int | None:
        try:
            return self.counted(arch)
        except RequestError:
            return None

    def built(self, arch: Architecture) -> int:
        found = known_multiply_adds(self._bare(arch), self.inputs)
        if found is None and self.space.builds_without_memory:
            # A pass that needs values cannot be made without memory.
            found = known_multiply_adds(self._whole(arch), self.inputs)
        if found is None:
            raise RequestError(f"the multiply-adds of this network of space {self.space.name!r} cannot be counted")
        return found
