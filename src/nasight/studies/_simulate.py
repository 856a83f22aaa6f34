"""Searches on a cluster on paper: how long until a good cell is known, with 1 or with 1,000 workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from nasight.errors import RequestError
from nasight.searching import Run
from nasight.studies.finding import FindPolicy, TableFind
from nasight.tables import POLICIES, ClusterRun, ClusterSettings, RaceProblem, Table, load, run_on_cluster

FIND = "find"
SIMULATED = (FIND, *POLICIES)
"""Searches that run on a cluster."""
REGRETS = (1.0, 0.5, 0.2)
"""Points below the best cell of the table: what counts as reached."""
Progress = Callable[[int, int], None]
"""Called with the number of finished trials and of all trials."""


@dataclass(frozen=True)
class ClusterStanding:
    """One method on one number of workers, over its trials."""

    method: str
    workers: int
    trials: int
    seconds: dict[str, float | None]
    """Regret, in points -> median seconds until the best cell so far is that good; None: most trials never were."""
    reached: dict[str, int]
    """Regret -> trials that reached it."""
    test: tuple[float, float]
    """Mean and standard deviation of the test accuracy of the cell at the end."""
    trainings: float
    lost: float
    used: float
    """The share of the workers' time that ended in an accuracy."""
    finished: float
    """Mean seconds until the last training ended."""


@dataclass(frozen=True)
class Simulation:
    """What each method reached on each number of workers."""

    settings: dict[str, Any]
    standings: list[ClusterStanding]

    def to_dict(self) -> dict[str, Any]:
        """The simulation as plain values."""
        return asdict(self)


def simulate(
    methods: Sequence[str] | None = None,
    *,
    workers: Sequence[int] = (1, 10, 100, 1_000),
    table: Table | None = None,
    dataset: str = "c10",
    budget: float = 12_000,
    trials: int = 20,
    seed: int = 0,
    runs: Sequence[str | Path] = (),
    cluster: ClusterSettings | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Search with each method on clusters of several sizes, in simulated time.

    Trainings take the seconds of the table, some meet a slow moment, some workers die. Methods see validation
    accuracies alone; the best cell so far is judged by its test accuracy after 200 epochs.

    Parameters
    ----------
    methods : "find", and names of `nasight.tables.POLICIES`; all of them by default.
    workers : sizes of the cluster.
    table : NAS-Bench-201 from the data folder by default.
    dataset : the data set to search on: c10, c100 or in16.
    budget : simulated seconds of a trial.
    trials : searches of each method and size.
    seed : everything random follows from it.
    runs : finished weight-sharing searches that propose to `find`, each charged with the seconds that it took.
    cluster : how workers fail; its number of workers is not read.
    progress : called with the number of finished trials and of all trials.

    >>> from nasight.spaces.nasbench201 import NasBench201
    >>> space, better = NasBench201(), np.arange(15625.0)
    >>> columns = {name: better for name in ("c10_val12", "c10_val200", "c10_test200", "params_M")}
    >>> table = Table(space, {**columns, "c10_traintime200_s": np.full(len(space), 200.0)})
    >>> found = simulate(["rs"], workers=[1, 10], table=table, budget=400.0, trials=3)
    >>> [(s.method, s.workers) for s in found.standings]
    [('rs', 1), ('rs', 10)]
    """
    table = table or load()
    methods = SIMULATED if methods is None else methods
    for name in methods:
        if name not in SIMULATED:
            raise RequestError(f"no method {name!r} runs on a cluster; there are {', '.join(SIMULATED)}")
    if not methods:
        raise RequestError(f"a simulation needs at least 1 method; there are {', '.join(SIMULATED)}")
    if trials < 1 or not workers:
        raise RequestError(f"a simulation needs at least 1 trial and 1 number of workers, got {trials} and {workers}")
    problem = RaceProblem.of(table, dataset, budget)
    dearest = float(problem.price[12].max())
    if not dearest <= budget < float("inf"):
        raise RequestError(f"the budget must be finite and pay for any one training, {dearest:.0f} s; got {budget:g} s")
    known = TableFind.of(table, _searches(runs, table)) if FIND in methods else None
    base = cluster or ClusterSettings(1)
    standings = list[ClusterStanding]()
    for count in workers:
        settings = replace(base, workers=count)
        for name in methods:
            found = []
            for number in range(trials):
                rng = np.random.default_rng([seed, crc32(name.encode()), count, number])
                found.append(_trial(name, problem, settings, known, rng))
                if progress is not None:
                    progress(len(standings) * trials + number + 1, len(methods) * len(workers) * trials)
            standings.append(_standing(name, settings, found, table, dataset, budget))
    about = {"dataset": dataset, "budget": float(budget), "trials": trials, "seed": seed, "table": table.name}
    about |= {"runs": [str(run) for run in runs], "cluster": {k: v for k, v in asdict(base).items() if k != "workers"}}
    return Simulation(about, standings)


def _searches(runs: Sequence[str | Path], table: Table) -> list[Run]:
    found = [Run(path) for path in runs]
    for run in found:
        if run.space.family != table.space.family or not run.finished:
            raise RequestError(f"{run.path} is no finished search of {table.space.name}, so it cannot propose")
    return found


def _trial(
    name: str, problem: RaceProblem, settings: ClusterSettings, known: TableFind | None, rng: np.random.Generator
) -> ClusterRun:
    if known is not None and name == FIND:
        priced = known.priced(problem)
        return run_on_cluster(FindPolicy(priced, rng, known, settings), priced, settings, rng)
    return run_on_cluster(POLICIES[name](problem, rng), problem, settings, rng)


def _standing(
    name: str, settings: ClusterSettings, found: list[ClusterRun], table: Table, dataset: str, budget: float
) -> ClusterStanding:
    tests, best = table.column(f"{dataset}_test200"), table.optimum(dataset)
    seconds: dict[str, float | None] = {}
    reached = {}
    for regret in REGRETS:
        times = [next((t for t, cell, _ in run.steps if tests[cell] >= best - regret), np.inf) for run in found]
        middle = float(np.median(times))
        seconds[f"{regret:g}"] = round(middle, 1) if np.isfinite(middle) else None
        reached[f"{regret:g}"] = int(np.isfinite(times).sum())
    last = np.asarray([tests[run.steps[-1][1]] for run in found if run.steps])
    spread = float(last.std(ddof=1)) if len(last) > 1 else 0.0
    used = [run.busy / (settings.workers * run.seconds) for run in found if run.seconds]
    return ClusterStanding(
        name,
        settings.workers,
        len(found),
        seconds,
        reached,
        (float(last.mean()), spread),
        float(np.mean([run.trainings for run in found])),
        float(np.mean([run.lost for run in found])),
        float(np.mean(used)),
        float(np.mean([run.seconds for run in found])),
    )
