"""The race: whole trainings of growing length, in which candidates that are surely behind leave.

It decides and does not train: `ask` says what is to be trained next, `tell` takes an outcome, `close` ends a rung. So
the same race runs over processes here and over a simulated cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from nasight.errors import RequestError, RunError

Rows = NDArray[Any]
"""Whether each judging row is right, or its score."""


@dataclass(frozen=True)
class Candidate:
    """An architecture in the race, and who proposed it."""

    architecture: str
    proposed_by: str
    parameters: int
    latency: float | None = None
    control: bool = False
    """Whether it runs along to be compared with, and never leaves."""
    also: tuple[str, ...] = ()
    """Who else proposed it."""
    seeded: bool = True
    """Whether its training depends on a seed."""


@dataclass(frozen=True, order=True)
class Entry:
    """One training: an architecture on a rung with a seed."""

    architecture: str
    rung: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What a training came to: accuracy in percent, and which of the judging rows it got right, where that is known.

    For other tasks 100 times the score, and the score of each row.
    """

    accuracy: float
    right: Rows | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Left:
    """Why a candidate is out: on which rung, and "behind" (an interval says so), "time" or "failed"."""

    rung: int
    reason: str


@dataclass(frozen=True)
class Agreement:
    """How well a rung predicted the next: Kendall's tau over the candidates of both."""

    rung: int
    candidates: int
    tau: float
    p: float
    """The probability of such a tau, or a larger one, among rungs that have nothing in common."""

    @property
    def predicts(self) -> bool:
        return self.p < 0.1


