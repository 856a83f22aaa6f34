"""The solver calls of a selection: features, one linear model, scores on validation rows."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.features._family import Config, Family, RowSource
from nasight.features._linear import LinearModel, one_vs_rest
from nasight.features._methods import Call, Outcome
from nasight.features._ridge import ridge
from nasight.features._split import Part, SelectionData
from nasight.features._svm import svm


def seed_for(seed: int, *keys: str | int) -> int:
    """A seed that depends on the seed and the keys only."""
    numbers = [zlib.crc32(key.encode()) if isinstance(key, str) else key for key in keys]
    return int(np.random.SeedSequence([seed, *numbers]).generate_state(1)[0])


@dataclass(frozen=True)
class Solved:
    """A solver call that was made: the weights, what they did on validation rows, and what it cost."""

    call: Call
    outcome: Outcome
    model: LinearModel
    seed: int
    seconds: float


class Evaluator:
    """Makes solver calls: features of a family, one linear model on the training rows, scores on validation rows.

    Parameters
    ----------
    family : the feature maps; they are fitted on the training rows here.
    data : training, validation and test rows; see `split`.
    penalty : ridge's lambda.
    memory : at most this many bytes are held by a solver call; half of what the machine has available by default.
    seed : everything random follows from it.
    clock : gives seconds; the time of the wall by default.

    >>> from nasight.data import rows
    >>> from nasight.features import family, split
    >>> fourier = family("fourier")
    >>> evaluator = Evaluator(fourier, split(rows("digits")))
    >>> configs = fourier.sample(2, np.random.default_rng(0))
    >>> len(evaluator.solve(Call((0, 1), 50, shared=True), configs, "example").outcome.accuracy)
    2
    """

    def __init__(
        self,
        family: Family,
        data: SelectionData,
        *,
        penalty: float = 0.5,
        memory: int | None = None,
        seed: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.data, self.penalty, self.memory, self.seed = data, penalty, memory, seed
        self.solver, self.tolerance, self.clock = family.solver, family.tolerance, clock
        start = clock()
        self.fitted = family.fit(data.train.x, data.train.y)
        self.seconds_to_fit = clock() - start
        self.peak_bytes = 0

    def solve(self, call: Call, configs: Sequence[Config], key: str | int) -> Solved:
        """Features, solve and validation scores of one call.

        Parameters
        ----------
        call : which configurations (by number) share the weights, and at which dimension.
        configs : these configurations.
        key : everything random follows from the seed and this.
        """
        start = self.clock()
        seed = seed_for(self.seed, "features", key)
        rng = np.random.default_rng(seed_for(self.seed, "assignment", key))
        train, validation = self.data.train, self.data.validation
        given = [rng.integers(len(configs), size=len(part)) for part in (train, validation)]
        model = self.fit(self.features(train, configs, given[0], call.dimension, seed), train.y)
        scores = model.scores(self.features(validation, configs, given[1], call.dimension, seed))
        right, losses = self.judge(scores, validation.y)
        outcome = Outcome(_means(right, given[1], len(configs)), _means(losses, given[1], len(configs)))
        return Solved(call, outcome, model, seed, self.clock() - start)

    def features(
        self, part: Part, configs: Sequence[Config], assignment: NDArray[np.int64], dimension: int, seed: int
    ) -> RowSource:
        """The features of a part's rows, row i by configs[assignment[i]]."""
        return self.fitted.features(part.x, list(configs), assignment, dimension, seed)

    def fit(self, x: RowSource, y: NDArray[np.int64]) -> LinearModel:
        """The linear model of these features and classes, by the family's solver."""
        if self.solver == "svm":
            model = svm(x, y, C=1.0, tolerance=self.tolerance, classes=self.data.classes)
        else:
            model = ridge(x, one_vs_rest(y, self.data.classes), penalty=self.penalty, memory=self.memory)
        self.peak_bytes = max(self.peak_bytes, model.peak_bytes)
        return model

    def judge(self, scores: NDArray[Any], y: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """For each row whether it is right, and its loss: squared error over the classes, or hinge."""
        targets = np.asarray(one_vs_rest(y, self.data.classes), dtype=np.float64)
        right = (_classes(scores) == y).astype(np.float64)
        if self.solver == "svm":
            return right, np.maximum(0.0, 1.0 - targets * scores).mean(1)
        return right, np.square(targets - scores).mean(1)

    def predict(self, model: LinearModel, config: Config, x: Any, dimension: int, seed: int) -> NDArray[np.int64]:
        """Class numbers of rows by a model on one configuration's features."""
        part = Part(x, np.zeros(x.shape[0] if hasattr(x, "shape") else len(x), dtype=np.int64))
        return _classes(model.scores(self.features(part, [config], part.y, dimension, seed)))

    def accuracy(self, model: LinearModel, config: Config, part: Part, dimension: int, seed: int) -> float:
        """The share of rows that the model gets right on one configuration's features."""
        return float((self.predict(model, config, part.x, dimension, seed) == part.y).mean())


def _classes(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The class of the highest score; of one column, the second class where it is positive."""
    return np.asarray(scores.argmax(1) if scores.shape[1] > 1 else scores[:, 0] > 0, dtype=np.int64)


def _means(values: NDArray[Any], assignment: NDArray[np.int64], count: int) -> tuple[float | None, ...]:
    rows = np.bincount(assignment, minlength=count)
    sums = np.bincount(assignment, weights=values, minlength=count)
    return tuple(float(s / n) if n else None for s, n in zip(sums, rows, strict=True))
