"""Training, validation and test rows of a selection, and the solver calls made on them."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError
from nasight.features._family import Config, Family, RowSource
from nasight.features._linear import LinearModel, one_vs_rest
from nasight.features._methods import Call, Outcome
from nasight.features._ridge import ridge
from nasight.features._svm import svm

SPLIT_SEED = 0  # which rows validate is part of the problem: every seed of a search sees the same
LAST_OF_CIFAR = 10_000
SHARE = 0.2


@dataclass(frozen=True)
class Part:
    """Rows and the numbers of their classes."""

    x: Any
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: NDArray[np.int64]) -> Part:
        return Part(self.x[index] if hasattr(self.x, "shape") else [self.x[i] for i in index], self.y[index])


@dataclass(frozen=True)
class Problem:
    """What is searched on; `test` is None where the data have no test part."""

    train: Part
    validation: Part
    test: Part | None
    classes: int


def split(rows: Any, validation: float | int | str | None = None, examples: int | None = None) -> Problem:
    """Training and validation rows, by the data set's own rule unless `validation` says otherwise.

    `validation` is a share of the training rows, drawn at random (a fifth by default); a whole number, the last so
    many training rows (10,000 on CIFAR-10); or "test", one half of the test rows, drawn at random (IMDb). `examples`
    keeps so many of the training rows that are left, drawn at random. The draws do not depend on a search's seed.
    """
    train = Part(rows.train_x, np.asarray(rows.train_y, dtype=np.int64))
    test = None if rows.test_y is None else Part(rows.test_x, np.asarray(rows.test_y, dtype=np.int64))
    rule = _default(rows.name) if validation is None else validation
    rng = np.random.default_rng(SPLIT_SEED)
    if rule == "test":
        if test is None or len(test) < 2:
            raise RequestError(f"half of the test rows cannot validate: {rows.name} has no test part")
        order = rng.permutation(len(test))
        held, test = test.take(np.sort(order[: len(test) // 2])), test.take(np.sort(order[len(test) // 2 :]))
    else:
        count = _count(rule, len(train))
        index = np.arange(len(train)) if _is_count(rule) else rng.permutation(len(train))
        held, train = train.take(np.sort(index[-count:])), train.take(np.sort(index[:-count]))
    if examples is not None:
        if examples < 1:
            raise RequestError(f"examples is at least 1, got {examples}")
        if examples < len(train):
            train = train.take(np.sort(rng.permutation(len(train))[:examples]))
    if len(np.unique(train.y)) < 2:
        raise RequestError(f"the training rows of {rows.name} are of one class; two or more are needed")
    return Problem(train, held, test, len(rows.classes))


def _default(name: str) -> float | int | str:
    own: dict[str, float | int | str] = {"cifar-10": LAST_OF_CIFAR, "imdb": "test"}
    return own.get(name, SHARE)


def _is_count(rule: float | int | str) -> bool:
    return isinstance(rule, int) and not isinstance(rule, bool)


def _count(rule: float | int | str, rows: int) -> int:
    if isinstance(rule, (str, bool)):
        raise RequestError(f'validation is a share, a number of rows or "test", got {rule!r}')
    if isinstance(rule, int):
        if not 0 < rule < rows:
            raise RequestError(f"validation takes between 1 and {rows - 1} of {rows} training rows, got {rule}")
        return rule
    if not 0 < rule < 1:
        raise RequestError(f"a share for validation lies between 0 and 1, got {rule}")
    return min(max(round(rule * rows), 1), rows - 1)


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


class Bench:
    """Makes solver calls: features of a family on a problem's rows, one linear model, scores."""

    def __init__(
        self,
        family: Family,
        problem: Problem,
        *,
        penalty: float = 0.5,
        memory: int | None = None,
        seed: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.problem, self.penalty, self.memory, self.seed = problem, penalty, memory, seed
        self.solver, self.clock = family.solver, clock
        start = clock()
        self.fitted = family.fit(problem.train.x, problem.train.y)
        self.seconds_to_fit = clock() - start
        self.peak_bytes = 0

    def solve(self, call: Call, configs: Sequence[Config], key: str | int) -> Solved:
        """Features, solve and validation scores of one call; everything random follows from the seed and `key`."""
        start = self.clock()
        seed = seed_for(self.seed, "features", key)
        rng = np.random.default_rng(seed_for(self.seed, "assignment", key))
        train, validation = self.problem.train, self.problem.validation
        given = [rng.integers(len(configs), size=len(part)) for part in (train, validation)]
        model = self.fit(self.features(train, configs, given[0], call.dimension, seed), train.y)
        scores = model.scores(self.features(validation, configs, given[1], call.dimension, seed))
        right, losses = self.judge(scores, validation.y)
        outcome = Outcome(_means(right, given[1], len(configs)), _means(losses, given[1], len(configs)))
        return Solved(call, outcome, model, seed, self.clock() - start)

    def features(
        self, part: Part, configs: Sequence[Config], assignment: NDArray[np.int64], dimension: int, seed: int
    ) -> RowSource:
        return self.fitted.features(part.x, list(configs), assignment, dimension, seed)

    def fit(self, x: RowSource, y: NDArray[np.int64]) -> LinearModel:
        if self.solver == "svm":
            model = svm(x, y, C=1.0, classes=self.problem.classes)
        else:
            model = ridge(x, one_vs_rest(y, self.problem.classes), penalty=self.penalty, memory=self.memory)
        self.peak_bytes = max(self.peak_bytes, model.peak_bytes)
        return model

    def judge(self, scores: NDArray[Any], y: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """For each row whether it is right, and its loss: squared error over the classes, or hinge."""
        targets = np.asarray(one_vs_rest(y, self.problem.classes), dtype=np.float64)
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
