"""Which data each block of variables sees, and in what order the blocks move."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nasight.searching._per_example import clipped_mean
from nasight.searching._step import Step


class Objective(ABC):
    """One step of a search: which losses are taken, and what moves."""

    name: str
    halves: ClassVar[bool] = False
    """Whether shared weights and architecture learn from two halves of the data."""
    passes: ClassVar[int] = 1
    """Backward passes per step, the cost of the objective."""
    per_example: ClassVar[bool] = False
    """Whether it asks for gradients example by example, which not every space can give."""
    differences: ClassVar[bool] = False
    """Whether it takes differences of gradients, of which 16 bits leave nothing."""
    weights_first: ClassVar[bool | None] = None
    """Whether a step moves the shared weights before the architecture, unless a search says otherwise; None: the two
    do not take turns."""

    @abstractmethod
    def step(self, step: Step) -> None:
        """Move the blocks once; while `step.learns` is False only the shared weights move."""

    def phase(self, steps: int) -> int:
        """How many steps of the architecture alone follow the `steps` of an epoch."""
        return 0

    def phase_step(self, step: Step) -> None:
        """One of these; there are none in warm-up."""
        raise NotImplementedError(f"objective {self.name!r} has a phase, and so must define `phase_step`")

    def keeps(self, iterate: int, last: int, generator: torch.Generator) -> bool:
        """Whether this iterate (of `last`) is the one the search returns."""
        return iterate == last

    @property
    def keeps_any(self) -> bool:
        """Whether the iterate that is returned need not be the last one."""
        return type(self).keeps is not Objective.keeps


@dataclass(frozen=True)
class Joint(Objective):
    """Empirical risk over weights and architecture at once (GAEA, eq. 3): one batch, one backward pass, both move.

    Half the cost of `Alternating`, which is how GAEA's released code minimizes the same risk; SNAS's moves this way.
    """

    name: str = "erm-joint"

    def step(self, step: Step) -> None:
        loss = step.loss("weights", learn=step.learns)
        step.descend(loss, weights=True, architecture=step.learns)


@dataclass(frozen=True)
class Alternating(Objective):
    """Architecture step on a fresh batch and weight step, in this order or, if a search says so, in the other one.

    `halves` makes it bilevel (GAEA, eq. 2).
    """

    name: str = "erm"
    passes: ClassVar[int] = 2
    weights_first: ClassVar[bool | None] = False

    def step(self, step: Step) -> None:
        if step.learns and not step.weights_first:
            self.architecture_step(step)
        self.weight_step(step)
        if step.learns and step.weights_first:
            self.architecture_step(step)

    def architecture_step(self, step: Step) -> None:
        """Move the architecture once."""
        step.descend(step.loss("architecture", learn=True), architecture=True)

    def weight_step(self, step: Step) -> None:
        """Move the shared weights once."""
        step.descend(step.loss("weights", learn=False), weights=True)


@dataclass(frozen=True)
class Bilevel(Alternating):
    """The architecture learns from the other half of the data, the weights taken as they are (first order)."""

    name: str = "bilevel"
    halves: ClassVar[bool] = True


@dataclass(frozen=True)
class SecondOrder(Bilevel):
    """Bilevel through one step of the weights, w' = w - xi grad (DARTS, eqs. 7 and 8).

    The gradient is d_theta V(w', theta) - xi d2_theta,w T(w, theta) d_w' V(w', theta), its mixed derivative by a
    central difference of width r = 0.01 / |d_w' V|. That width is the published one; it averages over kinks of the
    ReLUs, and the exact mixed derivative is its limit for a small `radius`.
    """

    passes: ClassVar[int] = 5
    differences: ClassVar[bool] = True
    radius: float = 1e-2

    def architecture_step(self, step: Step) -> None:
        shared, theta, rate = step.shared, step.theta, step.weight_lr
        start = [p.detach().clone() for p in shared]
        train = step.loss("weights", learn=False, record=False)
        _assign(shared, step.weights_after(step.gradients(train, shared)))
        outer = step.loss("architecture", learn=True)
        grads = step.gradients(outer, [*theta, *shared])
        direct, by_shared = grads[: len(theta)], grads[len(theta) :]
        width = self.radius / torch.cat([g.flatten() for g in by_shared]).norm().clamp_min(1e-12)
        sides = []
        for sign in (1.0, -1.0):
            _assign(shared, [p + sign * width * v for p, v in zip(start, by_shared, strict=True)])
            sides.append(step.gradients(step.loss("weights", learn=True, record=False), theta))
        _assign(shared, start)
        mixed = [(plus - minus) / (2 * width) for plus, minus in zip(*sides, strict=True)]
        step.move_architecture([d - rate * m for d, m in zip(direct, mixed, strict=True)])


@dataclass(frozen=True)
class Clipped(Alternating):
    """The architecture follows the mean of gradients that were clipped example by example (XNAS).

    No entry of any example's gradient exceeds `bound`, so none of their mean does.
    """

    name: str = "erm"
    per_example: ClassVar[bool] = True
    bound: float = 1.0

    def architecture_step(self, step: Step) -> None:
        step.move_architecture([clipped_mean(grad, self.bound) for grad in step.example_gradients("architecture")])


@dataclass(frozen=True)
class ClippedBilevel(Clipped):
    """The same, on the other half of the data."""

    name: str = "bilevel"
    halves: ClassVar[bool] = True


@dataclass(frozen=True)
class ScoreFunction(Alternating):
    """The distribution moves towards architectures that did well: the gradient of the mean of credit * log p.

    A step draws `samples` architectures, scores them on one batch of the other half of the data without a backward
    pass, and adds `entropy` times the distribution's entropy to what is maximized.
    """

    halves: ClassVar[bool] = True
    samples: int = 2
    entropy: float = 0.0

    @abstractmethod
    def credit(self, step: Step, losses: Tensor, accuracies: Tensor) -> Tensor:
        """How good each architecture was, compared with what was to be expected."""

    def architecture_step(self, step: Step) -> None:
        answers = step.policy.sample(self.samples, step.generator("answers"))
        credit = self.credit(step, *step.scores(answers, "architecture"))
        log_prob, entropy = step.policy.likelihood(answers)
        loss = -(credit * log_prob).mean() - self.entropy * entropy.mean()
        step.move_architecture(torch.autograd.grad(loss, step.theta, allow_unused=True, materialize_grads=True))


@dataclass(frozen=True)
class Reinforce(ScoreFunction):
    """Credit is accuracy less its moving average (ENAS)."""

    name: str = "reinforce"
    samples: int = 4
    entropy: float = 1e-4
    decay: float = 0.99

    def credit(self, step: Step, losses: Tensor, accuracies: Tensor) -> Tensor:
        mean = float(accuracies.mean())
        before = step.memory.get("baseline", mean)
        step.memory["baseline"] = baseline = self.decay * before + (1 - self.decay) * mean
        return accuracies - baseline


@dataclass(frozen=True)
class RankUtility(ScoreFunction):
    """Credit is by rank: 1 for the best ceil(n / 4) of n samples, -1 for as many of the worst, else 0 (ASNG).

    Architectures of equal loss share the mean of their credits. The shared weights move first, along the gradient of
    the mean loss of `samples` architectures; as many are then drawn anew for the distribution.
    """

    name: str = "ranking"
    weights_first: ClassVar[bool | None] = True

    def weight_step(self, step: Step) -> None:
        step.descend(step.loss("weights", learn=False, draws=self.samples), weights=True)

    def credit(self, step: Step, losses: Tensor, accuracies: Tensor) -> Tensor:
        n = len(losses)
        q = math.ceil(n / 4)
        utility = torch.zeros(n)
        utility[:q], utility[n - q :] = 1.0, -1.0
        ranked = torch.empty(n).scatter(0, losses.argsort(stable=True), utility)
        same = (losses[:, None] == losses[None]).float()
        return (same * ranked[None]).sum(1) / same.sum(1)


@dataclass(frozen=True)
class BlockStochastic(Objective):
    """GAEA's algorithm 1: each step moves one block, drawn at random; the iterate returned is drawn at random."""

    name: str = "block"

    def step(self, step: Step) -> None:
        coin = step.generator("block")
        theta_moves = step.learns and bool(torch.rand((), generator=coin) < 0.5)
        loss = step.loss("weights", learn=theta_moves)
        step.descend(loss, weights=not theta_moves, architecture=theta_moves)

    def keeps(self, iterate: int, last: int, generator: torch.Generator) -> bool:
        return iterate == 1 + int(torch.randint(last, (), generator=generator))


@dataclass(frozen=True)
class WeightsOnly(Objective):
    """The shared weights learn, there is no architecture to move (RS-WS)."""

    name: str = "weights"

    def step(self, step: Step) -> None:
        step.descend(step.loss("weights", learn=False), weights=True)


def _assign(parameters: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(value)
