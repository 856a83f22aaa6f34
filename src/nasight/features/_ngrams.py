"""Hashed bags of n-grams with naive-Bayes or SIF weights (FeatureMaps, B.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nasight.errors import RequestError
from nasight.features._bags import Bag, bin_totals, binned_bag, hashed_bag, weighted_bins
from nasight.features._counts import Counts, Known
from nasight.features._tokens import Lexicon


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
    published : the version of the authors' released code. After hashing, a bin of a text holds the number of its
        n-grams, or 1 if `binary`; weights belong to bins, by their sums over the training texts, and "average" divides
        by the sum of a row. "spaces" strips punctuation and symbols from tokens and drops empty ones, "punctuation"
        goes by Unicode's categories, and stop words are NLTK's, as written, capitalized or without their apostrophes.

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
        published: bool = False,
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
        self.published = published

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
        if bag.published:
            matrix = binned_bag(bag, counts, self.lexicon_, None, int(self.n_components), int(self.random_state))
            self.bins_ = bin_totals(matrix, self.known_.labels, self.known_.classes)
        return counts

    def _tokens_of(self, texts: Sequence[str], lexicon: Lexicon) -> Any:
        bag = self._bag()
        read = lexicon.read(check_texts(texts))
        return lexicon.tokens(read, bag.vocabulary)

    def _features(self, counts: Counts, lexicon: Lexicon) -> sparse.csr_matrix:
        bag, where = self._bag(), (lexicon, None, int(self.n_components), int(self.random_state))
        if bag.published:
            return weighted_bins(bag, binned_bag(bag, counts, *where), self.bins_)
        return hashed_bag(bag, counts, *where)

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
