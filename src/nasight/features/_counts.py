"""How often each n-gram occurs in each text, and in the training texts of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nasight.features._tokens import Ragged, spans


@dataclass(frozen=True, slots=True)
class Level:
    """The n-grams of one order in some texts, each distinct one with a number."""

    matrix: sparse.csr_matrix  # (texts, n-grams): how often
    first: NDArray[np.int32]  # (n-grams,): a place in the tokens where it begins
    known: NDArray[np.int32] | None  # (n-grams,): its training number, -1 where it has none; None where all agree

    @property
    def size(self) -> int:
        return len(self.first)

    def numbers(self, grams: NDArray[np.int64]) -> NDArray[np.int64]:
        """The training numbers of some n-grams, -1 where training lacks one."""
        return grams if self.known is None else self.known[grams].astype(np.int64)


@dataclass(frozen=True, slots=True)
class KnownLevel:
    """The n-grams of one order in the training texts: how often in each class, and in how many of its texts."""

    keys: NDArray[np.int64]
    counts: NDArray[np.float32]  # (classes, n-grams)
    texts: NDArray[np.float32]  # (classes, n-grams)
    totals: NDArray[np.float64]  # (2, classes): the sums of counts and of texts


class Known:
    """What the training texts say about n-grams, order by order as asked for."""

    def __init__(self, labels: NDArray[np.int64]) -> None:
        self.labels = labels
        self.classes = int(labels.max()) + 1 if len(labels) else 1
        self.levels: list[KnownLevel] = []

    def learn(self, keys: NDArray[np.int64], matrix: sparse.csr_matrix) -> None:
        """Take in the next order, with its n-grams' keys and their counts in the training texts."""
        m = len(keys)
        cell = np.repeat(self.labels, np.diff(matrix.indptr)) * m + matrix.indices
        size = (self.classes, m)
        counts = np.bincount(cell, matrix.data, self.classes * m).reshape(size)
        texts = np.bincount(cell, minlength=self.classes * m).reshape(size)
        totals = np.stack([counts.sum(1), texts.sum(1)]).astype(np.float64)
        self.levels.append(KnownLevel(keys, counts.astype(np.float32), texts.astype(np.float32), totals))


class Counts:
    """The n-grams of some texts, order by order as asked for.

    An n-gram's key is the number of its first n - 1 tokens beside that of its last token. `known` gives the n-grams
    of training texts their numbers; with `teach` these are the training texts.
    """

    def __init__(self, tokens: Ragged, known: Known, *, teach: bool = False) -> None:
        self.tokens = tokens
        self.known = known
        self.teach = teach
        self.levels: list[Level] = []
        self._head = np.zeros(len(tokens.ids), np.int32)  # the numbers of the last order's n-grams, place by place

    def spelled(self, order: int, some: NDArray[np.int64]) -> NDArray[np.int32]:
        """The tokens of some n-grams of an order, (n-grams, order)."""
        first = self.levels[order - 1].first[some]
        grams: NDArray[np.int32] = self.tokens.ids[first[:, None] + np.arange(order, dtype=np.int32)]
        return grams

    def upto(self, order: int) -> list[Level]:
        """The n-grams of orders 1 to `order`."""
        while len(self.levels) < order:
            self._next()
        return self.levels[:order]

    def _next(self) -> None:
        order = len(self.levels) + 1
        at, head = self._places(order), self._head[self._places(order, among=order - 1)]
        keys = (head.astype(np.int64) << 32) | self.tokens.ids[at + order - 1]
        by_key = np.argsort(keys)
        keys = keys[by_key]
        new = np.ones(len(keys), bool)
        new[1:] = keys[1:] != keys[:-1]
        begin = np.flatnonzero(new)
        distinct = keys[begin]
        text = np.repeat(np.arange(len(self.tokens.starts) - 1, dtype=np.int32), self._lengths(order))
        matrix = _count(text[by_key], begin, len(self.tokens.starts) - 1)
        known, numbers = None, np.arange(len(distinct), dtype=np.int32)
        if self.teach:
            self.known.learn(distinct, matrix)
        else:
            among = self.known.levels[order - 1].keys
            known = _find(distinct, among)
            # Numbers of their own keep the n-grams that training lacks apart in the next order.
            numbers = np.where(known < 0, len(among) + numbers, known).astype(np.int32)
        self.levels.append(Level(matrix, at[by_key[begin]].astype(np.int32), known))
        self._head = np.empty(len(at), np.int32)
        self._head[by_key] = np.repeat(numbers, np.diff(np.append(begin, len(at))))

    def _lengths(self, order: int) -> NDArray[np.int64]:
        """How many n-grams of an order each text has."""
        return np.maximum(self.tokens.lengths() - (order - 1), 0)

    def _places(self, order: int, among: int = 0) -> NDArray[np.int64]:
        """Where n-grams of an order begin, among the tokens, or in a list of the n-grams of a lower order."""
        lengths = self._lengths(among) if among else self.tokens.lengths()
        return spans(np.cumsum(lengths) - lengths, self._lengths(order))


def _count(rows: NDArray[np.int32], first: NDArray[np.int64], texts: int) -> sparse.csr_matrix:
    """How often each n-gram is in each text, from the texts of its occurrences; those of n-gram j begin at first[j]."""
    columns = np.append(first, len(rows))
    by_gram = sparse.csc_matrix((np.ones(len(rows), np.float32), rows, columns), shape=(texts, len(first)))
    matrix = by_gram.tocsr()
    # It was filled column by column, so entries that belong together are neighbors and no sort is needed.
    matrix.has_sorted_indices = True
    matrix.sum_duplicates()
    return matrix


def _find(keys: NDArray[np.int64], among: NDArray[np.int64]) -> NDArray[np.int32]:
    """Where each key is in an ascending array, or -1."""
    if not len(among):
        return np.full(len(keys), -1, np.int32)
    place = np.searchsorted(among, keys)
    place[place == len(among)] = 0
    return np.where(among[place] == keys, place, -1).astype(np.int32)
