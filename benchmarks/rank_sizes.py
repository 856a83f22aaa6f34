"""From which size on shared weights rank: rank correlations with NAS-Bench-201's table against data, epochs and size.

    python benchmarks/rank_sizes.py --data-folder DATA [--also RUN ...]

GAEA-DARTS (ERM) on CIFAR-10, around a search of a minute (3,000 images of 16 x 16, 16 epochs, 8 channels): one of the
three is made smaller and larger at a time. After each search 200 random cells are ordered by the architecture weights,
by their accuracy with the shared weights and by their number of parameters, and compared with the test accuracy after
200 epochs in DATA/nasbench201.csv.gz. --also takes larger searches that are there already, such as those of the presets
`small` and `medium`; with --only-also nothing else is ranked. Runs with the same settings are seeds of one row. What
was ranked is kept in rank_sizes_rows.json.gz beside the result, so an interrupted benchmark resumes, and later runs
join the rows of earlier ones. Nothing is chosen by the table.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from scipy import stats

from _shared import Flags, KeptRows, mean_and_deviation, rank_correlation, save, search_or_resume, spread
from nasight.report import Panel, Series, panels_svg
from nasight.searching import Run
from nasight.studies import rank
from nasight.tables import load as load_table

BASE: dict[str, Any] = {
    "space": "nasbench201", "method": "gaea-darts", "objective": "erm", "data": "cifar-10", "threads": 1,
    "resolution": 16, "size": {"channels": 8, "cells": 1}, "examples": 3_000, "epochs": 16,
}  # fmt: skip
AXES: dict[str, list[Any]] = {
    "examples": [1_000, 3_000, 9_000],
    "epochs": [4, 16, 48],
    "size": [{"channels": c, "cells": 1} for c in (4, 8, 16)],
}
LABELS = {"examples": "images", "epochs": "epochs", "size": "channels"}
WHOLE: list[dict[str, Any]] = [
    BASE,
    {**BASE, "examples": 8_000, "epochs": 10, "resolution": None},
    {**BASE, "examples": None, "epochs": 25, "resolution": None},
]
"""The search of a minute, and those of the presets `small` and `medium`, which --also adds."""
SIGNALS = ("architecture weights", "shared weights", "parameters")
SAMPLE, SEED = 200, 7
ROWS = 2_000
"""At most so many judge the shared weights, or as many as --rows says. A search that held nothing out is judged by rows
that it learned from."""


def name_of(settings: dict[str, Any]) -> str:
    """The figures of a search that a row of the table shows."""
    size, images = settings["size"], settings["examples"] or 50_000
    return (
        f"{images:,} images of {settings['resolution'] or 32} pixels, {settings['epochs']} epochs, "
        f"{size['channels']} channels, {size['cells']} per stage"
    )


def ranked(run: Run, folder: str | None, sample: int, rows: int) -> dict[str, Any]:
    """Spearman's rho of every signal with the table, and what the search itself came to."""
    how = {"sample": sample, "examples": rows, "seed": SEED, "data_folder": folder, "device": "cpu"}
    found = rank(run, table="nasbench201", metrics=(), **how)
    rho = {name: rank_correlation(found.predictions[name], found.accuracies) for name in SIGNALS}
    table, cell = load_table(folder=folder), str(run.result["architecture"])
    accuracy = float(table.column("c10_test200")[table.index(cell)])
    return {"rho": rho, "seconds": run.result["seconds"], "cell": cell, "accuracy": accuracy, "rows": rows}


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half width of the 95 % interval over seeds, 0 for one."""
    mean, deviation = mean_and_deviation(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, float(stats.t.ppf(0.975, len(values) - 1)) * deviation / len(values) ** 0.5


def summary(rows: dict[str, dict[str, Any]]) -> str:
    """A row per size of search, with 95 % intervals over seeds."""
    head = "| search | seeds | minutes | cells found, table, % | " + " | ".join(SIGNALS) + " |"
    lines = [head, "|---|---|---|---|" + "---|" * len(SIGNALS)]
    for name, row in rows.items():
        cells = []
        for signal in SIGNALS:
            mean, half = interval([v for v in row["rho"][signal] if v is not None])
            cells.append(f"{mean:+.2f} ± {half:.2f}" if len(row["seconds"]) > 1 else f"{mean:+.2f}")
        minutes = sum(row["seconds"]) / len(row["seconds"]) / 60
        found = spread(row["accuracy"])
        lines.append(f"| {name} | {len(row['seconds'])} | {minutes:.1f} | {found} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def figure(rows: dict[str, dict[str, Any]]) -> str:
    """A panel per axis and one for whole presets, a line per signal."""
    panels = [
        panel(rows, f"against {LABELS[axis]}", LABELS[axis], [({**BASE, axis: v}, width(v)) for v in values])
        for axis, values in AXES.items()
    ]
    passed = [(how, learned_rows(how) * how["epochs"]) for how in WHOLE]
    label = "images learned from x epochs"
    return panels_svg([*panels, panel(rows, "a minute, small, medium", label, passed, kind="points")])


def learned_rows(how: dict[str, Any]) -> float:
    """Images of an epoch: the published search learns from all, the others hold a fifth out."""
    return 50_000.0 if how["examples"] is None else 0.8 * how["examples"]


def width(value: Any) -> float:
    """Where a value of an axis stands."""
    return float(value["channels"] if isinstance(value, dict) else value)


def panel(
    rows: dict[str, dict[str, Any]],
    title: str,
    label: str,
    searches: list[tuple[dict[str, Any], float]],
    kind: str = "line",
) -> Panel:
    """The correlations of the searches that there are, from left to right."""
    known = [(rows[name], x) for how, x in searches if (name := name_of(how)) in rows]
    series = []
    for signal in SIGNALS:
        points = [interval([v for v in row["rho"][signal] if v is not None]) for row, _ in known]
        series.append(Series(signal, [x for _, x in known], [mean for mean, _ in points], [half for _, half in points]))
    return Panel(title, label, "rank correlation", series, log_x=True, kind=kind)


def main() -> None:
    flags = Flags(__doc__, "rank_sizes", seeds=8, data="CIFAR-10 and nasbench201.csv.gz", work="runs/rank-sizes")
    flags.add_argument("--first-seed", type=int, default=300)
    flags.add_argument("--sample", type=int, default=SAMPLE, help=f"cells that are ranked (default {SAMPLE})")
    flags.add_argument("--rows", type=int, default=ROWS, help=f"that judge the shared weights (default {ROWS})")
    flags.add_argument("--also", nargs="*", default=[], metavar="RUN", help="finished searches to rank too")
    flags.add_argument("--only-also", action="store_true", help="search nothing")
    given = flags.read(seeds=1, sample=8)
    base = {**BASE, "examples": 100, "epochs": 1, "resolution": 8} if given.quick else BASE
    axes = {"epochs": [1]} if given.quick else AXES
    # The base is on every axis, and is searched once.
    grid = {name_of(how): how for axis, values in axes.items() for v in values for how in [{**base, axis: v}]}
    kept = KeptRows(given.out.with_name("rank_sizes_rows.json.gz"))

    def add(name: str, run: Run) -> None:
        figures = ranked(run, given.data_folder, given.sample, given.rows)
        kept.put(json.dumps([name, run.settings.seed, given.sample]), figures)
        print(f"seed {run.settings.seed}: {name}", file=sys.stderr, flush=True)

    for seed in range(given.first_seed, given.first_seed + given.seeds) if not given.only_also else ():
        for number, (name, how) in enumerate(grid.items()):
            if json.dumps([name, seed, given.sample]) not in kept.rows:
                place = given.work_folder / f"{number}-{seed}"
                add(name, search_or_resume(place, data_folder=given.data_folder, seed=seed, **how))
    for run in map(Run, given.also):
        add(name_of({key: getattr(run.settings, key) for key in ("size", "examples", "epochs", "resolution")}), run)
    rows: dict[str, dict[str, Any]] = {}
    for key, one in kept.rows.items():
        name, _, sample = json.loads(key)
        if sample == given.sample:
            row = rows.setdefault(name, {"rho": {signal: [] for signal in SIGNALS}, "seconds": [], "accuracy": []})
            for signal in SIGNALS:
                row["rho"][signal].append(one["rho"][signal])
            row["seconds"].append(one["seconds"])
            row["accuracy"].append(one["accuracy"])
    text = summary(rows)
    print(text)
    save(given, rows, table=text, figure=figure(rows))


if __name__ == "__main__":
    main()
