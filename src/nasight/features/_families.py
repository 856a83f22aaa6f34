"""The sets of feature maps by name: random Fourier features and hashed n-grams (FeatureMaps, B.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from nasight.errors import RequestError
from nasight.features._bags import TEXT_SCALINGS
from nasight.features._family import TOLERANCE, AssignedRows, Config, Family, FittedFamily, RowSource, config_seed
from nasight.features._fitted_ngrams import FittedNgrams
from nasight.features._fourier import KERNELS, FourierDraws, RandomFourierFeatures, cosines, frequency_scale
from nasight.features._ngrams import HashedNgrams
from nasight.features._own import DictFamily, ListFamily
from nasight.features._scalings import SCALINGS, scaling
from nasight.features._tokens import TOKENS, need_nltk

LOWEST, HIGHEST = 1e-5, 10.0
"""Between these gamma and alpha are log-uniform."""
RELEASED_TOLERANCE = 1e-5
"""To which the released code solves its SVM."""


def family(maps: Any, *, solver: str | None = None, published: bool = False) -> Family:
    """The set of feature maps that a name, a list or a dict means.

    Parameters
    ----------
    maps : a name (fourier, ngrams); a list of scikit-learn transformers, each one a configuration; a dict {"map":
        transformer class, parameter: list of values or scipy.stats distribution, ...}; or a `Family`, which is
        returned as it is.
    solver : "ridge" or "svm", what fits models over maps of your own; ridge by default.
    published : n-grams as the authors' released code makes them; Fourier features are as published in any case.

    >>> family("fourier").sample(1, np.random.default_rng(0))[0]["kernel"]
    'laplacian'
    """
    if isinstance(maps, str):
        if maps not in FAMILIES:
            raise RequestError(f"there is no set of feature maps {maps!r}; known names are {', '.join(FAMILIES)}")
        return NgramFamily(published=True) if published and maps == NgramFamily.name else FAMILIES[maps]()
    if published:
        raise RequestError("published means the maps of the paper; give maps by name (fourier, ngrams) with it")
    if isinstance(maps, Family):
        return maps
    if isinstance(maps, dict):
        return DictFamily(maps, solver=solver or "ridge")
    if isinstance(maps, (list, tuple)):
        return ListFamily(maps, solver=solver or "ridge")
    raise RequestError(
        "maps must be a name (fourier, ngrams), a Family, a list of transformers or a dict of distributions, "
        f"got a {type(maps).__name__}"
    )


class FourierFamily(Family):
    """Random Fourier features: the scaling of the rows, the kernel and its gamma."""

    name = "fourier"
    solver = "ridge"

    def sample(self, count: int, rng: np.random.Generator) -> list[Config]:
        return [
            {
                "scaling": str(rng.choice(list(SCALINGS))),
                "kernel": str(rng.choice(KERNELS)),
                "gamma": _log_uniform(rng),
            }
            for _ in range(count)
        ]

    def fit(self, rows: Any, labels: Any = None) -> FittedFourier:
        return FittedFourier(_matrix(rows))

    def transformer(self, config: Config, dimension: int, seed: int) -> Any:
        features = RandomFourierFeatures(config["kernel"], config["gamma"], dimension, seed)
        return make_pipeline(scaling(config["scaling"]), features)


class FittedFourier(FittedFamily):
    """Scalings fitted on training rows as they are needed, and the draws of the last seed."""

    def __init__(self, train: NDArray[np.float32]) -> None:
        self._train = train
        self.clear()

    def clear(self) -> None:
        self._scalings: dict[str, Any] = {}
        self._draws: tuple[int, FourierDraws] | None = None

    def _checked(self, rows: Any) -> NDArray[np.float32]:
        matrix = _matrix(rows)
        if matrix.shape[1] != self._train.shape[1]:
            raise RequestError(f"rows must have {self._train.shape[1]} columns as in training, got {matrix.shape[1]}")
        return matrix

    def _features(self, given: AssignedRows, dimension: int, seed: int) -> RowSource:
        if self._draws is None or self._draws[0] != seed:
            self._draws = seed, FourierDraws(self._train.shape[1], seed)
        used = [given.configs[c] for c in np.unique(given.which)]
        for name in {config["scaling"] for config in used} - set(self._scalings):
            self._scalings[name] = scaling(name).fit(self._train)
        draws = self._draws[1]
        frequencies = {c["kernel"]: draws.frequencies(c["kernel"], dimension) for c in used}
        return FourierRows(given, self._scalings, frequencies, draws.offsets(dimension))


class FourierRows:
    """Fourier features, each row by its own configuration, at the price of one: a product with W for each row."""

    sparse = False

    def __init__(
        self,
        given: AssignedRows,
        scalings: dict[str, Any],
        frequencies: dict[str, NDArray[np.float32]],
        offsets: NDArray[np.float32],
    ) -> None:
        self.n, self.dimension = len(given.where), len(offsets)
        self._matrix, self._where = given.rows, given.where
        self._scalings, self._frequencies, self._offsets = scalings, frequencies, offsets
        scales = np.array([frequency_scale(c["kernel"], c["gamma"]) for c in given.configs], np.float32)
        self._scale = scales[given.which]
        self._scaling = np.array([c["scaling"] for c in given.configs])[given.which]
        self._kernel = np.array([c["kernel"] for c in given.configs])[given.which]

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        span = slice(*slice(start, stop).indices(self.n))
        x = self._matrix[self._where[span]]  # a copy
        for name in np.unique(self._scaling[span]):
            mine = self._scaling[span] == name
            if name != "none":
                x[mine] = self._scalings[name].transform(x[mine])
        x *= self._scale[span][:, None]
        kernels = self._kernel[span]
        if len(kernels) and (kernels == kernels[0]).all():
            return cosines(x, self._frequencies[kernels[0]], self._offsets)
        features = np.empty((len(x), self.dimension), np.float32)
        for kernel in np.unique(kernels):
            mine = kernels == kernel
            features[mine] = cosines(x[mine], self._frequencies[kernel], self._offsets)
        return features


class NgramFamily(Family):
    """Hashed bags of n-grams; `tokens` are the tokenizers to choose from.

    `published` makes features as the authors' released code does (see `HashedNgrams`), and solves to its tolerance.
    """

    name = "ngrams"
    solver = "svm"

    def __init__(self, tokens: Sequence[str] = TOKENS, *, published: bool = False) -> None:
        unknown = [name for name in tokens if name not in TOKENS]
        if unknown or not tokens:
            raise RequestError(f"tokens must be some of {', '.join(TOKENS)}, got {list(tokens)}")
        if "nltk" in tokens:
            need_nltk()
        self.tokens, self.published = tuple(tokens), published
        self.tolerance = RELEASED_TOLERANCE if published else TOLERANCE

    def sample(self, count: int, rng: np.random.Generator) -> list[Config]:
        return [
            {
                "tokens": str(rng.choice(self.tokens)),
                "stop_words": bool(rng.integers(2)),
                "lowercase": bool(rng.integers(2)),
                "order": int(rng.integers(1, 4)),
                "binary": bool(rng.integers(2)),
                "weights": str(rng.choice(["naive-bayes", "sif"])),
                "alpha": _log_uniform(rng),
                "scaling": str(rng.choice(TEXT_SCALINGS)),
            }
            for _ in range(count)
        ]

    def fit(self, rows: Any, labels: Any) -> FittedNgrams:
        return FittedNgrams(rows, labels, published=self.published)

    def transformer(self, config: Config, dimension: int, seed: int) -> HashedNgrams:
        seed = config_seed(config, seed)
        return HashedNgrams(**config, n_components=dimension, random_state=seed, published=self.published)


FAMILIES: dict[str, type[FourierFamily] | type[NgramFamily]] = {"fourier": FourierFamily, "ngrams": NgramFamily}


def _log_uniform(rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(np.log(LOWEST), np.log(HIGHEST))))


def _matrix(rows: Any) -> NDArray[np.float32]:
    matrix = np.asarray(rows)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise RequestError(
            f"Fourier features need numeric rows (n, columns), got shape {matrix.shape} of {matrix.dtype}; "
            "texts go with the n-grams"
        )
    return matrix.astype(np.float32, copy=False)
