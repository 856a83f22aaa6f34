"""Several runs of one search: which decisions depend on the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasight.errors import RequestError

ABSENT = "not kept"
"""What a run chose where the decision does not arise: the operation of an edge that it left out."""


@dataclass(frozen=True)
class Agreement:
    """What the runs chose for one decision: the most frequent option and the share of runs that chose it."""

    name: str
    choice: str
    share: float
    counts: Mapping[str, int]

    @property
    def flips(self) -> bool:
        return len(self.counts) > 1

    def to_dict(self) -> dict[str, Any]:
        shown = {"name": self.name, "choice": self.choice, "share": self.share, "counts": dict(self.counts)}
        return {**shown, "flips": self.flips}


def agreement(choices: Sequence[Mapping[str, str]]) -> list[Agreement]:
    """Agreement on every decision that some run made; of equally frequent options the earlier run's counts.

    >>> [a.share for a in agreement([{"a": "relu", "b": "tanh"}, {"a": "relu", "b": "swish"}])]
    [1.0, 0.5]
    """
    if not choices:
        raise RequestError("there must be at least 1 run to compare, got none")
    found = []
    for name in dict.fromkeys(name for each in choices for name in each):
        counts = Counter(each.get(name, ABSENT) for each in choices)
        option, count = counts.most_common(1)[0]
        found.append(Agreement(name, option, count / len(choices), dict(counts)))
    return found


def average(weights: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of the runs' weights, group by group: still rows on the simplex."""
    names = set(weights[0])
    if any(set(each) != names for each in weights):
        raise RequestError("the runs have different groups of weights, which cannot be averaged")
    return {name: np.mean([np.asarray(each[name]) for each in weights], axis=0) for name in weights[0]}