@dataclass
class Race:
    """Successive halving over real trainings.

    Parameters
    ----------
    places : how many candidates each rung has time for, controls not counted.
    level : of the intervals by which candidates leave.
    seeds : how often controls are trained on the lowest rung; their spread is the noise of a seed.
    """

    places: list[int]
    level: float = 0.95
    seeds: int = 2
    candidates: dict[str, Candidate] = field(default_factory=dict)
    outcomes: dict[Entry, Outcome] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)
    agreements: list[Agreement] = field(default_factory=list)
    rung: int = 0
    silent: set[Entry] = field(default_factory=set)
    """Further seeds of controls that failed."""
    _accuracies: dict[tuple[str, int], list[float]] = field(default_factory=dict, init=False, repr=False)
    """Accuracies by architecture and rung: with thousands of candidates `outcomes` is too long to look through."""

    def __post_init__(self) -> None:
        for entry, outcome in self.outcomes.items():
            self._accuracies.setdefault((entry.architecture, entry.rung), []).append(outcome.accuracy)

    def enter(self, candidates: Iterable[Candidate]) -> None:
        """Let candidates begin on the lowest rung; one that is there already gets another proposer."""
        for new in candidates:
            old = self.candidates.get(new.architecture)
            if old is None:
                self.candidates[new.architecture] = new
            elif new.proposed_by not in (old.proposed_by, *old.also):
                also = (*old.also, new.proposed_by)
                control = old.control or new.control
                self.candidates[new.architecture] = replace(old, control=control, also=also)

    def active(self) -> list[Candidate]:
        """Those who have not left, in the order in which they entered."""
        return [c for name, c in self.candidates.items() if name not in self.left]

    def ask(self) -> list[Entry]:
        """The trainings that this rung still needs; late entries run the rungs below it first."""
        wanted = []
        for candidate in self.active():
            for seed in range(self.seeds if candidate.control else 1):
                # Further seeds of a control on the lowest rung alone: they measure the noise of a seed.
                rungs = range(self.rung + 1 if seed == 0 else 1)
                steps = (Entry(candidate.architecture, rung, seed) for rung in rungs)
                missing = next((e for e in steps if e not in self.outcomes and e not in self.silent), None)
                if missing is not None:
                    wanted.append(missing)
        return wanted

    def tell(self, entry: Entry, outcome: Outcome | None) -> None:
        """Take the outcome of a training; None: it failed, and its candidate leaves.

        A further seed only measures the noise: where that one fails, the control stays, and is asked for no more.
        """
        if outcome is None and entry.seed > 0:
            self.silent.add(entry)
        elif outcome is None:
            self.left[entry.architecture] = Left(entry.rung, "failed")
        else:
            self.outcomes[entry] = outcome
            self._accuracies.setdefault((entry.architecture, entry.rung), []).append(outcome.accuracy)

    def leave(self, entry: Entry) -> None:
        """Let a candidate leave before this training, for which there is no time."""
        self.left[entry.architecture] = Left(entry.rung, "time")

    def accuracy(self, architecture: str, rung: int | None = None) -> float:
        """The mean accuracy of a candidate on a rung (this one); minus infinity where it has none."""
        rung = self.rung if rung is None else rung
        found = self._accuracies.get((architecture, rung), [])
        return float(np.mean(found)) if found else -math.inf

    def ranked(self, rung: int | None = None) -> list[Candidate]:
        """Candidates with an outcome on a rung (this one), the best first.

        Of equal ones the one that was better on the rung before is ahead, then the smaller one.
        """
        rung = self.rung if rung is None else rung
        there = [c for c in self.candidates.values() if (c.architecture, rung) in self._accuracies]
        accuracies = [self.accuracy(c.architecture, rung) for c in there]

        def before(candidate: Candidate) -> float:
            return self.accuracy(candidate.architecture, rung - 1)

        order = sorted(
            zip(accuracies, there, strict=True),
            key=lambda of: (-of[0], -before(of[1]), of[1].parameters, of[1].architecture),
        )
        return [candidate for _, candidate in order]

    def close(self) -> list[Candidate]:
        """End this rung: some leave, the others go on to the next. Returns those that go on."""
        if self.ask():
            raise RequestError(f"rung {self.rung} of the race still has {len(self.ask())} trainings to wait for")
        if self.rung + 1 >= len(self.places):
            raise RequestError("the last rung of the race has no next one")
        self.end()
        running = [c for c in self.ranked() if c.architecture not in self.left and not c.control]
        if not self.ranked():
            raise RunError("no training of the race ended: every one failed")
        leader = self.ranked()[0]
        kept, deviation = [], self.seed_deviation()
        for place, candidate in enumerate(running):
            lower = place >= math.ceil(len(running) / 2)
            if lower and self.behind(candidate, leader, deviation):
                self.left[candidate.architecture] = Left(self.rung, "behind")
            else:
                kept.append(candidate)
        places = self.places[self.rung + 1]
        for candidate in kept[places:]:
            self.left[candidate.architecture] = Left(self.rung, "time")
        self.rung += 1
        return kept[:places]

    def misled(self) -> bool:
        """Whether the rung before this one, whose trainings are known, said nothing about it."""
        return self.rung > 0 and not self._agreement(self.rung - 1).predicts

    def away(self) -> list[Candidate]:
        """Those that had no time on this rung, the best of the rung before first."""
        away = Left(self.rung - 1, "time")
        return [c for c in self.ranked(self.rung - 1) if self.left.get(c.architecture) == away]

    def candidates_on(self, rung: int) -> int:
        """How many have an outcome on a rung."""
        return sum(at == rung for _, at in self._accuracies)

    def recall(self, number: int) -> list[Candidate]:
        """Let so many of those that had no time on this rung come back, the best of the rung before first."""
        back = self.away()[:number]
        for candidate in back:
            del self.left[candidate.architecture]
        return back

    def end(self) -> None:
        """All of this rung is trained: how well the one before predicted it is kept."""
        if self.rung and len(self.agreements) < self.rung:
            self.agreements.append(self._agreement(self.rung - 1))

    def behind(self, candidate: Candidate, leader: Candidate, seed_deviation: float) -> bool:
        """Whether an interval says that the leader is better, on the rows that judge both."""
        a, b = (self.outcomes.get(Entry(c.architecture, self.rung, 0)) for c in (leader, candidate))
        if a is None or b is None or leader.architecture == candidate.architecture:
            return False
        low, _ = paired_interval(a, b, seed_deviation=seed_deviation, level=self.level)
        return low > 0

    def seed_deviation(self) -> float:
        """The standard deviation of an accuracy over seeds, from the candidates that were trained with several."""
        several = [
            np.var(values, ddof=1)
            for (name, _), values in self._accuracies.items()
            if len(values) > 1 and self.candidates[name].seeded
        ]
        return float(np.sqrt(np.mean(several))) if several else 0.0

    def _agreement(self, rung: int) -> Agreement:
        both = [c.architecture for c in self.ranked(rung) if math.isfinite(self.accuracy(c.architecture, rung + 1))]
        before, after = ([self.accuracy(name, at) for name in both] for at in (rung, rung + 1))
        return agreement(rung, before, after)


def agreement(rung: int, before: Sequence[float], after: Sequence[float]) -> Agreement:
    """Kendall's tau between accuracies of the same candidates on two rungs."""
    if len(before) < 3 or len(set(before)) < 2 or len(set(after)) < 2:
        return Agreement(rung, len(before), 0.0, 1.0)
    found = stats.kendalltau(before, after, alternative="greater")
    return Agreement(rung, len(before), float(found.statistic), float(found.pvalue))


def paired_interval(a: Outcome, b: Outcome, *, seed_deviation: float = 0.0, level: float = 0.95) -> tuple[float, float]:
    """An interval for the difference in accuracy of two trainings, in points.

    The rows that judged both are compared one by one; the noise of the two seeds comes on top of theirs.
    """
    mean = a.accuracy - b.accuracy
    variance = 2 * seed_deviation**2
    if a.right is not None and b.right is not None and len(a.right) == len(b.right) > 1:
        differences = a.right.astype(float) - b.right.astype(float)
        variance += 1e4 * float(differences.var(ddof=1)) / len(differences)
    reach = stats.norm.ppf(0.5 + level / 2) * math.sqrt(variance)
    return mean - reach, mean + reach
