"""Training, validation and test rows of a selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError

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
class SelectionData:
    """The rows of a selection, as `split` gives them.

    Parameters
    ----------
    train, validation : the rows that models are fitted on, and those that configurations are compared by.
    test : the rows that a choice is tested on, or None.
    classes : the number of classes.
    """

    train: Part
    validation: Part
    test: Part | None
    classes: int


def split(rows: Any, validation: float | int | str | None = None, examples: int | None = None) -> SelectionData:
    """Training, validation and test rows; the draws do not depend on a search's seed.

    Parameters
    ----------
    rows : the data, as `nasight.data.rows` gives them.
    validation : a share of the training rows, drawn at random; a whole number, this many of the last training rows; or
        "test", one half of the test rows, drawn at random. By default the data set's own rule: the last 10,000 on
        CIFAR-10, "test" on IMDb, a fifth else.
    examples : at most this many of the training rows that are left, drawn at random; all by default.

    >>> from nasight.data import rows
    >>> data = split(rows("digits"), 0.1, examples=500)
    >>> len(data.train), len(data.validation)
    (500, 144)
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
    return SelectionData(train, held, test, len(rows.classes))


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
