"""A user's own set of feature maps: a list of transformers, or a class of them with distributions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from nasight.errors import RequestError
from nasight.features._family import AssignedRows, Config, Family, FittedFamily, RowSource

_DRAWS = 100
"""FourierDraws for each configuration asked for, before a set counts as having no more."""


class OwnFamily(Family):
    """What lists and dicts of maps have in common."""

    name = "own"

    def __init__(self, solver: str) -> None:
        if solver not in ("ridge", "svm"):
            raise RequestError(f"solver must be ridge or svm, got {solver!r}")
        self.solver = solver

    def fit(self, rows: Any, labels: Any = None) -> FittedOwn:
        return FittedOwn(self, rows, labels)


class ListFamily(OwnFamily):
    """Transformers, each one a configuration {"map": its place in the list}; all must give equally many features."""

    sized = False

    def __init__(self, maps: Sequence[Any], *, solver: str = "ridge") -> None:
        super().__init__(solver)
        if not maps:
            raise RequestError("a list of feature maps needs at least 1 transformer, got an empty list")
        for place, item in enumerate(maps):
            if isinstance(item, type) or not hasattr(item, "fit") or not hasattr(item, "transform"):
                raise RequestError(f"map {place} must be a transformer with fit and transform, got {item!r}")
        self.maps = list(maps)

    def sample(self, count: int, rng: np.random.Generator) -> list[Config]:
        return [{"map": int(place)} for place in rng.permutation(len(self.maps))[:count]]

    def transformer(self, config: Config, dimension: int, seed: int) -> Any:
        return clone(self.maps[config["map"]])


class DictFamily(OwnFamily):
    """A transformer class, and for its parameters a list of values or a scipy.stats distribution each.

    A parameter `random_state` gets the seed, so that all configurations share their draws, and `n_components` the
    dimension, unless the dict says otherwise.
    """

    def __init__(self, maps: Mapping[str, Any], *, solver: str = "ridge") -> None:
        super().__init__(solver)
        if not isinstance(maps.get("map"), type):
            raise RequestError(f"a dict of feature maps needs a transformer class under 'map', got {maps.get('map')!r}")
        self.map = maps["map"]
        self.choices = {name: value for name, value in maps.items() if name != "map"}
        self._parameters = set(self.map().get_params()) if hasattr(self.map, "get_params") else set()
        for name, value in self.choices.items():
            if name not in self._parameters:
                raise RequestError(
                    f"{self.map.__name__} has no parameter {name!r}; it has {', '.join(sorted(self._parameters))}"
                )
            if not hasattr(value, "rvs") and not (isinstance(value, (list, tuple)) and value):
                raise RequestError(f"{name!r} must be a list of values or a scipy.stats distribution, got {value!r}")
        self.sized = "n_components" in self._parameters and "n_components" not in self.choices

    def sample(self, count: int, rng: np.random.Generator) -> list[Config]:
        if not any(hasattr(choice, "rvs") for choice in self.choices.values()):
            whole = [dict(zip(self.choices, values, strict=True)) for values in product(*self.choices.values())]
            return [_json(whole[place]) for place in rng.permutation(len(whole))[:count]]
        found: dict[str, Config] = {}
        for _ in range(_DRAWS * count):
            if len(found) == count:
                break
            config = _json({name: _draw(choice, rng) for name, choice in self.choices.items()})
            found.setdefault(json.dumps(config), config)
        return list(found.values())

    def transformer(self, config: Config, dimension: int, seed: int) -> Any:
        settings = dict(config)
        if self.sized:
            settings["n_components"] = dimension
        if "random_state" in self._parameters:
            settings.setdefault("random_state", seed)
        return self.map(**settings)


class FittedOwn(FittedFamily):
    """Transformers fitted on the training rows when they are first needed."""

    def __init__(self, family: OwnFamily, train: Any, labels: Any) -> None:
        self._family, self._train, self._labels = family, train, labels
        self.clear()

    def clear(self) -> None:
        self._fitted: dict[str, Any] = {}

    def _features(self, given: AssignedRows, dimension: int, seed: int) -> RowSource:
        maps = {int(c): self._map(given.configs[c], dimension, seed) for c in np.unique(given.which)}
        return OwnRows(given, maps)

    def _map(self, config: Config, dimension: int, seed: int) -> Any:
        key = json.dumps([config, dimension if self._family.sized else None, seed], sort_keys=True)
        if key not in self._fitted:
            made = self._family.transformer(config, dimension, seed)
            with _own_code(made, "fit"):
                self._fitted[key] = made.fit(self._train, self._labels)
        return self._fitted[key]


class OwnRows:
    """Features by fitted transformers, each row by its own."""

    def __init__(self, given: AssignedRows, maps: dict[int, Any]) -> None:
        self.n = len(given.where)
        self._given, self._maps = given, maps
        samples = {c: _transformed(maps[c], take(given.rows, given.where[:1])) for c in maps}
        widths = {c: int(sample.shape[1]) for c, sample in samples.items()}
        if len(set(widths.values())) > 1:
            (a, wide), (b, other) = next((x, y) for x in widths.items() for y in widths.items() if x[1] != y[1])
            raise RequestError(
                f"all feature maps must give equally many features, got {wide} from {maps[a]} "
                f"and {other} from {maps[b]}"
            )
        self.dimension = next(iter(widths.values()), 0)
        self.sparse = bool(samples) and all(sparse.issparse(sample) for sample in samples.values())

    def rows(self, start: int, stop: int) -> Any:
        span = slice(*slice(start, stop).indices(self.n))
        where, which = self._given.where[span], self._given.which[span]
        parts = [np.flatnonzero(which == c) for c in np.unique(which)]
        found = [_transformed(self._maps[int(which[part[0]])], take(self._given.rows, where[part])) for part in parts]
        if self.sparse:
            if not found:
                return sparse.csr_matrix((0, self.dimension), dtype=np.float32)
            stacked = sparse.vstack(found, format="csr", dtype=np.float32)
            return stacked[np.argsort(np.concatenate(parts))]
        features = np.empty((len(where), self.dimension), np.float32)
        for part, piece in zip(parts, found, strict=True):
            features[part] = piece.toarray() if sparse.issparse(piece) else piece
        return features


@contextmanager
def _own_code(made: Any, what: str) -> Iterator[None]:
    """Inside, the user's code runs: what it raises is told with its name."""
    try:
        yield
    except RequestError:
        raise
    except Exception as error:
        raise RequestError(f"{what} of the feature map {made!r:.80} failed: {type(error).__name__}: {error}") from error


def _transformed(made: Any, rows: Any) -> Any:
    """The features of some rows, (rows, features)."""
    with _own_code(made, "transform"):
        found = made.transform(rows)
    shape = getattr(found, "shape", None)
    count = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    if shape is None or len(shape) != 2 or shape[0] != count:
        got = type(found).__name__ if shape is None else f"shape {tuple(shape)}"
        raise RequestError(f"transform of the feature map {made!r:.80} must give {count} rows of features, got {got}")
    return found


def take(rows: Any, index: NDArray[np.int64]) -> Any:
    """Some of the rows of an array, a sparse matrix or a list."""
    return [rows[i] for i in index] if isinstance(rows, (list, tuple)) else rows[index]


def _draw(choice: Any, rng: np.random.Generator) -> Any:
    return choice.rvs(random_state=rng) if hasattr(choice, "rvs") else choice[int(rng.integers(len(choice)))]


def _json(config: Mapping[str, Any]) -> Config:
    """The configuration in plain values, which a run can be written with."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in config.items()}
    for name, value in plain.items():
        if not (value is None or isinstance(value, (str, int, float, bool))):
            raise RequestError(f"{name!r} must be a number, a text, true, false or None, got {value!r}")
    return plain
