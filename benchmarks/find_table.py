"""What `nasight find` finds on NAS-Bench-201, looked up in its table.

    python benchmarks/find_table.py --data-folder DATA

Finds on CIFAR-10 with the table's network as the target, without a limit and within 0.4 M parameters, 20 minutes each
on two processes, seeds 200 to 202. When all have ended, their answers and the best points of their fronts under five
limits are looked up in DATA/nasbench201.csv.gz: test accuracy after 200 epochs, and the regret against the best cell of
the table within the same limit. The space's reference runs along in every find as a control: it is a point of the front
like any other, so the fronts are looked up without it too, also where a search proposed it, and it stands there alone.
The best cell that was raced, by the table itself, tells what the proposals were worth from what the race made of them.

No setting of a find was chosen by looking finds up in that table. Three things were known from it beforehand:
parameters alone rank its cells (docs/trust.md); no search of minutes found a better cell than the largest
(docs/search.md), so that one is proposed too, as it is to every find in a small space; and the space's reference, a
residual cell, is within half a point of the best (docs/find_measured.md). That what is close to the reference is
proposed, also within smaller sizes, is the rule of all spaces. Six finds of an earlier version, which counted size as
much as accuracy, had been looked up before this one was made (docs/find_table_before.md; their rows are kept under
"before"); ways to judge were compared on rows of the training part (docs/find_target.md).

What a find found is kept in find_table_rows.json.gz beside the result: an interrupted benchmark resumes, and a find
that was interrupted begins anew, since what it did before a kill would not count. Seconds count here: nothing else may
run on the machine.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from _shared import Flags, KeptRows, code_digest, machine, mean_interval, save, spread, states, without_folders
from nasight.spaces import load as load_space
from nasight.studies import find
from nasight.studies.finding import Point, best_point
from nasight.tables import Table
from nasight.tables import load as load_table

LIMITS = (0.2, 0.4, 0.6, 0.8, 1.1)
"""Millions of parameters of the table's networks."""
OWN = 0.4
"""The limit within which a find of its own runs."""
COLUMN = "c10_test200"
QUICK = {"trainings": 26, "epochs": 1}
CONTROLS = ("reference", "stand-in")


def found(place: Path, given: Namespace, seed: int, limit: float | None) -> dict[str, Any]:
    """All that a find came to."""
    how: dict[str, Any] = QUICK if given.budget is None else {"budget": given.budget}
    most = None if limit is None else int(limit * 1e6)
    code = code_digest()
    answer = find(
        given.data, space="nasbench201", target="paper", max_params=most, seed=seed, workers=given.workers, out=place,
        data_folder=given.data_folder, overwrite=True, **how,
    )  # fmt: skip
    return {"result": without_folders(answer.result), "code": code, "machine": machine()}


def front(result: dict[str, Any], limit: float, *, controls: bool) -> str | None:
    """The best point of a front within a limit; None where no raced cell is."""
    points = [Point(**point) for point in result["front"]]
    fits = [p for p in points if p.parameters <= int(limit * 1e6) and (controls or p.proposed_by not in CONTROLS)]
    return best_point(fits).architecture if fits else None


def hindsight(result: dict[str, Any], limit: float | None, table: Table) -> str:
    """The raced cell within a limit that the table has as the best: what a perfect judge would have taken."""
    most = np.inf if limit is None else int(limit * 1e6)
    fits = [point["architecture"] for point in result["front"] if point["parameters"] <= most]
    return max(fits, key=lambda cell: float(table.column(COLUMN)[table.index(cell)]))


def best(table: Table, limit: float | None) -> float:
    """The most that the table has within a limit."""
    fits = table.column("params_M") <= (np.inf if limit is None else limit)
    return float(table.column(COLUMN)[fits].max())


