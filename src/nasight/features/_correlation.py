"""Does the accuracy with shared weights tell the accuracy alone? (FeatureMaps, Figure 1)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from nasight.features._evaluator import Evaluator
from nasight.features._family import Config
from nasight.features._methods import Call


@dataclass(frozen=True)
class Correlation:
    """Validation accuracies of the same configurations, shared and alone, and how they go together."""

    shared: tuple[float, ...]
    alone: tuple[float, ...]
    pearson: float
    """The linear correlation of the two."""
    spearman: float
    """The correlation of their ranks."""


def correlation(
    evaluator: Evaluator, configs: Sequence[Config], dimension: int, key: str | int = "correlation"
) -> Correlation:
    """How accuracies with shared weights and alone go together: one shared solve, and one for each configuration.

    A configuration without a validation row in the shared round has no shared accuracy and is left out. Where
    either side is constant there is no correlation, and both figures are not a number.

    Parameters
    ----------
    evaluator : makes the solver calls.
    configs : the configurations to compare.
    dimension : the number of features in every solve.
    key : all solves use the random draws of this key.

    >>> from nasight.data import rows
    >>> from nasight.features import family, split
    >>> fourier = family("fourier")
    >>> evaluator = Evaluator(fourier, split(rows("digits"), 0.2, 200))
    >>> found = correlation(evaluator, fourier.sample(4, np.random.default_rng(0)), 20)
    >>> len(found.shared), -1 <= found.spearman <= 1
    (4, True)
    """
    numbers = tuple(range(len(configs)))
    together = evaluator.solve(Call(numbers, dimension, shared=True), configs, key).outcome.accuracy
    pairs = []
    for number, shared in zip(numbers, together, strict=True):
        if shared is not None:
            own = evaluator.solve(Call((number,), dimension, shared=False), [configs[number]], key)
            pairs.append((shared, own.outcome.accuracy[0] or 0.0))
    shared_side, alone_side = np.array(pairs).reshape(-1, 2).T
    constant = len(pairs) < 2 or np.ptp(shared_side) == 0 or np.ptp(alone_side) == 0
    return Correlation(
        tuple(shared_side.tolist()),
        tuple(alone_side.tolist()),
        float("nan") if constant else float(stats.pearsonr(shared_side, alone_side).statistic),
        float("nan") if constant else float(stats.spearmanr(shared_side, alone_side).statistic),
    )
