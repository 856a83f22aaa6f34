"""One way to make features of n-grams: bins by a hash, counts in them, weights of what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from nasight.errors import RequestError
from nasight.features._counts import Counts
from nasight.features._murmur import hash_ngrams
from nasight.features._tokens import TOKENS, Lexicon, Vocabulary, need_nltk

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
    published: bool = False

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
    def vocabulary(self) -> Vocabulary:
        """What decides about the tokens: bags that agree in it share their counts."""
        return Vocabulary(self.tokens, self.stop_words, self.lowercase, self.published)


def hashed_bag(
    bag: Bag, counts: Counts, lexicon: Lexicon, rows: NDArray[np.int64] | None, dimension: int, seed: int
) -> sparse.csr_matrix:
    """The features of the counted texts, or of some rows of them: float32, (rows, dimension)."""
    matrix = _ngram_counts(bag, counts, rows)
    times = np.ones_like(matrix.data) if bag.binary else matrix.data
    used, place = _distinct(matrix.indices, matrix.shape[1])
    bins = _bins(bag, counts, lexicon, used, dimension, seed)
    weights = _weights(bag, counts, used)
    data = (times * weights[place]).astype(np.float32)
    if bag.scaling == "average":
        number = np.add.reduceat(np.append(times, 0), matrix.indptr[:-1]) if len(times) else np.zeros(matrix.shape[0])
        data /= np.repeat(np.maximum(number, 1), np.diff(matrix.indptr)).astype(np.float32)
    features = sparse.csr_matrix((data, bins[place], matrix.indptr), shape=(matrix.shape[0], dimension))
    features.sum_duplicates()
    return normalize(features, copy=False) if bag.scaling == "normalize" else features


def binned_bag(
    bag: Bag, counts: Counts, lexicon: Lexicon, rows: NDArray[np.int64] | None, dimension: int, seed: int
) -> sparse.csr_matrix:
    """How many n-grams fall into each bin, or whether any does: what the released code weighs (float32)."""
    matrix = _ngram_counts(bag, counts, rows)
    used, place = _distinct(matrix.indices, matrix.shape[1])
    bins = _bins(bag, counts, lexicon, used, dimension, seed)
    found = sparse.csr_matrix((matrix.data, bins[place], matrix.indptr), shape=(matrix.shape[0], dimension))
    found = found.astype(np.float32)  # a copy: the counts are kept
    found.sum_duplicates()
    if bag.binary:
        found.data[:] = 1
    return found


def bin_totals(matrix: sparse.csr_matrix, labels: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """What each class has in each bin, (classes, dimension)."""
    ones = (np.ones(len(labels)), (labels, np.arange(len(labels))))
    return np.asarray((sparse.csr_matrix(ones, shape=(classes, len(labels))) @ matrix).toarray())


def weighted_bins(bag: Bag, matrix: sparse.csr_matrix, totals: NDArray[np.float64]) -> sparse.csr_matrix:
    """Binned n-grams with the weights of their bins, scaled; totals are those of training, (classes, dimension)."""
    weights = ngram_weights(bag.weights, bag.alpha, totals, totals.sum(1), matrix.shape[1])
    number = np.asarray(matrix.sum(axis=1)).ravel()
    data = matrix.data * weights[matrix.indices]
    if bag.scaling == "average":
        data /= np.repeat(np.maximum(number, 1), np.diff(matrix.indptr))
    found = sparse.csr_matrix((data.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)
    return normalize(found, copy=False) if bag.scaling == "normalize" else found


def _distinct(numbers: NDArray[np.int32], size: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The distinct numbers below `size`, ascending, and for each number its place among them."""
    if 16 * len(numbers) < size:
        used, place = np.unique(numbers, return_inverse=True)
        return used.astype(np.int64), place
    here = np.zeros(size, bool)
    here[numbers] = True
    return np.flatnonzero(here), (np.cumsum(here, dtype=np.int32) - 1)[numbers]


def _ngram_counts(bag: Bag, counts: Counts, rows: NDArray[np.int64] | None) -> sparse.csr_matrix:
    """How often each n-gram of any order is in each text, (texts, n-grams)."""
    pieces = [level.matrix if rows is None else level.matrix[rows] for level in counts.upto(bag.order)]
    return sparse.hstack(pieces, format="csr") if len(pieces) > 1 else pieces[0]


def _bins(
    bag: Bag, counts: Counts, lexicon: Lexicon, used: NDArray[np.int64], dimension: int, seed: int
) -> NDArray[np.int32]:
    """The bins of the n-grams `used`, whose numbers continue from one order to the next."""
    letters, starts = lexicon.spelled()
    bins = []
    for order, here in _by_order(bag, counts, used):
        hashes = hash_ngrams(counts.spelled(order, here), letters, starts, seed)
        bins.append((hashes % np.uint32(dimension)).astype(np.int32))
    return np.concatenate(bins)


def _weights(bag: Bag, counts: Counts, used: NDArray[np.int64]) -> NDArray[np.float64]:
    """The weights of the n-grams `used`, by the counts of training."""
    levels, known = counts.upto(bag.order), counts.known.levels[: bag.order]
    tables = [level.texts if bag.binary else level.counts for level in known]
    totals = np.sum([level.totals[int(bag.binary)] for level in known], axis=0)
    vocabulary = sum(len(level.keys) for level in known)
    weights = []
    for order, here in _by_order(bag, counts, used):
        number, table = levels[order - 1].numbers(here), tables[order - 1]
        seen = np.zeros((len(table), len(here)))
        seen[:, number >= 0] = table[:, number[number >= 0]]
        weights.append(ngram_weights(bag.weights, bag.alpha, seen, totals, vocabulary))
    return np.concatenate(weights)


def _by_order(bag: Bag, counts: Counts, used: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """The n-grams `used` of each order, numbered from 0 within it."""
    found, first = [], 0
    for order, level in enumerate(counts.upto(bag.order), 1):
        low, high = np.searchsorted(used, [first, first + level.size])
        found.append((order, used[low:high] - first))
        first += level.size
    return found


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
