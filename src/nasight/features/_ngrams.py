"""Hashed bags of n-grams with naive-Bayes or SIF weights (FeatureMaps, B.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from nasight.errors import RequestError
from nasight.features._counts import Counts, Known
from nasight.features._murmur import hash_ngrams
from nasight.features._tokens import TOKENS, Lexicon, need_nltk

WEIGHTS = (None, "naive-bayes", "sif")
TEXT_SCALINGS = ("none", "normalize", "average")


@dataclass(frozen=True, slots=True)
class Bag:
    """One way to make features of n-grams; the parameters of HashedNgrams."""

    tokens: str = "spaces"
    stop_words: bool = False
    lowercase: bool = True
    order: int = 1
    binary: bool = False
    weights: str | None = None
    alpha: float = 1.0
    scaling: str = "none"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("tokens", self.tokens, TOKENS),
            ("weights", self.weights, WEIGHTS),
            ("scaling", self.scaling, TEXT_SCALINGS),
        ):
            if value not in known:
                raise RequestError(f"{name} must be one of {', '.join(map(str, known))}, got {value!r}")
        if not isinstance(self.order, (int, np.integer)) or self.order < 1:
            raise RequestError(f"order must be a whole number of at least 1, got {self.order!r}")
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise RequestError(f"alpha must be a positive number, got {self.alpha!r}")
        if self.tokens == "nltk":
            need_nltk()

    @property
    def vocabulary(self) -> tuple[str, bool, bool]:
        """What decides about the tokens: bags that agree in it share their counts."""
        return self.tokens, self.stop_words, self.lowercase


class HashedNgrams(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Bags of n-grams in `n_components` bins, as a sparse float32 matrix.

    The tokens of a text give all n-grams of order 1 to `order`. Each counts as often as it occurs, or once if `binary`,
    times its weight, in the bin that the murmur hash of the space-joined n-gram has modulo n_components; in a bin,
    n-grams add up. Weights come from the training texts, in which an n-gram occurs `count` times (or in `count` texts,
    if `binary`). An n-gram that training lacks has a count of 0.

    Parameters
    ----------
    tokens : "spaces" (cut at white space), "punctuation" (also between runs of letters and of punctuation) or "nltk".
    stop_words : whether stop words are removed.
    lowercase : whether tokens are in lower case.
    order : the longest n-grams.
    binary : whether an n-gram counts once per text.
    weights : None; "naive-bayes", log2 of (count in class 1 + alpha) / (count in class 0 + alpha), each over its sum
        over all n-grams, and with more than two classes that of the class against all others for which it is farthest
        from 0; or "sif", T alpha / (T alpha + count), T the sum of all counts.
    alpha : in the weights.
    scaling : "none", "normalize" (rows of length 1) or "average" (rows divided by their number of n-grams).
    n_components : the number of bins.
    random_state : the seed of the hash.

    >>> HashedNgrams(order=2, n_components=64).fit_transform(["good film", "bad film"]).sum(axis=1).ravel().tolist()
    [[3.0, 3.0]]
    """

    def __init__(
        self,
        tokens: str = "spaces",
        stop_words: bool = False,
        lowercase: bool = True,
        order: int = 1,
        binary: bool = False,
        weights: str | None = None,
        alpha: float = 1.0,
        scaling: str = "none",
        n_components: int = 2**20,
        random_state: int = 0,
    ) -> None:
        self.tokens = tokens
        self.stop_words = stop_words
        self.lowercase = lowercase
        self.order = order
        self.binary = binary
        self.weights = weights
        self.alpha = alpha
        self.scaling = scaling
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, texts: Sequence[str], y: Any = None) -> HashedNgrams:
        """Count the n-grams of the training texts and of their classes."""
        self._learn(texts, y)
        return self

    def fit_transform(self, texts: Sequence[str], y: Any = None) -> sparse.csr_matrix:
        """The features of the training texts, read once."""
        return self._features(self._learn(texts, y), self.lexicon_)

    def transform(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """The features of the texts, (texts, n_components)."""
        check_is_fitted(self)
        lexicon = self.lexicon_.copy()
        return self._features(Counts(self._tokens_of(texts, lexicon), self.known_), lexicon)

    def _learn(self, texts: Sequence[str], y: Any) -> Counts:
        bag = self._bag()
        if y is None and bag.weights == "naive-bayes":
            raise RequestError("weights='naive-bayes' needs the classes of the texts, got y=None")
        self.lexicon_ = Lexicon()
        tokens = self._tokens_of(texts, self.lexicon_)
        self.known_ = Known(class_numbers(y, len(tokens.starts) - 1))
        counts = Counts(tokens, self.known_, teach=True)
        counts.upto(bag.order)
        return counts

    def _tokens_of(self, texts: Sequence[str], lexicon: Lexicon) -> Any:
        bag = self._bag()
        read = lexicon.read(check_texts(texts))
        return lexicon.tokens(read, bag.tokens, stop_words=bag.stop_words, lowercase=bag.lowercase)

    def _features(self, counts: Counts, lexicon: Lexicon) -> sparse.csr_matrix:
        return hashed_bag(self._bag(), counts, lexicon, None, int(self.n_components), int(self.random_state))

    def _bag(self) -> Bag:
        if not isinstance(self.n_components, (int, np.integer)) or not 1 <= self.n_components < 2**31:
            raise RequestError(f"n_components must be a whole number from 1 to 2^31 - 1, got {self.n_components!r}")
        return Bag(**{name: getattr(self, name) for name in Bag.__dataclass_fields__})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def check_texts(texts: Any) -> Any:
    """The texts, if they are a collection of them and not a single one."""
    if isinstance(texts, str):
        raise RequestError("texts must be a list of texts, got a single str")
    return texts


def class_numbers(y: Any, rows: int) -> NDArray[np.int64]:
    """Labels of any kind as 0 to k - 1, in sorted order; one class for all where there are none."""
    if y is None:
        return np.zeros(rows, np.int64)
    numbers = np.unique(np.asarray(y), return_inverse=True)[1].astype(np.int64)
    if numbers.shape != (rows,):
        raise RequestError(f"{rows} texts need {rows} labels, got labels of shape {np.shape(y)}")
    return numbers


def hashed_bag(
    bag: Bag, counts: Counts, lexicon: Lexicon, rows: NDArray[np.int64] | None, dimension: int, seed: int
) -> sparse.csr_matrix:
    """The features of the counted texts, or of some rows of them: float32, (rows, dimension)."""
    levels = counts.upto(bag.order)
    pieces = [level.matrix if rows is None else level.matrix[rows] for level in levels]
    matrix = sparse.hstack(pieces, format="csr") if len(pieces) > 1 else pieces[0]
    times = np.ones_like(matrix.data) if bag.binary else matrix.data
    used, place = _distinct(matrix.indices, matrix.shape[1])
    bins, weights = _bins_and_weights(bag, counts, lexicon, used, dimension, seed)
    data = (times * weights[place]).astype(np.float32)
    if bag.scaling == "average":
        number = np.add.reduceat(np.append(times, 0), matrix.indptr[:-1]) if len(times) else np.zeros(matrix.shape[0])
        data /= np.repeat(np.maximum(number, 1), np.diff(matrix.indptr)).astype(np.float32)
    features = sparse.csr_matrix((data, bins[place], matrix.indptr), shape=(matrix.shape[0], dimension))
    features.sum_duplicates()
    return normalize(features, copy=False) if bag.scaling == "normalize" else features


def _distinct(numbers: NDArray[np.int32], size: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The distinct numbers below `size`, ascending, and for each number its place among them."""
    if 16 * len(numbers) < size:
        used, place = np.unique(numbers, return_inverse=True)
        return used.astype(np.int64), place
    here = np.zeros(size, bool)
    here[numbers] = True
    return np.flatnonzero(here), (np.cumsum(here, dtype=np.int32) - 1)[numbers]


def _bins_and_weights(
    bag: Bag, counts: Counts, lexicon: Lexicon, used: NDArray[np.int64], dimension: int, seed: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Bin and weight of the n-grams `used`, whose numbers continue from one order to the next."""
    bins, weights = [], []
    letters, starts = lexicon.spelled()
    levels, known = counts.upto(bag.order), counts.known.levels[: bag.order]
    tables = [level.texts if bag.binary else level.counts for level in known]
    totals = np.sum([level.totals[int(bag.binary)] for level in known], axis=0)
    vocabulary = sum(len(level.keys) for level in known)
    first = 0
    for order, (level, table) in enumerate(zip(levels, tables, strict=True), 1):
        low, high = np.searchsorted(used, [first, first + level.size])
        here = used[low:high] - first
        hashes = hash_ngrams(counts.spelled(order, here), letters, starts, seed)
        bins.append((hashes % np.uint32(dimension)).astype(np.int32))
        number = level.numbers(here)
        seen = np.zeros((len(table), len(here)))
        seen[:, number >= 0] = table[:, number[number >= 0]]
        weights.append(ngram_weights(bag.weights, bag.alpha, seen, totals, vocabulary))
        first += level.size
    return np.concatenate(bins), np.concatenate(weights)


def ngram_weights(
    kind: str | None, alpha: float, counts: NDArray[np.float64], totals: NDArray[np.float64], vocabulary: int
) -> NDArray[np.float64]:
    """The weights of n-grams that occur counts (classes, n-grams) times; totals: over all n-grams of the vocabulary."""
    if kind is None:
        return np.ones(counts.shape[1])
    if kind == "sif":
        mass = totals.sum() * alpha
        return np.asarray(mass / (mass + counts.sum(0))) if mass > 0 else np.ones(counts.shape[1])
    if len(totals) < 2:
        raise RequestError("weights='naive-bayes' needs texts of at least two classes, got one class")

    def smoothed(count: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log2(count + alpha) - np.log2(total + alpha * max(vocabulary, 1))

    rest = smoothed(counts.sum(0) - counts, (totals.sum() - totals)[:, None])
    ratios = smoothed(counts, totals[:, None]) - rest  # (classes, n-grams)
    if len(totals) == 2:
        return np.asarray(ratios[1])
    return np.asarray(np.take_along_axis(ratios, np.abs(ratios).argmax(0)[None], 0)[0])
