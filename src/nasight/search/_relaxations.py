"""How simplex weights enter a forward pass; none of these owns parameters or an optimiser."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nasight.spaces import Group, Space


@dataclass(frozen=True)
class Moment:
    """What a relaxation may depend on besides the weights: where the search is, and its randomness."""

    space: Space
    groups: tuple[Group, ...]
    progress: float
    """0 at the first epoch with architecture steps, 1 at the last."""
    generator: torch.Generator


class Relaxation(ABC):
    """From the weights of the architecture to the weights of one forward pass."""

    edges: ClassVar[bool] = False
    """Whether the edges into a node have weights of their own."""
    partial: int = 1
    """One part in so many of the channels goes through the operations."""
    skip_zeros: ClassVar[bool | None] = None
    """Handed to the supernet: whether zeros are left out although a gradient is asked for."""
    sampled: ClassVar[bool] = False
    """Whether a pass sees one architecture rather than a mixture."""

    @abstractmethod
    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], moment: Moment
    ) -> dict[str, Tensor]:
        """The weights of one forward pass, differentiable in theta where the method learns from them."""


@dataclass(frozen=True)
class Mixture(Relaxation):
    """Every operation, weighted (DARTS)."""

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], moment: Moment
    ) -> dict[str, Tensor]:
        return dict(theta)


@dataclass(frozen=True)
class PartialChannels(Mixture):
    """A mixture that sees one part in `partial` of the channels, with weights for the edges (PC-DARTS)."""

    edges: ClassVar[bool] = True
    partial: int = 4


@dataclass(frozen=True)
class HardGumbel(Relaxation):
    """One operation a decision, drawn by the Gumbel trick; straight-through gradient (GDAS).

    The pass sees the arg max of (log theta + Gumbel noise) / tau in ones and zeros, the gradient that of the softmax.
    tau falls linearly. What was not drawn is not evaluated, so it receives no gradient of its own.
    """

    skip_zeros: ClassVar[bool | None] = True
    sampled: ClassVar[bool] = True
    hottest: float = 10.0
    coldest: float = 0.1

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], moment: Moment
    ) -> dict[str, Tensor]:
        tau = self.hottest + (self.coldest - self.hottest) * moment.progress
        drawn = dict(theta)
        for group in moment.groups:
            if group.exclusive:
                rows = [self._row(row, tau, moment.generator) for row in group.split(log_theta[group.name])]
                drawn[group.name] = torch.cat(rows).reshape(group.shape)
        return drawn

    def _row(self, log_theta: Tensor, tau: float, generator: torch.Generator) -> Tensor:
        gumbel = -torch.empty_like(log_theta).exponential_(generator=generator).log()
        soft = ((log_theta + gumbel) / tau).softmax(-1)
        hard = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
        return hard + (soft - soft.detach())


@dataclass(frozen=True)
class UniformSample(Relaxation):
    """One architecture of the space, drawn uniformly, whatever theta says (RS-WS)."""

    sampled: ClassVar[bool] = True

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], moment: Moment
    ) -> dict[str, Tensor]:
        edges = any(not group.exclusive for group in moment.groups)
        return moment.space.encode(moment.space.sample(moment.generator), edges=edges)
