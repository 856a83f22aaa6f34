"""Sets of feature maps: what a search asks of them, and rows of features that are made block by block."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nasight.errors import RequestError

TOLERANCE = 0.1
"""liblinear's own for the hinge loss."""
Config = dict[str, Any]
"""One feature map of a set, in JSON values."""


@runtime_checkable
class RowSource(Protocol):
    """Rows of features that are made when they are asked for, and need not exist all at once."""

    @property
    def n(self) -> int:
        """The number of rows."""
        ...

    @property
    def dimension(self) -> int:
        """The number of features."""
        ...

    @property
    def sparse(self) -> bool:
        """Whether blocks are CSR matrices."""
        ...

    def rows(self, start: int, stop: int) -> Any:
        """The rows from start to stop, float32: an array, or a CSR matrix if `sparse`."""
        ...


class ArrayRows:
    """A matrix that exists, as a row source; a view for float32 arrays and CSR matrices."""

    def __init__(self, matrix: Any) -> None:
        self.sparse = bool(sparse.issparse(matrix))
        self.matrix = sparse.csr_matrix(matrix, dtype=np.float32) if self.sparse else np.asarray(matrix, np.float32)
        if self.matrix.ndim != 2:
            raise RequestError(f"features must be a matrix (rows, dimension), got shape {self.matrix.shape}")
        self.n, self.dimension = self.matrix.shape

    def rows(self, start: int, stop: int) -> Any:
        return self.matrix[start:stop]


@dataclass(frozen=True)
class AssignedRows:
    """Rows of which each has a configuration of its own."""

    rows: Any
    """A matrix (all rows, columns), or a list of texts."""
    where: NDArray[np.int64]
    """Which of them are meant, (n,)."""
    configs: Sequence[Config]
    which: NDArray[np.int64]
    """For each that is meant the place of its configuration in `configs`, (n,)."""

    @classmethod
    def checked(cls, rows: Any, configs: Sequence[Config], assignment: Any, index: Any) -> AssignedRows:
        size = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        where = np.arange(size) if index is None else np.asarray(index, np.int64)
        which = np.asarray(assignment, np.int64)
        if which.shape != where.shape:
            raise RequestError(f"{len(where)} rows need {len(where)} assignments, got shape {which.shape}")
        if len(which) and not 0 <= which.min() <= which.max() < len(configs):
            raise RequestError(f"assignments must be 0 to {len(configs) - 1}, got {which.min()} to {which.max()}")
        return cls(rows, where, configs, which)


class FittedFamily(ABC):
    """A set of feature maps that knows the statistics of the training rows.

    One of your own defines `_features` and `clear`.
    """

    def features(
        self,
        rows: Any,
        configs: Sequence[Config],
        assignment: NDArray[np.int64],
        dimension: int,
        seed: int,
        index: NDArray[np.int64] | None = None,
    ) -> RowSource:
        """Features of rows, each by a configuration of its own; all configurations share the draws of the seed.

        What is learned about `rows` on the way is kept for the next call with the same object, which must not change.

        Parameters
        ----------
        rows : a matrix (n, columns), or a list of n texts.
        configs : the configurations.
        assignment : for each row the place of its configuration in `configs`, (n,).
        dimension : the number of features.
        seed : the random draws of the maps follow from it.
        index : only the rows rows[index], in this order; assignment[i] then belongs to rows[index[i]].
        """
        given = AssignedRows.checked(self._checked(rows), configs, assignment, index)
        return self._features(given, dimension, seed)

    def _checked(self, rows: Any) -> Any:
        """The rows as the maps take them; a `RequestError` where they cannot."""
        return rows

    @abstractmethod
    def _features(self, given: AssignedRows, dimension: int, seed: int) -> RowSource:
        """The features of rows whose assignment was checked."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything but the statistics of the training rows that are cheap to keep."""


class Family(ABC):
    """A set of feature maps to choose from."""

    name: str
    solver: str
    """What a linear model over these features is fitted with: "ridge" or "svm"."""
    tolerance: float = TOLERANCE
    """To which an SVM is solved."""
    sized: bool = True
    """Whether the number of features can be chosen; if not, the maps have their own and `dimension` is not read."""

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> list[Config]:
        """`count` configurations, no two alike; all of the set, in random order, where it has no more."""

    @abstractmethod
    def fit(self, rows: Any, labels: Any) -> FittedFamily:
        """The set with the statistics of these training rows."""

    @abstractmethod
    def transformer(self, config: Config, dimension: int, seed: int) -> Any:
        """The scikit-learn transformer that, fitted on the training rows, gives the features of one configuration."""


def config_seed(config: Config, seed: int) -> int:
    """A seed below 2^31 of its own for each configuration."""
    digest = hashlib.sha256(json.dumps([seed, first_words(config)], sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


_FIRST_WORDS = {"normalize": "normalise", "standardize": "standardise"}
"""Scalings as the first run folders spell them."""


def first_words(config: Config) -> Config:
    """The configuration as the first run folders spell it: seeds come from it, so that they resume to the same bits."""
    return {**config, "scaling": _FIRST_WORDS.get(config["scaling"], config["scaling"])} if _scaled(config) else config


def current_words(config: Config) -> Config:
    """The configuration of a run folder as it is spelled now.

    >>> current_words({"scaling": "normalise", "gamma": 0.1})
    {'scaling': 'normalize', 'gamma': 0.1}
    """
    now = {old: new for new, old in _FIRST_WORDS.items()}
    return {**config, "scaling": now.get(config["scaling"], config["scaling"])} if _scaled(config) else config


def _scaled(config: Config) -> bool:
    return isinstance(config.get("scaling"), str)
