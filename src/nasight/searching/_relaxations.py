"""How simplex weights enter a forward pass; none of these owns parameters or an optimizer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.errors import RunError
from nasight.spaces import CONSTANTS, Group, Space

TRACE = 1e-20
"""A weight at which an operation is evaluated, and has a gradient, but adds nothing that a float can see."""


@dataclass(frozen=True)
class StepContext:
    """What a relaxation may depend on besides the weights: where the search is, and its randomness."""

    space: Space
    groups: tuple[Group, ...]
    progress: float
    """0 at the first epoch with architecture steps, 1 at the last."""
    generator: torch.Generator
    learn: bool = True
    """Whether the pass is one from which the architecture learns."""
    elapsed: float = 0.0
    """The share of the stage, warm-up included, that is over when this epoch ends: 1 in the last."""
    warmup: bool = False
    """Whether the epoch trains the shared weights alone."""
    since: float | None = None
    """Epochs with architecture steps before this one, over all epochs of the stage but one; None: as `progress`."""
    dropout: float = 0.0
    """The probability with which the stage begins to drop numbers behind skip connections."""
    draw: Callable[[torch.Generator], Architecture] | None = None
    """Where architectures are drawn from a distribution: a draw."""

    def encoded(self, arch: Architecture) -> dict[str, Tensor]:
        """The weights in ones and zeros at which the supernet is this architecture."""
        return self.space.encode(arch, edges=any(not group.exclusive for group in self.groups))


class Relaxation(ABC):
    """From the weights of the architecture to the weights of one forward pass."""

    edges: ClassVar[bool] = False
    """Whether the edges into a node have weights of their own."""
    partial: int = 1
    """One part in this many of the channels goes through the operations."""
    skip_zeros: ClassVar[bool | None] = None
    """Handed to the supernet: whether zeros are left out although a gradient is asked for."""
    on_device: ClassVar[bool] = False
    """Whether the weights are computed where the network is. That needs no draw from theta, and no weight that theta
    may make zero: a device would have to be asked for both. Otherwise theta stays on the CPU, and its gradient comes
    back from the device."""
    sampled: ClassVar[bool] = False
    """Whether weights are drawn at random, for which the logarithms of theta are needed."""

    @abstractmethod
    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        """The weights of one forward pass, differentiable in theta where the method learns from them."""

    def skip_dropout(self, context: StepContext) -> float:
        """The probability with which a training pass drops a number behind a skip connection."""
        return 0.0


@dataclass(frozen=True)
class Mixture(Relaxation):
    """Every operation, weighted (DARTS)."""

    on_device: ClassVar[bool] = True

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        return dict(theta)


@dataclass(frozen=True)
class PartialChannels(Mixture):
    """A mixture that sees one part in `partial` of the channels, with weights for the edges (PC-DARTS)."""

    edges: ClassVar[bool] = True
    partial: int = 4


def gumbel(like: Tensor, generator: torch.Generator) -> Tensor:
    """Standard Gumbel noise."""
    return -torch.empty_like(like).exponential_(generator=generator).log()


def concrete(log_theta: Tensor, tau: float, generator: torch.Generator) -> Tensor:
    """A draw from the concrete distribution: its largest entry is at i with probability theta_i."""
    return ((log_theta + gumbel(log_theta, generator)) / tau).softmax(-1)


def _row_by_row(
    theta: Mapping[str, Tensor],
    log_theta: Mapping[str, Tensor],
    context: StepContext,
    draw: Callable[[Tensor], Tensor],
    edges: Callable[[Tensor], Tensor] | None = None,
) -> dict[str, Tensor]:
    """The weights that `draw` makes of the logarithms of each decision, and `edges` of those of edges; None: as is."""
    drawn = dict(theta)
    for group in context.groups:
        make = draw if group.exclusive else edges
        if make is not None:
            drawn[group.name] = group.join([make(row) for row in group.split(log_theta[group.name])])
    return drawn


@dataclass(frozen=True)
class HardGumbel(Relaxation):
    """One operation per decision, drawn by the Gumbel trick; straight-through gradient of what was drawn.

    The pass sees the arg max of (log theta + Gumbel noise) / tau in ones and zeros, the gradient that of the softmax.
    tau falls linearly. What was not drawn is not evaluated, so it receives no gradient of its own. So does GDAS's
    released code in the DARTS space.
    """

    skip_zeros: ClassVar[bool | None] = True
    sampled: ClassVar[bool] = True
    hottest: float = 10.0
    coldest: float = 0.1
    noisy_edges: bool = False
    """Whether the weights of edges have Gumbel noise and a temperature too; nothing of them is rounded."""

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        tau, chance = self.temperature(context), context.generator
        noisy = partial(concrete, tau=tau, generator=chance) if self.noisy_edges else None
        return _row_by_row(theta, log_theta, context, lambda row: self._row(row, tau, chance), noisy)

    def temperature(self, context: StepContext) -> float:
        """tau of this epoch. It stays in warm-up, and after one it does not reach `coldest` (GAEA's released code)."""
        fallen = context.progress if context.since is None else context.since
        return self.hottest + (self.coldest - self.hottest) * fallen

    def _row(self, log_theta: Tensor, tau: float, generator: torch.Generator) -> Tensor:
        soft = concrete(log_theta, tau, generator)
        hard = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
        return hard + (soft - soft.detach())


@dataclass(frozen=True)
class GumbelConstants(HardGumbel):
    """The same, but weights that were not drawn enter as the numbers they are, which is 0 (GDAS on NAS-Bench-201).

    For the gradient such a weight is a number added to every entry of the feature map: all weights of an edge that
    were not drawn get the same gradient, the sum of that of the feature map, whatever their operations compute. Where a
    space takes no such numbers, this is `HardGumbel`.
    """

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        drawn = super().weights(theta, log_theta, context)
        if context.space.constants and context.learn:
            (group,) = (group for group in context.groups if group.exclusive)
            rows = group.split(drawn[group.name])
            drawn[CONSTANTS] = torch.stack([(row * (row.detach() == 0)).sum() for row in rows])
        return drawn


@dataclass(frozen=True)
class StraightThrough(HardGumbel):
    """The plain straight-through estimator: a pass from which the architecture learns evaluates all operations."""

    skip_zeros: ClassVar[bool | None] = False


@dataclass(frozen=True)
class UniformSample(Relaxation):
    """One architecture of the space, drawn uniformly, whatever theta says (RS-WS)."""

    sampled: ClassVar[bool] = True

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        return context.encoded(context.space.sample(context.generator))


@dataclass(frozen=True)
class Survivors(Mixture):
    """A mixture of the operations that have not been wiped out; the others are not evaluated (XNAS)."""

    on_device: ClassVar[bool] = False
    skip_zeros: ClassVar[bool | None] = True


@dataclass(frozen=True)
class SkipDropout(Mixture):
    """A mixture with dropout of each number behind a skip connection, the more the earlier in a stage (P-DARTS).

    In warm-up the rate falls linearly from the stage's dropout, in a way that would reach 0 in the last epoch of the
    stage. With the first architecture step it is back at the stage's dropout, and it falls to exp(-decay) times that.
    Operations that earlier stages have dropped are not evaluated.
    """

    skip_zeros: ClassVar[bool | None] = True
    decay: float = 2.8
    """The released exp(-0.2 per epoch) over the 15 epochs of a stage in which the architecture learns."""

    def skip_dropout(self, context: StepContext) -> float:
        if context.warmup:
            return context.dropout * (1 - context.elapsed)
        return context.dropout * math.exp(-self.decay * context.progress)


@dataclass(frozen=True)
class Concrete(Relaxation):
    """Every operation, weighted by softmax((log theta + Gumbel noise) / tau): the concrete distribution (SNAS).

    tau falls linearly, to `coldest` in the last epoch. The weights are differentiable as they are; nothing is rounded.
    """

    sampled: ClassVar[bool] = True
    hottest: float = 1.0
    coldest: float = 0.03

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        tau = self.temperature(context)
        return _row_by_row(theta, log_theta, context, lambda row: concrete(row, tau, context.generator))

    def temperature(self, context: StepContext) -> float:
        """tau, one value per epoch. The released code takes its first step before the first epoch."""
        return self.hottest + (self.coldest - self.hottest) * context.elapsed


@dataclass(frozen=True)
class BinaryGates(Relaxation):
    """One path per decision; the architecture learns by comparing it with another one (ProxylessNAS).

    A pass for the shared weights draws one operation by theta. A pass for the architecture draws two, without
    replacement, gives them the weights p that theta has between the two, and opens the gate of one, drawn by p.
    The gradient takes each gate g for its p: d loss / d alpha_i = sum_j (d loss / d g_j) p_j (1[i = j] - p_i) over
    the two (equation 4 of the paper, section 3.2.1). Of the closed one a trace enters, so that it is evaluated.
    """

    skip_zeros: ClassVar[bool | None] = True
    sampled: ClassVar[bool] = True

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        gate = _two_paths if context.learn else _one_path
        return _row_by_row(theta, log_theta, context, lambda row: gate(row, context.generator))


def _one_path(log_theta: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.multinomial(log_theta.detach().exp(), 1, generator=generator)
    return torch.zeros_like(log_theta).scatter(0, drawn, 1.0)


def _two_paths(log_theta: Tensor, generator: torch.Generator) -> Tensor:
    if len(log_theta) < 2:
        return torch.ones_like(log_theta) + 0.0 * log_theta
    pair = torch.multinomial(log_theta.detach().exp(), 2, generator=generator)
    # From the difference of the two, so that no rounding reaches the logits that were not drawn.
    p = (log_theta[pair[0]] - log_theta[pair[1]]).sigmoid()
    first = torch.rand((), generator=generator) < p.detach()
    open_or_trace = torch.stack([torch.where(first, 1.0, TRACE), torch.where(first, TRACE, 1.0)])
    gates = open_or_trace + torch.stack([p - p.detach(), p.detach() - p])
    return torch.zeros_like(log_theta).scatter(0, pair, gates)


@dataclass(frozen=True)
class Templates(Relaxation):
    """Shared weights learn from uniformly drawn architectures, the architecture from the mixture (SETN)."""

    on_device: ClassVar[bool] = True

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        return dict(theta) if context.learn else context.encoded(context.space.sample(context.generator))


@dataclass(frozen=True)
class Draws(Relaxation):
    """One architecture, drawn from the distribution that is learned (ENAS, ASNG)."""

    def weights(
        self, theta: Mapping[str, Tensor], log_theta: Mapping[str, Tensor], context: StepContext
    ) -> dict[str, Tensor]:
        if context.draw is None:
            raise RunError("architectures can only be drawn from a geometry that is a distribution")
        return context.encoded(context.draw(context.generator))
