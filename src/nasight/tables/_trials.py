"""One black-box search on a table: what it trains, what that costs, and what it holds for the best so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypedDict
from zlib import crc32

import numpy as np

from nasight.tables._table import Numbers, Table


@dataclass(frozen=True)
class RaceProblem:
    """What a search may see: validation accuracies and prices in seconds, by epochs of training, and its limit."""

    sizes: tuple[int, ...]
    accuracy: Mapping[int, Numbers]
    price: Mapping[int, Numbers]
    seconds: float
    seen: int = 12
    """Epochs of the training that a search asks for where it does not say."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """The trainings that there are, in epochs."""
        return tuple(self.accuracy)

    @classmethod
    def of(cls, table: Table, dataset: str, seconds: float) -> RaceProblem:
        """The problem of searching on one data set of a table for this many simulated seconds."""
        accuracy = {epochs: table.column(f"{dataset}_val{epochs}") for epochs in table.lengths}
        price = {epochs: table.cost(dataset, epochs) for epochs in accuracy}
        return cls(table.sizes, accuracy, price, seconds, table.seen)

    def cell(self, options: Sequence[int]) -> int:
        """The place in the table of these options, one per decision."""
        place = 0
        for size, option in zip(self.sizes, options, strict=True):
            place = place * size + option
        return place

    def draw(self, rng: np.random.Generator) -> tuple[list[int], int]:
        """A uniform cell: its options and its place."""
        options: list[int] = rng.integers(self.sizes).tolist()
        return options, self.cell(options)

    def neighbor(self, options: list[int], rng: np.random.Generator) -> tuple[list[int], int]:
        """A cell that differs in one decision: another option than before, each with the same chance."""
        child = list(options)
        decision = int(rng.integers(len(self.sizes)))
        child[decision] = (child[decision] + int(rng.integers(1, self.sizes[decision]))) % self.sizes[decision]
        return child, self.cell(child)


class BudgetSpent(Exception):
    """The next training would pass the budget, so it is not begun and the search ends."""


@dataclass
class Budget:
    """What a search has spent: every training is paid for, also that of a cell trained before."""

    problem: RaceProblem
    spent: float = 0.0
    trainings: int = 0
    best: tuple[int, float] = (0, -np.inf)
    """Epochs and validation accuracy of the incumbent: a longer training counts for more, then the accuracy."""
    steps: list[tuple[float, int, float]] = field(default_factory=list)
    """(seconds spent, cell, validation accuracy), one for each change of the incumbent."""

    def train(self, cell: int, epochs: int | None = None) -> float:
        """The validation accuracy of a cell after this many epochs (the table's own number by default).

        Raises `BudgetSpent` where it cannot be paid.
        """
        epochs = self.problem.seen if epochs is None else epochs
        price = float(self.problem.price[epochs][cell])
        if self.spent + price > self.problem.seconds:
            raise BudgetSpent
        self.spent += price
        self.trainings += 1
        accuracy = float(self.problem.accuracy[epochs][cell])
        if (epochs, accuracy) > self.best:
            self.best = (epochs, accuracy)
            self.steps.append((self.spent, cell, accuracy))
        return accuracy


class Trial(TypedDict):
    """What one search did: JSON."""

    trial: int
    spent: float
    trainings: int
    steps: list[tuple[float, int, float]]


Batch = tuple[str, tuple[int, ...]]
"""A method and the numbers of its trials: one piece of work."""


def run_batch(problem: RaceProblem, seed: int, batch: Batch) -> list[Trial]:
    """These trials of one method; each depends on the seed, the method and its number, and on no other trial."""
    from nasight.tables._racers import RACERS

    name, numbers = batch
    trials: list[Trial] = []
    for number in numbers:
        budget = Budget(problem)
        with suppress(BudgetSpent):
            RACERS[name].search(budget, np.random.default_rng([seed, crc32(name.encode()), number]))
        trials.append({"trial": number, "spent": budget.spent, "trainings": budget.trainings, "steps": budget.steps})
    return trials
