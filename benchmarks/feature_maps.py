"""Feature-map selection as in the paper's figures, at this machine's scale; data in $NASIGHT_DATA or --data-folder.

    python benchmarks/feature_maps.py --part figure1 --dimension 3125 --validation 5000 --seeds 3
    python benchmarks/feature_maps.py --part cifar --dimension 1000 --validation 5000 --max-seconds 45
    python benchmarks/feature_maps.py --part imdb --warm --configs 64 --max-seconds 40
    python benchmarks/feature_maps.py --part bounds --dimension 1000 --validation 5000

figure1     accuracy with shared weights against accuracy alone, 32 maps
cifar, imdb every method for the same seconds: oracle test error against solver calls, observed test error against
            seconds; with --warm the n-grams of all texts are counted before the races, in every way, and not on their
            clocks: a search from nothing pays for those that it comes across
bounds      each bound beside the measured excess risk over the best configuration

Each part prints Markdown and writes a result, a table and a figure. A finished trial in --work-folder is not repeated,
an interrupted one resumes. Every trial has one thread, and its seconds are of its processor: other work on the machine
disturbs them little.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from _shared import Flags, kept, mean_and_deviation, rank_correlation, save
from nasight.data import Rows, rows
from nasight.features import (
    SELECTION_METHODS,
    Evaluator,
    SelectedMap,
    SelectionData,
    SelectionRun,
    correlation,
    family,
    resume,
    select,
    split,
)
from nasight.features._bags import Bag
from nasight.features._families import FittedNgrams, NgramFamily
from nasight.features._methods import Call
from nasight.features._settings import resolve
from nasight.features._tokens import TOKENS
from nasight.report import Panel, Series, panels_svg
from nasight.reproducible import torch_threads

DEFAULTS: dict[str, dict[str, Any]] = {
    "figure1": {"data": "cifar-10", "maps": "fourier", "dimension": 12_500, "examples": 20_000, "configs": 32},
    "cifar": {"data": "cifar-10", "maps": "fourier", "dimension": 10_000, "examples": 20_000, "configs": 256},
    "imdb": {"data": "imdb", "maps": "ngrams", "dimension": 1 << 20, "examples": None, "configs": 256},
    "bounds": {"data": "cifar-10", "maps": "fourier", "dimension": 4_000, "examples": 20_000, "configs": 32},
}
QUICK = {"dimension": 50, "examples": 300, "configs": 4}
SMALLEST = 3125
CALLS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 32, 64, 128)
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1)


@lru_cache(maxsize=1)
def data_of(name: str, folder: str | None) -> Rows:
    """The rows, read once per process."""
    return rows(name, folder=folder)


@dataclass(frozen=True)
class Job:
    """One trial of one method (or one dimension): a folder or file of its own."""

    part: str
    name: str
    trial: int
    out: str
    data: str
    maps: str
    folder: str | None
    dimension: int
    examples: int | None
    validation: int | None
    configs: int
    max_seconds: float
    memory: str | None
    warm: bool

    @property
    def path(self) -> Path:
        return Path(self.out) / f"{self.name}-{self.trial}"

    def bench(self) -> tuple[Evaluator, SelectionRun]:
        """A weight-sharing run over this job's configurations, not begun."""
        settings = resolve(
            maps=self.maps, data=self.data, method="weight-sharing", configs=self.configs, dimension=self.dimension,
            seed=self.trial, memory=self.memory,
        )  # fmt: skip
        problem = split(data_of(self.data, self.folder), self.validation, self.examples)
        maps = family(self.maps)
        bench = Evaluator(maps, problem, memory=settings.memory, seed=self.trial)
        return bench, SelectionRun(maps, bench, settings)


class Counted(NgramFamily):
    """N-grams of texts that were counted before; all runs of a process share the counts."""

    def __init__(self, problem: SelectionData) -> None:
        super().__init__()
        self.fitted = super().fit(problem.train.x, problem.train.y)
        test = [] if problem.test is None else [problem.test]
        bags = [Bag(t, stop, lower, 3) for t in TOKENS for stop in (False, True) for lower in (False, True)]
        for part in (problem.train, problem.validation, *test):
            self.fitted._counted(part.x, bags)

    def fit(self, rows: Any, labels: Any) -> FittedNgrams:
        return self.fitted


@lru_cache(maxsize=1)
def counted(
    name: str, folder: str | None, validation: int | None, examples: int | None
) -> tuple[SelectionData, Counted]:
    problem = split(data_of(name, folder), validation, examples)
    start = time.process_time()
    maps = Counted(problem)
    print(f"counted all n-grams in {time.process_time() - start:.0f} seconds of the processor", flush=True)
    return problem, maps


