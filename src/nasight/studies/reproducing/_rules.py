"""Rules that turn measurements into a verdict; each is fixed before anything is measured."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import stats

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
LEVEL = 0.95
FEW = 8
"""A statistical claim with fewer seeds than this is decided by chance too often."""
CASES = "cases"
"""How many cases a measurement of an exact claim is about."""
Values = Mapping[str, float]
"""What was measured with one seed, by name."""


@dataclass(frozen=True)
class Judgment:
    """The figure of a claim, its interval where it has one, and the verdict that the rule gives."""

    value: float
    low: float | None
    high: float | None
    verdict: str


class Rule(ABC):
    """When a claim holds, in words and as a function of what was measured."""

    statistical = False
    """Whether seeds are a sample, over which there is an interval."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The rule in a sentence."""

    @abstractmethod
    def judge(self, rows: Sequence[Values], figure: str) -> Judgment:
        """The verdict on one row of values per seed; `figure` names the value that counts."""


@dataclass(frozen=True)
class InsideInterval(Rule):
    """The 95 % interval of the mean over the seeds (Student) lies between two ends, or outside, or neither.

    >>> rule = InsideInterval(low=0.0)
    >>> rule.judge([{"gain": 1.0}, {"gain": 1.2}, {"gain": 0.9}], "gain").verdict
    'holds'
    >>> rule.judge([{"gain": 1.0}, {"gain": -1.2}, {"gain": 0.9}], "gain").verdict
    'undecided'
    """

    low: float = -math.inf
    high: float = math.inf
    statistical = True

    @property
    def text(self) -> str:
        start = f"holds if the {100 * LEVEL:.0f} % interval over the seeds lies"
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{start} between {self.low:g} and {self.high:g}, does not hold if it lies outside, else undecided"
        side, other, end = ("above", "below", self.low) if math.isfinite(self.low) else ("below", "above", self.high)
        return f"{start} {side} {end:g}, does not hold if it lies {other}, else undecided"

    def judge(self, rows: Sequence[Values], figure: str) -> Judgment:
        values = [row[figure] for row in rows]
        mean = fmean(values)
        if len(values) < 2:
            return Judgment(mean, None, None, UNDECIDED)
        reach = float(stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
        low, high = mean - reach, mean + reach
        if low > self.low and high < self.high:
            return Judgment(mean, low, high, HOLDS)
        return Judgment(mean, low, high, FAILS if high < self.low or low > self.high else UNDECIDED)


@dataclass(frozen=True)
class Within(Rule):
    """Every case is at most so far from what is claimed.

    >>> Within(1e-6).judge([{"distance": 1e-9, "cases": 10}], "distance").verdict
    'holds'
    """

    tolerance: float

    @property
    def text(self) -> str:
        return f"holds if every case is within {self.tolerance:g}, else it does not hold"

    def judge(self, rows: Sequence[Values], figure: str) -> Judgment:
        worst = max(row[figure] for row in rows)
        return Judgment(worst, None, None, HOLDS if worst <= self.tolerance else FAILS)


@dataclass(frozen=True)
class NoViolation(Rule):
    """No case violates the claim; without any case nothing is decided.

    >>> NoViolation().judge([{"violations": 0, "cases": 10}, {"violations": 1, "cases": 10}], "violations")
    Judgment(value=1, low=None, high=None, verdict='does not hold')
    """

    @property
    def text(self) -> str:
        return "holds if no case violates it, does not hold if one does, undecided without a case"

    def judge(self, rows: Sequence[Values], figure: str) -> Judgment:
        violations = sum(row[figure] for row in rows)
        verdict = FAILS if violations else HOLDS if sum(row[CASES] for row in rows) else UNDECIDED
        return Judgment(violations, None, None, verdict)
