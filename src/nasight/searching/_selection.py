"""Which architecture a search ends with: theta discretized, or candidates that compete under the shared weights."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.searching._step import SearchState

SKIP = "skip_connect"
TRIES = 50
"""This many times the number of candidates are looked at before the search for different ones ends."""


class Selection(ABC):
    """The architectures of a moment, best first where there is an order."""

    @abstractmethod
    def propose(self, state: SearchState, number: int, generator: torch.Generator) -> Iterator[Architecture]:
        """At most `number` architectures."""


@dataclass(frozen=True)
class ArgMax(Selection):
    """The one that the space derives from theta."""

    def propose(self, state: SearchState, number: int, generator: torch.Generator) -> Iterator[Architecture]:
        yield state.space.derive(state.weights())


@dataclass(frozen=True)
class Uniform(Selection):
    """Random architectures (RS-WS)."""

    def propose(self, state: SearchState, number: int, generator: torch.Generator) -> Iterator[Architecture]:
        for _ in range(number):
            yield state.space.sample(generator)


@dataclass(frozen=True)
class Drawn(Selection):
    """Draws from the distribution that was learned (ENAS)."""

    def propose(self, state: SearchState, number: int, generator: torch.Generator) -> Iterator[Architecture]:
        for answers in state.policy.sample(number, generator):
            yield state.policy.architecture(answers)


@dataclass(frozen=True)
class Mode(Selection):
    """The likeliest architecture of the distribution that was learned (ASNG)."""

    def propose(self, state: SearchState, number: int, generator: torch.Generator) -> Iterator[Architecture]:
        yield state.policy.architecture(state.policy.mode())


@dataclass(frozen=True)
class Likeliest(Selection):
    """The architectures with the largest products of weights, one option per row (SETN).

    Each is derived from theta with all options of a row but one set to zero. Where theta's own architecture leaves
    rows out (DARTS: all but two edges into a node) these stay as they are, and an architecture found twice counts once.
    """

    def propose(self, state: SearchState, number: int, generator: torch.Generator) -> Iterator[Architecture]:
        weights = {name: value.detach() for name, value in state.weights().items()}
        seen = set[Architecture]()
        choices = dict(state.space.derive(weights).choices)
        rows = [
            (group, i, row)
            for group in state.groups
            if group.exclusive
            for i, row in enumerate(group.split(weights[group.name]))
            if choices.get(group.rows[i]) != "none" or group.options[i][int(row.argmax())] == "none"
        ]
        for options in islice(products([row.tolist() for _, _, row in rows]), TRIES * number):
            single = {name: value.clone() for name, value in weights.items()}
            for (group, i, row), option in zip(rows, options, strict=True):
                kept = group.split(single[group.name])[i]
                kept.zero_()
                kept[option] = row[option]
            arch = state.space.derive(single)
            if arch not in seen:
                seen.add(arch)
                yield arch
            if len(seen) == number:
                return


def products(rows: list[list[float]]) -> Iterator[tuple[int, ...]]:
    """One option of each row, in the order of falling products of their weights; no choice twice."""
    orders = [sorted(range(len(row)), key=lambda i, row=row: -row[i]) for row in rows]  # type: ignore[misc]
    logs = [[math.log(max(row[i], 1e-300)) for i in order] for row, order in zip(rows, orders, strict=True)]
    # A choice by ranks has one parent: its last rank above 0 lowered by one. So each is reached once.
    heap = [(-sum(row[0] for row in logs), (0,) * len(rows), 0)]
    while heap:
        cost, ranks, last = heapq.heappop(heap)
        yield tuple(order[rank] for order, rank in zip(orders, ranks, strict=True))
        for i in range(last, len(rows)):
            if ranks[i] + 1 < len(logs[i]):
                child = (*ranks[:i], ranks[i] + 1, *ranks[i + 1 :])
                heapq.heappush(heap, (cost + logs[i][ranks[i]] - logs[i][ranks[i] + 1], child, i))


@dataclass(frozen=True)
class FewSkips(Selection):
    """The architecture of theta with at most `most` skip connections in its (normal) cell (P-DARTS).

    While there are more, the weakest of them loses its weight and the architecture is derived again.
    """

    most: int = 2

    def propose(self, state: SearchState, number: int, generator: torch.Generator) -> Iterator[Architecture]:
        weights = {name: value.detach().clone() for name, value in state.weights().items()}
        while True:
            arch = state.space.derive(weights)
            choices = dict(arch.choices)
            skips = [
                row[options.index(SKIP)]
                for name, options, row in _cell_rows(state, weights)
                if choices.get(name) == SKIP and row[options.index(SKIP)] > 0
            ]
            if len(skips) <= self.most:
                yield arch
                return
            min(skips, key=float).zero_()


def _cell_rows(state: SearchState, weights: dict[str, Tensor]) -> Iterator[tuple[str, tuple[str, ...], Tensor]]:
    """(name, options, view of the weights) of the rows that have a skip, reduction cells apart."""
    for group in state.groups:
        for name, options, row in zip(group.rows, group.options, group.split(weights[group.name]), strict=True):
            if group.exclusive and SKIP in options and not state.space.reduces(name):
                yield name, options, row
