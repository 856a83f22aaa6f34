"""Black-box searches for many workers: the rows of `RACERS` as they are asked and told, one training at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nasight.tables._cluster import Job, Policy
from nasight.tables._kernel_model import KernelModel
from nasight.tables._trials import RaceProblem


class RandomPolicy(Policy):
    """Uniform cells."""

    def __init__(self, problem: RaceProblem, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng

    def ask(self) -> Job:
        return self.problem.draw(self.rng)[1], 12

    def tell(self, job: Job, accuracy: float) -> None:
        pass


class EvolutionPolicy(Policy):
    """Regularized evolution, asynchronous as Real et al. ran it: whoever is free asks for a child of those alive."""

    def __init__(self, problem: RaceProblem, rng: np.random.Generator, population: int = 10, sample: int = 3) -> None:
        self.problem, self.rng, self.population, self.sample = problem, rng, population, sample
        self.alive: deque[tuple[float, list[int]]] = deque()
        self.asked = 0

    def ask(self) -> Job:
        self.asked += 1
        if len(self.alive) < self.population:
            return self.problem.draw(self.rng)[1], 12
        drawn = (self.alive[i] for i in self.rng.integers(len(self.alive), size=self.sample))
        _, parent = max(drawn, key=lambda one: one[0])
        sizes, child = self.problem.sizes, list(parent)
        decision = int(self.rng.integers(len(sizes)))
        child[decision] = (child[decision] + int(self.rng.integers(1, sizes[decision]))) % sizes[decision]
        return self.problem.cell(child), 12

    def tell(self, job: Job, accuracy: float) -> None:
        options = [int(i) for i in np.unravel_index(job[0], self.problem.sizes)]
        self.alive.append((accuracy, options))
        if len(self.alive) > self.population:
            self.alive.popleft()


@dataclass
class _Bracket:
    """One bracket of Hyperband: a rung ends when all of its trainings have."""

    rung: int
    waiting: list[int]
    running: int = 0
    scores: list[tuple[float, int]] = field(default_factory=list)


class BracketPolicy(Policy):
    """Hyperband's brackets; where the rung of one has to wait for its last trainings, the next bracket begins."""

    def __init__(
        self, propose: Callable[[], int], lengths: tuple[int, ...], eta: int, learn: Callable[[int, int, float], None]
    ) -> None:
        self.propose, self.lengths, self.eta, self.learn = propose, lengths, eta, learn
        self.open: list[_Bracket] = []
        self.begun = 0
        self.running: dict[Job, list[_Bracket]] = {}

    def ask(self) -> Job:
        bracket = next((b for b in self.open if b.waiting), None)
        if bracket is None:
            bracket = self._begin()
        cell = bracket.waiting.pop(0)
        if cell < 0:
            cell = self.propose()
        bracket.running += 1
        job = (cell, self.lengths[bracket.rung])
        self.running.setdefault(job, []).append(bracket)
        return job

    def _begin(self) -> _Bracket:
        rungs = len(self.lengths)
        first = self.begun % rungs
        later = rungs - 1 - first
        self.begun += 1
        # -1: to be proposed when a worker asks, with all that is known by then.
        bracket = _Bracket(first, [-1] * (rungs * self.eta**later // (later + 1)))
        self.open.append(bracket)
        return bracket

    def tell(self, job: Job, accuracy: float) -> None:
        bracket = self.running[job].pop(0)
        bracket.running -= 1
        bracket.scores.append((accuracy, job[0]))
        self.learn(job[0], bracket.rung, accuracy)
        if bracket.waiting or bracket.running:
            return
        if bracket.rung + 1 == len(self.lengths):
            self.open.remove(bracket)
            return
        kept = sorted(bracket.scores, reverse=True)[: max(1, len(bracket.scores) // self.eta)]
        bracket.rung, bracket.waiting, bracket.scores = bracket.rung + 1, [cell for _, cell in kept], []


def hyperband_policy(problem: RaceProblem, rng: np.random.Generator) -> BracketPolicy:
    """Hyperband with eta 16 and rungs of 12 and 200 epochs."""
    return BracketPolicy(lambda: problem.draw(rng)[1], (12, 200), 16, lambda cell, rung, accuracy: None)


def bohb_policy(problem: RaceProblem, rng: np.random.Generator) -> BracketPolicy:
    """BOHB as NAS-Bench-201 ran it: eta 3, four rungs of 12 epochs, kernel densities per rung."""
    model = KernelModel(problem.sizes, rng, rungs=4)
    return BracketPolicy(model.propose, (12,) * 4, 3, model.learn)


PolicyMaker = Callable[[RaceProblem, np.random.Generator], Policy]
POLICIES: dict[str, PolicyMaker] = {
    "rs": RandomPolicy,
    "rea": EvolutionPolicy,
    "hyperband": hyperband_policy,
    "bohb": bohb_policy,
}
"""Names of black-box searches that many workers can run."""
