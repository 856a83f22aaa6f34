"""Black-box searches against each other, and against weight-sharing runs, on a table.

run.json              what was asked for
trials/METHOD-N.json  finished trials, written as they end: a restart skips them
race.json             the comparison
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from nasight.arguments import typed
from nasight.compute import map_resumable
from nasight.errors import RequestError
from nasight.runs import RunFolder, TrialsFile, read_object, write_json
from nasight.tables._lookup import look_up
from nasight.tables._module_table import ModuleTable
from nasight.tables._racers import RACERS
from nasight.tables._registry import load
from nasight.tables._summary import RaceCurve, RaceStanding, curve, standing_of_runs, standing_of_trials
from nasight.tables._table import Table
from nasight.tables._trials import Batch, RaceProblem, Trial, run_batch

BATCH = 10
"""Trials in one piece of work: what a kill can cost each worker."""
FACTORED = ("reinforce", "bohb")
"""Methods that need every combination of options to be an architecture."""
DEFAULT_RACERS = ("rs", "rea", "reinforce", "bohb", "hyperband")
Progress = Callable[[int, int], None]
"""Called with the number of finished trials and of all trials."""


@dataclass(frozen=True, slots=True)
class Race:
    """Who found what, at what price."""

    settings: dict[str, Any]
    standings: list[RaceStanding]
    curves: list[RaceCurve]
    optimum: dict[str, float]
    left_out: dict[str, str]
    """Runs that could not be looked up, and why."""

    def to_dict(self) -> dict[str, Any]:
        """The race as plain values: what race.json keeps and `nasight table race --json` prints."""
        return asdict(self)


@typed
def race(
    methods: Sequence[str] | None = None,
    *,
    table: Table | None = None,
    dataset: str = "c10",
    budget: float = 12_000,
    trials: int = 500,
    seed: int = 0,
    runs: Iterable[str | Path] = (),
    out: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Race:
    """Search with each method for a budget of simulated time, many times, and compare what they find.

    The methods see validation accuracies of one data set only; what they find is judged by its test accuracies on
    every data set. The same seed gives the same trials, in any order and on any number of workers.

    Parameters
    ----------
    methods : names of `RACERS`; may be empty where `runs` are given. By default rs, rea, reinforce, bohb and hyperband,
        without reinforce and bohb where not every combination of decisions is in the table.
    table : the table to search on; NAS-Bench-201 from the data folder by default.
    dataset : the data set to search on: c10, c100 or in16.
    budget : simulated seconds of a trial.
    trials : searches of each method.
    seed : everything random follows from it.
    runs : folders of weight-sharing searches, whose cells are looked up beside the trials.
    out : a folder that keeps the trials, so that they are not repeated: more trials or methods can be asked for later.
    executor : where the trials run; processes of this machine by default.
    workers : how many processes, where no executor is given; as many as there are cores by default.
    progress : called with the number of finished trials and of all trials.

    >>> import numpy as np
    >>> from nasight.spaces.nasbench201 import NasBench201
    >>> space, better = NasBench201(), np.arange(15625.0)
    >>> columns = {name: better for name in ("c10_val12", "c10_val200", "c10_test200")}
    >>> table = Table(space, {**columns, "c10_traintime200_s": np.ones(len(space))})
    >>> found = race(["rs", "rea"], table=table, budget=6.0, trials=5, workers=1)
    >>> [standing.name for standing in found.standings]
    ['rs', 'rea']
    """
    table = table or load()
    if methods is None:
        methods = [name for name in DEFAULT_RACERS if not (isinstance(table, ModuleTable) and name in FACTORED)]
    _check(table, methods, dataset, budget, trials)
    found, left_out = look_up(runs, table)
    settings = {"dataset": dataset, "budget": float(budget), "seed": seed, "table": table.fingerprint}
    folder = None if out is None else _folder(Path(out), settings)
    with nullcontext() if folder is None else folder.writing():
        done = {} if folder is None else _finished(folder, len(table))
        problem = _problem(table, dataset, budget) if methods else None
        results = _run(problem, methods, trials, seed, done, folder, executor, workers, progress)
        standings = [standing_of_trials(name, results[name], table) for name in methods]
        labels = dict.fromkeys(one.label for one in found)
        standings += [standing_of_runs([one for one in found if one.label == label], table) for label in labels]
        outcome = Race(
            settings | {"trials": trials, "table_name": table.name, "source": table.source, "epochs": table.full},
            standings,
            [curve(name, results[name], table, dataset, budget) for name in methods],
            {d: table.optimum(d) for d in table.datasets},
            left_out,
        )
        if folder is not None:
            write_json(folder.path / "race.json", outcome.to_dict())
    return outcome


def _check(table: Table, methods: Sequence[str], dataset: str, budget: float, trials: int) -> None:
    for name in methods:
        if name not in RACERS:
            close = get_close_matches(name.lower(), RACERS, n=1)
            meant = f"did you mean {close[0]!r}? Known" if close else "known"
            raise RequestError(f"there is no black-box method {name!r}; {meant} methods are {', '.join(RACERS)}")
    if len(set(methods)) < len(methods):
        raise RequestError(f"each method can race once, got {', '.join(methods)}")
    if dataset not in table.datasets:
        raise RequestError(f"table {table.name!r} has no data set {dataset!r}; it has {', '.join(table.datasets)}")
    seen = [*(f"{dataset}_val{epochs}" for epochs in table.lengths), f"{dataset}_traintime{table.full}_s"]
    needed = [*(seen if methods else ()), *(f"{d}_test{table.full}" for d in table.datasets)]
    absent = [column for column in needed if column not in table.columns]
    if absent:
        raise RequestError(f"a race needs {', '.join(absent)}, which table {table.name!r} lacks")
    if trials < 1:
        raise RequestError(f"there must be at least 1 trial, got {trials}")
    unfit = [name for name in methods if isinstance(table, ModuleTable) and name in FACTORED]
    if unfit:
        fit = ", ".join(name for name in RACERS if name not in FACTORED)
        raise RequestError(
            f"{', '.join(unfit)} learns a distribution over all combinations of decisions, of which table "
            f"{table.name!r} lists a part; methods that race there are {fit}"
        )
    dearest = float(table.cost(dataset, table.seen).max()) if methods else 0.0
    if not dearest <= budget < float("inf"):
        raise RequestError(
            f"the budget must be finite and pay for any one training, {dearest:.0f} s on {dataset}; got {budget:g} s"
        )


def _problem(table: Table, dataset: str, budget: float) -> RaceProblem:
    if isinstance(table, ModuleTable):
        return table.problem(dataset, budget)
    return RaceProblem.of(table, dataset, budget)


def _folder(path: Path, settings: dict[str, Any]) -> RunFolder:
    folder = RunFolder.create_or_open(path, kind="race", holds="a race", settings=settings)
    (path / "trials").mkdir(exist_ok=True)
    return folder


def _finished(folder: RunFolder, cells: int) -> dict[str, dict[int, Trial]]:
    """Method -> number -> trial, of everything that was written."""
    done: dict[str, dict[int, Trial]] = {}
    for path in sorted((folder.path / "trials").glob("*.json")):
        try:
            content = read_object(path, TrialsFile)
        except RequestError as error:
            raise RequestError(f"{error}; remove it to have its trials run again") from None
        beyond = [s[1] for t in content["trials"] for s in t["steps"] if s[1] >= cells]
        if beyond:
            raise RequestError(f"{path} is damaged: it names the cell {beyond[0]}, and the table has {cells}")
        done.setdefault(content["method"], {}).update({t["trial"]: t for t in content["trials"]})
    return done


def _run(
    problem: RaceProblem | None,
    methods: Sequence[str],
    trials: int,
    seed: int,
    done: dict[str, dict[int, Trial]],
    folder: RunFolder | None,
    executor: Executor | None,
    workers: int | None,
    progress: Progress | None,
) -> dict[str, list[Trial]]:
    """Every method's trials, those not yet done spread over the executor."""
    if problem is None:
        return {}
    results = {name: {n: t for n, t in done.get(name, {}).items() if n < trials} for name in methods}
    batches: list[Batch] = []
    for name in methods:
        missing = [number for number in range(trials) if number not in results[name]]
        batches += [(name, tuple(missing[i : i + BATCH])) for i in range(0, len(missing), BATCH)]

    def report() -> None:
        if progress is not None:
            progress(sum(map(len, results.values())), trials * len(methods))

    def arrived(batch: Batch, new: list[Trial]) -> None:
        name, numbers = batch
        if folder is not None:
            write_json(folder.path / "trials" / f"{name}-{numbers[0]:06d}.json", {"method": name, "trials": new})
        results[name].update({t["trial"]: t for t in new})
        report()

    report()
    work = partial(run_batch, problem, seed)
    map_resumable(work, batches, executor=executor, workers=workers, on_result=arrived)
    return {name: [results[name][number] for number in range(trials)] for name in methods}