def race_counted(job: Job) -> list[dict[str, Any]]:
    """The history of one method's trial on texts that were counted before."""
    problem, maps = counted(job.data, job.folder, job.validation, job.examples)
    settings = resolve(
        maps=job.maps, data=job.data, method=job.name, configs=job.configs if "weight-sharing" in job.name else None,
        dimension=job.dimension, max_seconds=job.max_seconds, seed=job.trial, oracle=True, clock="cpu", threads=1,
    )  # fmt: skip
    with torch_threads(1):
        run = SelectionRun(maps, Evaluator(maps, problem, seed=job.trial, clock=time.process_time), settings)
        run.finish()
    return [{k: v for k, v in row.items() if k != "scores"} for row in run.history]


def race(job: Job) -> list[dict[str, Any]]:
    """The history of one method's trial, without the scores of single configurations."""
    if job.warm:
        return race_counted(job)
    if (job.path / "run.json").exists():
        selection: SelectedMap = resume(job.path, data=data_of(job.data, job.folder))
    else:
        own = job.configs if "weight-sharing" in job.name else None  # the others begin as published
        selection = select(
            job.maps, data_of(job.data, job.folder), method=job.name, configs=own, dimension=job.dimension,
            examples=job.examples, validation=job.validation, max_seconds=job.max_seconds, seed=job.trial, oracle=True,
            memory=job.memory, out=job.path, clock="cpu", threads=1,
        )  # fmt: skip
    return [{k: v for k, v in row.items() if k != "scores"} for row in selection.history]


def compare(job: Job) -> dict[str, Any]:
    """Figure 1 at one dimension: shared and stand-alone accuracies of the same maps."""
    bench, run = job.bench()
    run.schedule.draw(job.configs)
    found = correlation(bench, run.schedule.configs, job.dimension)
    return {"dimension": job.dimension, "trial": job.trial, **found.__dict__}


def measure(job: Job) -> dict[str, Any]:
    """Excess risk of the exact bilevel choice and of weight-sharing's, over the best of the same configurations."""
    bench, run = job.bench()
    run.finish()
    test = bench.data.test
    assert test is not None, f"{job.data} has no test part"
    configs, columns = run.schedule.configs[: job.configs], []
    for number, config in enumerate(configs):
        solved = bench.solve(Call((number,), job.dimension, shared=False), [config], "alone")
        source = bench.features(test, [config], test.y * 0, job.dimension, solved.seed)
        right, losses = bench.judge(solved.model.scores(source), test.y)
        seen = solved.outcome
        columns.append((1 - (seen.accuracy[0] or 0.0), seen.loss[0], 1 - float(right.mean()), float(losses.mean())))
    errors, losses_seen, test_errors, test_losses = (list(column) for column in zip(*columns, strict=True))
    best = run.incumbent
    assert best is not None
    choices = {"exact": errors.index(min(errors)), "weight-sharing": best.config}
    return {
        "trial": job.trial,
        "result": run.result(),
        "choices": {
            name: {
                "gap": errors[chosen] - min(errors),
                "excess_error": test_errors[chosen] - min(test_errors),
                "excess_loss": test_losses[losses_seen.index(min(losses_seen)) if name == "exact" else chosen]
                - min(test_losses),
            }
            for name, chosen in choices.items()
        },
    }


def at(history: list[dict[str, Any]], axis: str, value: float, key: str) -> float | None:
    """The error at so many calls or seconds: that of the last row by then."""
    rows = [row for row in history if row[axis] <= value]
    return 100 * (1 - rows[-1][key]) if rows and rows[-1][key] is not None else None


def curve(histories: list[list[dict[str, Any]]], axis: str, key: str, grid: Sequence[float]) -> Series | None:
    """Mean and deviation over the trials, where all trials have a value and none has run out of calls."""
    points = []
    for value in grid:
        found = [at(history, axis, value, key) for history in histories]
        reached = axis == "seconds" or all(history[-1][axis] >= value for history in histories)
        if reached and None not in found:
            points.append((value, *mean_and_deviation([f for f in found if f is not None])))
    if not points:
        return None
    x, y, band = zip(*points, strict=True)
    return Series("", x, y, band)


