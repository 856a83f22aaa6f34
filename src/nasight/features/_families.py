"""The sets of feature maps by name: random Fourier features and hashed n-grams (FeatureMaps, B.2)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import make_pipeline

from nasight.errors import RequestError
from nasight.features._counts import Counts, Known
from nasight.features._family import ArrayRows, Config, Family, FittedFamily, RowSource, chosen, config_seed
from nasight.features._fourier import KERNELS, FourierDraws, RandomFourierFeatures, cosines, frequency_scale
from nasight.features._ngrams import TEXT_SCALINGS, Bag, HashedNgrams, check_texts, class_numbers, hashed_bag
from nasight.features._own import DictFamily, ListFamily
from nasight.features._scalings import SCALINGS, scaling
from nasight.features._tokens import TOKENS, Lexicon, Ragged, need_nltk

LOWEST, HIGHEST = 1e-5, 10.0
"""Between these gamma and alpha are log-uniform."""
_SETS_KEPT = 8
"""Sets of texts whose tokens are remembered: training, validation, test, and a few more."""


def family(maps: Any, *, solver: str | None = None) -> Family:
    """The set of feature maps that a name, a list or a dict means.

    Parameters
    ----------
    maps : a name (fourier, ngrams); a list of scikit-learn transformers, each one a configuration; a dict {"map":
        transformer class, parameter: list of values or scipy.stats distribution, ...}; or a `Family`, which is
        returned as it is.
    solver : "ridge" or "svm", what fits models over maps of your own; ridge by default.

    >>> family("fourier").sample(1, np.random.default_rng(0))[0]["kernel"]
    'laplacian'
    """
    if isinstance(maps, Family):
        return maps
    if isinstance(maps, str):
        if maps not in FAMILIES:
            raise RequestError(f"there is no set of feature maps {maps!r}; known names are {', '.join(FAMILIES)}")
        return FAMILIES[maps]()
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

    def features(
        self,
        rows: Any,
        configs: Sequence[Config],
        assignment: NDArray[np.int64],
        dimension: int,
        seed: int,
        index: NDArray[np.int64] | None = None,
    ) -> RowSource:
        rows = _matrix(rows)
        if rows.shape[1] != self._train.shape[1]:
            raise RequestError(f"rows must have {self._train.shape[1]} columns as in training, got {rows.shape[1]}")
        where, which = chosen(rows, assignment, index, configs)
        if self._draws is None or self._draws[0] != seed:
            self._draws = seed, FourierDraws(rows.shape[1], seed)
        used = [configs[c] for c in np.unique(which)]
        for name in {config["scaling"] for config in used} - set(self._scalings):
            self._scalings[name] = scaling(name).fit(self._train)
        draws = self._draws[1]
        frequencies = {c["kernel"]: draws.frequencies(c["kernel"], dimension) for c in used}
        return FourierRows(rows, where, which, configs, self._scalings, frequencies, draws.offsets(dimension))


class FourierRows:
    """Fourier features, each row by its own configuration, at the price of one: a product with W for each row."""

    sparse = False

    def __init__(
        self,
        matrix: NDArray[np.float32],
        where: NDArray[np.int64],
        which: NDArray[np.int64],
        configs: Sequence[Config],
        scalings: dict[str, Any],
        frequencies: dict[str, NDArray[np.float32]],
        offsets: NDArray[np.float32],
    ) -> None:
        self.n, self.dimension = len(where), len(offsets)
        self._matrix, self._where = matrix, where
        self._scalings, self._frequencies, self._offsets = scalings, frequencies, offsets
        scales = np.array([frequency_scale(c["kernel"], c["gamma"]) for c in configs], np.float32)
        self._scale = scales[which]
        self._scaling = np.array([c["scaling"] for c in configs])[which]
        self._kernel = np.array([c["kernel"] for c in configs])[which]

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
    """Hashed bags of n-grams; `tokens` are the tokenizers to choose from."""

    name = "ngrams"
    solver = "svm"

    def __init__(self, tokens: Sequence[str] = TOKENS) -> None:
        unknown = [name for name in tokens if name not in TOKENS]
        if unknown or not tokens:
            raise RequestError(f"tokens must be some of {', '.join(TOKENS)}, got {list(tokens)}")
        if "nltk" in tokens:
            need_nltk()
        self.tokens = tuple(tokens)

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
        return FittedNgrams(rows, labels)

    def transformer(self, config: Config, dimension: int, seed: int) -> HashedNgrams:
        return HashedNgrams(**config, n_components=dimension, random_state=config_seed(config, seed))


class FittedNgrams(FittedFamily):
    """Texts read once for all configurations, and counted once for all that agree about the tokens."""

    def __init__(self, train: Any, labels: Any) -> None:
        self._train = check_texts(train)
        self._labels = class_numbers(labels, len(train))
        self.clear()

    def clear(self) -> None:
        self._lexicon = Lexicon()
        self._known: dict[tuple[str, bool, bool], Counts] = {}
        # The texts are kept beside what was read: while they live, no other object has their id.
        self._sets: dict[int, tuple[Any, Ragged, dict[tuple[str, bool, bool], Counts]]] = {}

    def features(
        self,
        rows: Any,
        configs: Sequence[Config],
        assignment: NDArray[np.int64],
        dimension: int,
        seed: int,
        index: NDArray[np.int64] | None = None,
    ) -> RowSource:
        where, which = chosen(check_texts(rows), assignment, index, configs)
        used = np.unique(which)
        parts = [np.flatnonzero(which == c) for c in used]
        bags = [Bag(**configs[c]) for c in used]
        counts = self._counted(rows, bags)
        pieces = [
            hashed_bag(bag, count, self._lexicon, where[part], dimension, config_seed(configs[c], seed))
            for c, bag, count, part in zip(used, bags, counts, parts, strict=True)
        ]
        if not pieces:
            return ArrayRows(sparse.csr_matrix((0, dimension), dtype=np.float32))
        if len(pieces) == 1:
            return ArrayRows(pieces[0])
        return ArrayRows(sparse.vstack(pieces, format="csr")[np.argsort(np.concatenate(parts))])

    def _counted(self, rows: Any, bags: Sequence[Bag]) -> list[Counts]:
        """The n-grams of the texts for each bag: words are looked up one after the other, then counted in parallel."""
        orders: dict[tuple[str, bool, bool], int] = {}
        for bag in bags:
            orders[bag.vocabulary] = max(bag.order, orders.get(bag.vocabulary, 0))
        both = {
            vocabulary: (self._counts(self._train, vocabulary), self._counts(rows, vocabulary)) for vocabulary in orders
        }

        def count(vocabulary: tuple[str, bool, bool]) -> None:
            for counts in both[vocabulary]:
                counts.upto(orders[vocabulary])

        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            list(pool.map(count, orders))
        return [both[bag.vocabulary][1] for bag in bags]

    def _counts(self, rows: Any, vocabulary: tuple[str, bool, bool]) -> Counts:
        teach = rows is self._train
        _, read, counted = self._read(rows)
        known = self._known if teach else counted
        if vocabulary not in known:
            name, stop_words, lowercase = vocabulary
            tokens = self._lexicon.tokens(read, name, stop_words=stop_words, lowercase=lowercase)
            learned = Known(self._labels) if teach else self._known[vocabulary].known
            known[vocabulary] = Counts(tokens, learned, teach=teach)
        return known[vocabulary]

    def _read(self, rows: Any) -> tuple[Any, Ragged, dict[tuple[str, bool, bool], Counts]]:
        found = self._sets.pop(id(rows), None) or (rows, self._lexicon.read(rows), {})
        self._sets[id(rows)] = found  # the last one used is the last one dropped
        while len(self._sets) > _SETS_KEPT:
            del self._sets[next(iter(self._sets))]
        return found


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