def line(name: str, limit: float | None, cells: Sequence[str | None], table: Table) -> tuple[str, dict[str, Any]]:
    """One row of the table, and its figures; a front without a point counts as missing, and is said."""
    values = [None if cell is None else float(table.column(COLUMN)[table.index(cell)]) for cell in cells]
    regrets = [None if value is None else best(table, limit) - value for value in values]
    known = [value for value in values if value is not None]
    none = f" ({len(cells) - len(known)} without a cell)" if len(known) < len(cells) else ""
    shown = "none" if limit is None else f"{limit} M"
    figures = {"limit": limit, "cells": list(cells), "accuracies": values, "regrets": regrets}
    return f"| {name} | {shown} | {_spread(values)}{none} | {best(table, limit):.2f} | {_spread(regrets)} |", figures


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return spread(known) if known else "-"


def mean_regret(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """The mean over limits, with its interval over seeds; none where a front lacks a cell."""
    by_seed = list(zip(*(row["regrets"] for row in rows), strict=True))
    if any(regret is None for seed in by_seed for regret in seed):
        return f"{name}: no mean regret, since a front has no cell within some limit.\n"
    mean, half = mean_interval([fmean(seed) for seed in by_seed])
    ends = f" ({mean - half:.2f} to {mean + half:.2f} at 95 %, {len(by_seed)} finds)" if len(by_seed) > 1 else ""
    return f"{name}: mean regret over the five limits {mean:.2f}{ends}.\n"


def main() -> None:
    flags = Flags(__doc__, "find_table", seeds=3, data="CIFAR-10 and nasbench201.csv.gz", work="runs/find-table")
    flags.add_argument("--first-seed", type=int, default=200)
    flags.add_argument("--budget", type=float, default=1_200.0, help="seconds of a find (default 1200)")
    flags.add_argument("--data", default="cifar-10")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(seeds=1, budget=None, workers=1, data="digits")
    results: dict[float | None, list[dict[str, Any]]] = {None: [], OWN: []}
    codes = list[str]()
    kept = KeptRows(given.out.with_name("find_table_rows.json.gz"))
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for limit, those in results.items():
            name = f"{given.data}-{given.budget}-{given.workers}-{seed}-{'free' if limit is None else limit}"
            if name not in kept.rows:
                kept.put(name, found(given.work_folder / name, given, seed, limit))
            those.append(kept.rows[name]["result"])
            codes.append(kept.rows[name]["code"])
            print(f"{name}: {those[-1]['sentence']} ({those[-1]['seconds']:.0f} s)", file=sys.stderr, flush=True)
    table = load_table(folder=given.data_folder)
    space = load_space("nasbench201")
    reference = space.format(space.reference)
    free, own = results[None], results[OWN]
    rows = [
        line("winner", None, [r["architecture"] for r in free], table),
        line("what the answer says to take", None, [r["take"] for r in free], table),
        line("winner of a find within the limit", OWN, [r["architecture"] for r in own], table),
        line("what its answer says to take", OWN, [r["take"] for r in own], table),
    ]
    fronts = {
        name: [line(name, m, [front(r, m, controls=controls) for r in free], table) for m in LIMITS]
        for name, controls in (("front of the find without a limit", True), ("the same without its controls", False))
    }
    count = float(table.column("params_M")[table.index(reference)])
    alone = [line("the reference alone", m, [reference], table) for m in (None, *LIMITS) if m is None or count <= m]
    judged = [
        line("the best cell that was raced, in hindsight", m, [hindsight(r, m, table) for r in free], table)
        for m in (None, *LIMITS)
    ]
    shown = [*rows, *(row for those in fronts.values() for row in those), *judged, *alone]
    head = "| what | limit | test accuracy in the table, % | best there | regret, points |\n|---|---|---|---|---|"
    means = [mean_regret(name[0].upper() + name[1:], [figures for _, figures in of]) for name, of in fronts.items()]
    text = "\n".join([head, *(row for row, _ in shown), "", *means]) + states(codes)
    print(text)
    save(given, {"budget": given.budget, "rows": [figures for _, figures in shown]}, table=text)


if __name__ == "__main__":
    main()
