"""By how much one architecture is better than another, with an interval: seeds vary, and so do the rows that judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from nasight.errors import RequestError
from nasight.studies.finding._race import Outcome


@dataclass(frozen=True)
class Difference:
    """Winner less baseline, in points, with an interval of this level."""

    mean: float
    low: float
    high: float
    level: float

    @property
    def better(self) -> bool | None:
        """True or False where the interval says so, None where it holds zero."""
        return True if self.low > 0 else False if self.high < 0 else None

    def within(self, most: float) -> Difference:
        """The same with an interval that reaches no further than `most` to either side: more is not possible.

        >>> Difference(-37.7, -112.1, 36.8, 0.95).within(100.0)
        Difference(mean=-37.7, low=-100.0, high=36.8, level=0.95)
        """
        return replace(self, low=max(self.low, -most), high=min(self.high, most))


def difference(winner: Sequence[Outcome], baseline: Sequence[Outcome], level: float = 0.95) -> Difference:
    """The difference of two architectures that were trained with the same seeds and judged by the same rows.

    Two things vary: the seed, over which the trainings are paired, and which rows happened to judge. Their variances
    add; the degrees of freedom are Welch's and Satterthwaite's. Where rows are right or wrong, one for either side is
    added to their variance (Agresti and Min 2005): few rows would underestimate it.

    >>> right = np.array([True] * 900 + [False] * 100)
    >>> a = [Outcome(90.0, right), Outcome(91.0, right), Outcome(92.0, right)]
    >>> b = [Outcome(80.0, right), Outcome(80.0, right), Outcome(80.0, right)]
    >>> found = difference(a, b)
    >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2), found.better
    (11.0, 8.69, 13.31, True)
    """
    parts = variances(winner, baseline)
    variance = sum(v for v, _ in parts)
    mean = float(np.mean([a.accuracy - b.accuracy for a, b in zip(winner, baseline, strict=True)]))
    if variance == 0:
        return Difference(mean, mean, mean, level)
    freedom = variance**2 / sum(v**2 / k for v, k in parts)
    reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * math.sqrt(variance)
    return Difference(mean, mean - reach, mean + reach, level)


def variances(winner: Sequence[Outcome], baseline: Sequence[Outcome]) -> list[tuple[float, int]]:
    """What makes a difference uncertain: the variance of its mean over seeds, and over rows where they are known; each
    with its degrees of freedom.
    """
    if len(winner) != len(baseline) or len(winner) < 2:
        raise RequestError(f"a difference needs the same two or more seeds on both sides, got {len(winner)}")
    pairs = np.array([a.accuracy - b.accuracy for a, b in zip(winner, baseline, strict=True)])
    parts = [(float(pairs.var(ddof=1)) / len(pairs), len(pairs) - 1)]
    rights = [[o.right for o in side if o.right is not None] for side in (winner, baseline)]
    if all(len(side) == len(winner) for side in rights):
        a, b = (np.mean(np.stack(side), axis=0) for side in rights)
        apart = a - b
        if all(right.dtype == bool for side in rights for right in side):
            apart = np.concatenate([apart, [1.0, -1.0]])
        if len(apart) > 1:
            parts.append((1e4 * float(apart.var(ddof=1)) / len(apart), len(apart) - 1))
    return parts
