"""Many trials in few numbers: means and spreads at the end, quartiles along the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nasight.tables._lookup import FoundCell
from nasight.tables._racers import RACERS
from nasight.tables._table import Table
from nasight.tables._trials import Trial

POINTS = 101
QUANTITIES = ("valid", "test", "regret")
Quartiles = list[float | None]


@dataclass(frozen=True, slots=True)
class RaceStanding:
    """Where a method ended: mean and standard deviation over its trials or runs."""

    name: str
    kind: str
    """black-box (cost in simulated seconds of the table) or run (cost in seconds of this machine)."""
    count: int
    test: dict[str, tuple[float, float]]
    """Data set -> mean and spread of the test accuracy after the full training, %."""
    cost: float
    trainings: float | None
    cells: dict[str, int]
    """The architectures found most often, and how often."""
    published: dict[str, tuple[float, float]]
    """Data set -> mean and spread in GAEA's Table 2: search on CIFAR-10 for 12,000 s."""


@dataclass(frozen=True, slots=True)
class RaceCurve:
    """A method over simulated time: mean and quartiles over its trials; None before every trial has a first cell.

    `valid` is the validation accuracy that the search has seen of its best cell (of its longest training), `test` the
    test accuracy of that cell after the full training, `regret` what that lacks of the best cell in the table.
    """

    name: str
    seconds: list[float]
    mean: dict[str, Quartiles]
    lower: dict[str, Quartiles]
    median: dict[str, Quartiles]
    upper: dict[str, Quartiles]


def standing_of_trials(name: str, trials: Sequence[Trial], table: Table) -> RaceStanding:
    return _standing(
        name,
        "black-box",
        [trial["steps"][-1][1] for trial in trials],
        table,
        cost=float(np.mean([trial["spent"] for trial in trials])),
        trainings=float(np.mean([trial["trainings"] for trial in trials])),
    )


def standing_of_runs(found: Sequence[FoundCell], table: Table) -> RaceStanding:
    cost = float(np.mean([one.seconds for one in found]))
    return _standing(found[0].label, "run", [one.cell for one in found], table, cost=cost, trainings=None)


def _standing(
    name: str, kind: str, cells: list[int], table: Table, *, cost: float, trainings: float | None
) -> RaceStanding:
    test = {d: table.column(f"{d}_test{table.full}")[cells] for d in table.datasets}
    often, counts = np.unique(cells, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:5]
    return RaceStanding(
        name,
        kind,
        len(cells),
        {d: (float(values.mean()), _spread(values)) for d, values in test.items()},
        cost,
        trainings,
        {table.text(int(often[i])): int(counts[i]) for i in most},
        dict(RACERS[name].published) if kind == "black-box" and table.published else {},
    )


def _spread(values: np.ndarray) -> float:
    """The sample standard deviation; 0 for a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def curve(name: str, trials: Sequence[Trial], table: Table, dataset: str, budget: float) -> RaceCurve:
    seconds = np.linspace(0, budget, POINTS)
    tests, optimum = table.column(f"{dataset}_test{table.full}"), table.optimum(dataset)
    values = {quantity: np.full((len(trials), POINTS), np.nan) for quantity in QUANTITIES}
    for row, trial in enumerate(trials):
        times = np.asarray([step[0] for step in trial["steps"]])
        last = np.searchsorted(times, seconds, side="right") - 1
        begun = last >= 0
        values["valid"][row, begun] = np.asarray([step[2] for step in trial["steps"]])[last[begun]]
        values["test"][row, begun] = tests[[step[1] for step in trial["steps"]]][last[begun]]
    values["regret"] = optimum - values["test"]

    def reduced(how: float | None) -> dict[str, Quartiles]:
        # NaN stays NaN here: a time counts when all trials have something to show.
        rows = {q: v.mean(0) if how is None else np.percentile(v, how, axis=0) for q, v in values.items()}
        return {q: [None if np.isnan(x) else round(float(x), 4) for x in row] for q, row in rows.items()}

    return RaceCurve(name, seconds.tolist(), reduced(None), reduced(25), reduced(50), reduced(75))