def race_report(jobs: list[Job], results: list[list[dict[str, Any]]]) -> tuple[str, str, Any]:
    by_method: dict[str, list[list[dict[str, Any]]]] = {}
    for job, history in zip(jobs, results, strict=True):
        by_method.setdefault(job.name, []).append(history)
    budget = jobs[0].max_seconds
    times = [budget * share for share in SHARES]
    fine = [budget * 2 ** (-i / 8) for i in range(64, -1, -1)]
    many = sorted({*CALLS, *range(1, 20), *(2**i for i in range(9))})
    text = [_heading(jobs), "", "Oracle test error, %, of the incumbent trained alone, by solver calls:", ""]
    text += _table(by_method, "calls", "oracle_test_accuracy", CALLS, [str(c) for c in CALLS])
    text += ["", "Observed test error, %, of the model each method has, by seconds:", ""]
    text += _table(by_method, "seconds", "test_accuracy", times, [f"{t:.3g} s" for t in times])
    panels = []
    for title, axis, key, grid in (
        ("oracle test error, %", "calls", "oracle_test_accuracy", many),
        ("observed test error, %", "seconds", "test_accuracy", fine),
    ):
        found = {name: curve(histories, axis, key, grid) for name, histories in by_method.items()}
        series = [Series(name, s.x, s.y, s.spread) for name, s in found.items() if s is not None]
        label = "solver calls" if axis == "calls" else axis
        panels.append(Panel(f"{jobs[0].data}: {title}", label, title, series, log_x=True))
    places = ("out", "folder")
    known = [{k: v for k, v in job.__dict__.items() if k not in places} for job in jobs]
    facts = {"jobs": known, "histories": results}
    return "\n".join([*text, ""]), panels_svg(panels), facts


