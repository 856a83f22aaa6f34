"""Which data each block of variables sees, and in what order the blocks move."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from nasight.search._per_example import clipped_mean

if TYPE_CHECKING:
    from nasight.search._engine import Engine


class Objective(ABC):
    """One step of a search; `architecture` is False during warm-up, when only the shared weights move."""

    name: str
    halves: ClassVar[bool] = False
    """Whether shared weights and architecture learn from two halves of the data."""
    passes: ClassVar[int] = 1
    """Backward passes a step, the cost of the objective."""

    @abstractmethod
    def step(self, engine: Engine, epoch: int, step: int, *, architecture: bool) -> None:
        """Move the blocks once."""

    def keeps(self, engine: Engine, iterate: int, last: int) -> bool:
        """Whether this iterate (of `last`) is the one the search returns."""
        return iterate == last


@dataclass(frozen=True)
class Erm(Objective):
    """Empirical risk over weights and architecture at once (GAEA, eq. 3): one batch, one backward pass, both move."""

    name: str = "erm"

    def step(self, engine: Engine, epoch: int, step: int, *, architecture: bool) -> None:
        loss = engine.loss("weights", epoch, step, learn_architecture=architecture)
        engine.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        engine.move_weights()
        if architecture:
            engine.move_architecture()


@dataclass(frozen=True)
class Alternating(Objective):
    """Architecture step on a fresh batch first, then weight step; `halves` makes it bilevel (GAEA, eq. 2)."""

    name: str = "erm-alternating"
    passes: ClassVar[int] = 2

    def step(self, engine: Engine, epoch: int, step: int, *, architecture: bool) -> None:
        if architecture:
            self.architecture_step(engine, epoch, step)
        loss = engine.loss("weights", epoch, step, learn_architecture=False)
        engine.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        engine.move_weights()

    def architecture_step(self, engine: Engine, epoch: int, step: int) -> None:
        loss = engine.loss("architecture", epoch, step, learn_architecture=True)
        engine.set_architecture_grad(torch.autograd.grad(loss, engine.theta()))
        engine.move_architecture()


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
    radius: float = 1e-2

    def architecture_step(self, engine: Engine, epoch: int, step: int) -> None:
        shared, theta = engine.shared(), engine.theta()
        rate = engine.weight_lr
        start = [p.detach().clone() for p in shared]
        train = engine.loss("weights", epoch, step, learn_architecture=False, record=False)
        _assign(shared, engine.descended(torch.autograd.grad(train, shared)))
        outer = engine.loss("architecture", epoch, step, learn_architecture=True)
        grads = torch.autograd.grad(outer, [*theta, *shared], allow_unused=True, materialize_grads=True)
        direct, by_shared = grads[: len(theta)], grads[len(theta) :]
        width = self.radius / torch.cat([g.flatten() for g in by_shared]).norm().clamp_min(1e-12)
        sides = []
        for sign in (1.0, -1.0):
            _assign(shared, [p + sign * width * v for p, v in zip(start, by_shared, strict=True)])
            loss = engine.loss("weights", epoch, step, learn_architecture=True, record=False)
            sides.append(torch.autograd.grad(loss, theta))
        _assign(shared, start)
        mixed = [(plus - minus) / (2 * width) for plus, minus in zip(*sides, strict=True)]
        engine.set_architecture_grad([d - rate * m for d, m in zip(direct, mixed, strict=True)])
        engine.move_architecture()


@dataclass(frozen=True)
class Clipped(Alternating):
    """The architecture follows the mean of gradients that were clipped example by example (XNAS).

    No entry of any example's gradient exceeds `bound`, so none of their mean does.
    """

    name: str = "erm-alternating"
    bound: float = 1.0

    def architecture_step(self, engine: Engine, epoch: int, step: int) -> None:
        grads = engine.example_gradients("architecture", epoch, step)
        engine.set_architecture_grad([clipped_mean(grad, self.bound) for grad in grads])
        engine.move_architecture()


@dataclass(frozen=True)
class ClippedBilevel(Clipped):
    """The same, on the other half of the data."""

    name: str = "bilevel"
    halves: ClassVar[bool] = True


@dataclass(frozen=True)
class ScoreFunction(Alternating):
    """The distribution moves towards architectures that did well: the gradient of the mean of credit * log p.

    A step draws `samples` architectures, scores them on one batch of the other half of the data without a backward
    pass, and adds `entropy` times the distribution's entropy to what is maximised.
    """

    halves: ClassVar[bool] = True
    samples: int = 2
    entropy: float = 0.0

    @abstractmethod
    def credit(self, engine: Engine, losses: Tensor, accuracies: Tensor) -> Tensor:
        """How good each architecture was, compared with what was to be expected."""

    def architecture_step(self, engine: Engine, epoch: int, step: int) -> None:
        answers = engine.policy.sample(self.samples, engine.generator("answers", epoch, step))
        credit = self.credit(engine, *engine.scores(answers, "architecture", epoch, step))
        log_prob, entropy = engine.policy.likelihood(answers)
        loss = -(credit * log_prob).mean() - self.entropy * entropy.mean()
        grads = torch.autograd.grad(loss, engine.theta(), allow_unused=True, materialize_grads=True)
        engine.set_architecture_grad(grads)
        engine.move_architecture()


@dataclass(frozen=True)
class Reinforce(ScoreFunction):
    """Credit is accuracy less its moving average (ENAS)."""

    name: str = "reinforce"
    samples: int = 4
    entropy: float = 1e-4
    decay: float = 0.99

    def credit(self, engine: Engine, losses: Tensor, accuracies: Tensor) -> Tensor:
        mean = float(accuracies.mean())
        before = engine.memory.get("baseline", mean)
        engine.memory["baseline"] = baseline = self.decay * before + (1 - self.decay) * mean
        return accuracies - baseline


@dataclass(frozen=True)
class Ranking(ScoreFunction):
    """Credit is by rank: 1 for the best ceil(n / 4) of n samples, -1 for as many of the worst, else 0 (ASNG).

    Architectures of equal loss share the mean of their credits.
    """

    name: str = "ranking"

    def credit(self, engine: Engine, losses: Tensor, accuracies: Tensor) -> Tensor:
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

    def step(self, engine: Engine, epoch: int, step: int, *, architecture: bool) -> None:
        coin = engine.generator("block", epoch, step)
        theta_moves = architecture and bool(torch.rand((), generator=coin) < 0.5)
        loss = engine.loss("weights", epoch, step, learn_architecture=theta_moves)
        if theta_moves:
            engine.set_architecture_grad(torch.autograd.grad(loss, engine.theta()))
            engine.move_architecture()
        else:
            engine.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            engine.move_weights()

    def keeps(self, engine: Engine, iterate: int, last: int) -> bool:
        return iterate == 1 + int(torch.randint(last, (), generator=engine.generator("iterate")))


@dataclass(frozen=True)
class WeightsOnly(Objective):
    """The shared weights learn, there is no architecture to move (RS-WS)."""

    name: str = "weights"

    def step(self, engine: Engine, epoch: int, step: int, *, architecture: bool) -> None:
        loss = engine.loss("weights", epoch, step, learn_architecture=False)
        engine.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        engine.move_weights()


def _assign(parameters: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(value)
