"""The n-grams of many texts for many configurations at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from nasight.features._bags import Bag, bin_totals, binned_bag, hashed_bag, weighted_bins
from nasight.features._counts import Counts, Known
from nasight.features._family import ArrayRows, AssignedRows, Config, FittedFamily, RowSource, config_seed
from nasight.features._ngrams import check_texts, class_numbers
from nasight.features._tokens import Lexicon, Ragged, Vocabulary

_SETS_KEPT = 8
"""Sets of texts whose tokens are remembered: training, validation, test, and a few more."""
_TOTALS_KEPT = 4
"""Calls whose sums over the bins are remembered."""


class FittedNgrams(FittedFamily):
    """Texts read once for all configurations, and counted once for all that agree about the tokens.

    With `published`, weights belong to bins, and as in the released code the sums over training texts are those of a
    whole call: all its configurations together, each on its own rows. They are kept for the validation and test rows of
    the same dimension and seed. Of a call that was not made here they are those of the configurations asked for, each
    on all training texts, which is the same for a model that one configuration has for itself.
    """

    def __init__(self, train: Any, labels: Any, *, published: bool = False) -> None:
        self._train, self._published = check_texts(train), published
        self._labels = class_numbers(labels, len(train))
        self._classes = int(self._labels.max(initial=0)) + 1
        self.clear()

    def clear(self) -> None:
        self._lexicon = Lexicon()
        self._known: dict[Vocabulary, Counts] = {}
        # The texts are kept beside what was read: while they live, no other object has their id.
        self._totals: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._sets: dict[int, tuple[Any, Ragged, dict[Vocabulary, Counts]]] = {}

    def _checked(self, rows: Any) -> Any:
        return check_texts(rows)

    def _features(self, given: AssignedRows, dimension: int, seed: int) -> RowSource:
        rows, where, configs, which = given.rows, given.where, given.configs, given.which
        used = np.unique(which)
        parts = [np.flatnonzero(which == c) for c in used]
        bags = [Bag(**configs[c], published=self._published) for c in used]
        counts = self._counted(rows, bags)
        make = binned_bag if self._published else hashed_bag
        pieces = [
            make(bag, count, self._lexicon, where[part], dimension, config_seed(configs[c], seed))
            for c, bag, count, part in zip(used, bags, counts, parts, strict=True)
        ]
        if self._published:
            if rows is self._train:
                totals = self._sums(pieces, [where[part] for part in parts])
                self._keep((dimension, seed), totals)
            else:
                totals = self._totals_for((dimension, seed), bags, [configs[c] for c in used])
            pieces = [weighted_bins(bag, piece, totals) for bag, piece in zip(bags, pieces, strict=True)]
        if not pieces:
            return ArrayRows(sparse.csr_matrix((0, dimension), dtype=np.float32))
        if len(pieces) == 1:
            return ArrayRows(pieces[0])
        return ArrayRows(sparse.vstack(pieces, format="csr")[np.argsort(np.concatenate(parts))])

    def _sums(self, pieces: Sequence[sparse.csr_matrix], where: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """What the classes have in each bin over these rows of the training texts, (classes, dimension)."""
        each = [bin_totals(p, self._labels[rows], self._classes) for p, rows in zip(pieces, where, strict=True)]
        return np.asarray(sum(each))

    def _totals_for(self, key: tuple[int, int], bags: Sequence[Bag], configs: Sequence[Config]) -> NDArray[np.float64]:
        if key not in self._totals:
            every, counts = np.arange(len(self._train)), self._counted(self._train, bags)
            pieces = [
                binned_bag(bag, count, self._lexicon, None, key[0], config_seed(config, key[1]))
                for bag, count, config in zip(bags, counts, configs, strict=True)
            ]
            return self._sums(pieces, [every] * len(pieces))
        return self._totals[key]

    def _keep(self, key: tuple[int, int], totals: NDArray[np.float64]) -> None:
        self._totals.pop(key, None)
        self._totals[key] = totals
        while len(self._totals) > _TOTALS_KEPT:
            del self._totals[next(iter(self._totals))]

    def _counted(self, rows: Any, bags: Sequence[Bag]) -> list[Counts]:
        """The n-grams of the texts for each bag: words are looked up one after the other, then counted in parallel."""
        orders: dict[Vocabulary, int] = {}
        for bag in bags:
            orders[bag.vocabulary] = max(bag.order, orders.get(bag.vocabulary, 0))
        both = {
            vocabulary: (self._counts(self._train, vocabulary), self._counts(rows, vocabulary)) for vocabulary in orders
        }

        def count(vocabulary: Vocabulary) -> None:
            for counts in both[vocabulary]:
                counts.upto(orders[vocabulary])

        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            list(pool.map(count, orders))
        return [both[bag.vocabulary][1] for bag in bags]

    def _counts(self, rows: Any, vocabulary: Vocabulary) -> Counts:
        teach = rows is self._train
        _, read, counted = self._read(rows)
        known = self._known if teach else counted
        if vocabulary not in known:
            tokens = self._lexicon.tokens(read, vocabulary)
            learned = Known(self._labels) if teach else self._known[vocabulary].known
            known[vocabulary] = Counts(tokens, learned, teach=teach)
        return known[vocabulary]

    def _read(self, rows: Any) -> tuple[Any, Ragged, dict[Vocabulary, Counts]]:
        found = self._sets.pop(id(rows), None) or (rows, self._lexicon.read(rows), {})
        self._sets[id(rows)] = found  # the last one used is the last one dropped
        while len(self._sets) > _SETS_KEPT:
            del self._sets[next(iter(self._sets))]
        return found