def _table(
    by_method: dict[str, list[list[dict[str, Any]]]], axis: str, key: str, grid: Sequence[float], heads: list[str]
) -> list[str]:
    shown = [
        (head, value)
        for head, value in zip(heads, grid, strict=True)
        if any(curve(histories, axis, key, [value]) for histories in by_method.values())
    ]
    lines = ["| method | " + " | ".join(head for head, _ in shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for name, histories in by_method.items():
        cells = []
        for _, value in shown:
            point = curve(histories, axis, key, [value])
            cells.append("" if point is None else f"{point.y[0]:.2f} ± {point.spread[0] if point.spread else 0:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def better_half(shared: list[float], alone: list[float]) -> float | None:
    """Spearman's rho over the maps that are at or above the median alone: those worth telling apart."""
    best = [i for i, value in enumerate(alone) if value >= statistics.median(alone)]
    return rank_correlation([shared[i] for i in best], [alone[i] for i in best])


def correlation_report(jobs: list[Job], results: list[dict[str, Any]]) -> tuple[str, str, Any]:
    text = [_heading(jobs), "", "| dimension | seeds | Pearson | Spearman | Spearman in the better half |"]
    text += ["|---|---|---|---|---|"]
    clouds = []
    for dimension in dict.fromkeys(job.dimension for job in jobs):
        found = [r for r in results if r["dimension"] == dimension]
        columns = [[r[key] for r in found] for key in ("pearson", "spearman")]
        columns.append([better_half(r["shared"], r["alone"]) for r in found])
        cells = []
        for column in columns:
            values = [value for value in column if value is not None and not math.isnan(value)]
            cells.append("{:.3f} ± {:.3f}".format(*mean_and_deviation(values)) if values else "none")
        text.append(f"| {dimension:,} | {len(found)} | {' | '.join(cells)} |")
        shared, alone = ([100 * v for v in found[0][side]] for side in ("shared", "alone"))
        clouds.append(Series(f"{dimension:,} features", alone, shared))
    panel = Panel("one dot per map", "accuracy alone, %", "accuracy with shared weights, %", clouds, kind="points")
    return "\n".join([*text, ""]), panels_svg([panel]), results


def bounds_report(jobs: list[Job], results: list[dict[str, Any]]) -> tuple[str, str, Any]:
    """Bounds of the choice, and the largest excess that any trial measured."""
    from nasight.trust import bounds as b

    text = [_heading(jobs), "", "Excess over the best configuration as trained on the same rows, by trial:", ""]
    text += ["| choice | validation gap | test error, mean ± sd | largest | Theorem A.2 with the gap | broken |"]
    text += ["|---|---|---|---|---|---|"]
    facts: dict[str, Any] = {"trials": results, "bounds": {}}
    for name in results[0]["choices"]:
        rows = [r["choices"][name] for r in results]
        limits = [
            b.theorem_a2(
                validation=r["result"]["validation_rows"],
                entropy=b.VersionEntropy.finite(jobs[0].configs),
                gap=r["choices"][name]["gap"],
            ).value
            for r in results
        ]
        broken = sum(row["excess_error"] > limit for row, limit in zip(rows, limits, strict=True))
        mean, deviation = mean_and_deviation([row["excess_error"] for row in rows])
        gap, largest = statistics.fmean(row["gap"] for row in rows), max(row["excess_error"] for row in rows)
        text.append(
            f"| {name} | {gap:.4f} | {mean:.4f} ± {deviation:.4f} | {largest:.4f} | "
            f"{min(limits):.4f} or more | {broken} of {len(rows)} |"
        )
    exact = [r["choices"]["exact"] for r in results]
    measured = {kind: max(row[f"excess_{kind}"] for row in exact) for kind in ("error", "loss")}
    text += ["", "| bound | value | constants | probability | vacuous | largest measured, exact choice | loss |"]
    text += ["|---|---|---|---|---|---|---|"]
    for bound in b.of_selection(results[0]["result"], 0.05):
        kind = "error" if bound.constant is None else "loss"
        constants = "the paper's" if bound.constant is None else f"unknown, {bound.constant:g} taken"
        text.append(
            f"| {bound.name} | {bound.value:.4f} | {constants} | {bound.probability:.2f} | "
            f"{'yes' if bound.vacuous() else 'no'} | {measured[kind]:.4f} | {'0-1' if kind == 'error' else 'squared'} |"
        )
        facts["bounds"][bound.name] = bound.to_dict()
    cloud = [
        Series(name, [r["trial"] for r in results], [r["choices"][name]["excess_error"] for r in results])
        for name in results[0]["choices"]
    ]
    panel = Panel("excess over the best configuration", "trial", "test error", cloud, kind="points")
    return "\n".join([*text, ""]), panels_svg([panel]), facts


def _heading(jobs: list[Job]) -> str:
    job, trials = jobs[0], len({j.trial for j in jobs})
    rows = "all training rows" if job.examples is None else f"{job.examples:,} training rows"
    widths = " to ".join(f"{d:,}" for d in sorted({min(j.dimension for j in jobs), max(j.dimension for j in jobs)}))
    return (
        f"### {job.maps} maps on {job.data}: {rows}, {widths} features, {job.configs} configurations, {trials} trials"
    )


PARTS: dict[str, tuple[Callable[[Job], Any], Callable[[list[Job], list[Any]], tuple[str, str, Any]]]] = {
    "figure1": (compare, correlation_report),
    "cifar": (race, race_report),
    "imdb": (race, race_report),
    "bounds": (measure, bounds_report),
}


def jobs_of(given: argparse.Namespace) -> list[Job]:
    asked = {k: v for k, v in vars(given).items() if v is not None and k in _SIZES}
    values = {**DEFAULTS[given.part], **(QUICK if given.quick else {}), **asked}
    names = given.methods.split(",") if given.part in ("cifar", "imdb") else [given.part]
    widths = [values.pop("dimension")]
    if given.part == "figure1":
        widths = [SMALLEST * 2**i for i in range(12) if SMALLEST * 2**i <= widths[0]] or widths
    return [
        Job(
            part=given.part, name=name if len(widths) == 1 else f"{name}-{width}", trial=trial,
            out=str(given.work_folder), folder=given.data_folder, dimension=width, validation=given.validation,
            max_seconds=given.max_seconds, memory=given.memory, warm=given.warm, **values,
        )
        for trial in range(given.seeds)
        for width in widths
        for name in names
    ]  # fmt: skip


_SIZES = ("data", "maps", "dimension", "examples", "configs")


def main() -> None:
    flags = Flags(
        __doc__, "features_{part}", seeds=10, chance="trials", data="the data set", work="runs/features_{part}"
    )
    flags.add_argument("--part", choices=PARTS, default="figure1", help="default figure1")
    flags.add_argument("--workers", type=int, default=1)
    flags.add_argument("--methods", default=",".join(SELECTION_METHODS))
    flags.add_argument("--max-seconds", type=float, default=300.0)
    flags.add_argument("--data", default=None)
    flags.add_argument("--maps", default=None)
    flags.add_argument("--dimension", type=int, default=None, help="the largest of 3125 * 2^i for figure1")
    flags.add_argument("--examples", type=int, default=None)
    flags.add_argument("--validation", type=int, default=None, help="so many last training rows")
    flags.add_argument("--configs", type=int, default=None)
    flags.add_argument("--memory", default=None)
    flags.add_argument("--warm", action="store_true", help="count the n-grams of all texts first, off the clock")
    given = flags.read(seeds=1, methods="fast-weight-sharing", max_seconds=0.5, validation=200)
    work, report = PARTS[given.part]
    jobs = jobs_of(given)
    trials = given.work_folder / "trials.json"
    results = kept(trials, jobs, work, workers=given.workers, tell=lambda job: f"{job.name}, trial {job.trial}")
    text, figure, facts = report(jobs, results)
    print(text)
    save(given, facts, table=text, figure=figure)


if __name__ == "__main__":
    main()
