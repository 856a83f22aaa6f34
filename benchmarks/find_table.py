"""What `nasight find` finds on NAS-Bench-201, looked up in its table.

    python benchmarks/find_table.py --data-folder DATA

Finds on CIFAR-10 with the table's network as the target, without a limit and within 0.4 M parameters, 20 minutes each
on two processes, seeds 200 to 202. When all have ended, their answers and the best points of their fronts under five
limits are looked up in DATA/nasbench201.csv.gz: test accuracy after 200 epochs, and the regret against the best cell of
the table within the same limit. Nothing was chosen by that table. Every find is a folder, and what it found is kept in
find_table_rows.json.gz beside the result: an interrupted benchmark resumes. Seconds count here: nothing else may run on
the machine.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from _shared import Flags, KeptRows, save, spread
from nasight.errors import RequestError
from nasight.studies import find, resume_find
from nasight.studies.finding import Answer
from nasight.tables import Table
from nasight.tables import load as load_table

LIMITS = (0.2, 0.4, 0.6, 0.8, 1.1)
"""Millions of parameters of the table's networks."""
OWN = 0.4
"""The limit within which a find of its own runs."""
COLUMN = "c10_test200"
QUICK = {"trainings": 26, "epochs": 1}


def found(place: Path, given: Namespace, seed: int, limit: float | None) -> Answer:
    """A find that has ended."""
    folder = given.data_folder
    if (place / "run.json").exists():
        return resume_find(place, data_folder=folder)
    how: dict[str, Any] = QUICK if given.budget is None else {"budget": given.budget}
    most = None if limit is None else int(limit * 1e6)
    return find(
        given.data, space="nasbench201", target="paper", max_params=most, seed=seed, workers=given.workers, out=place,
        data_folder=folder, **how,
    )  # fmt: skip


def told(answer: Answer) -> dict[str, Any]:
    """What a find found, without the table: its winner, and the best point of its front within each limit."""
    front = {str(limit): within(answer, limit) for limit in LIMITS}
    taken = answer.result["take"]
    return {"winner": answer.architecture, "answer": taken, "sentence": answer.sentence(), "front": front}


def within(answer: Answer, limit: float) -> str | None:
    """The best point of the front within a limit; None where no raced cell is."""
    try:
        return answer.within(max_params=int(limit * 1e6)).architecture
    except RequestError:
        return None


def best(table: Table, limit: float | None) -> float:
    """The most that the table has within a limit."""
    fits = table.column("params_M") <= (np.inf if limit is None else limit)
    return float(table.column(COLUMN)[fits].max())


def line(name: str, limit: float | None, cells: Sequence[str | None], table: Table) -> tuple[str, dict[str, Any]]:
    """One row of the table, and its figures; a front without a point counts as missing, and is said."""
    values = [float(table.column(COLUMN)[table.index(cell)]) for cell in cells if cell is not None]
    regrets = [best(table, limit) - value for value in values]
    none = f" ({len(cells) - len(values)} without a cell)" if len(values) < len(cells) else ""
    shown = "none" if limit is None else f"{limit} M"
    found = (spread(values), spread(regrets)) if values else ("-", "-")
    row = f"| {name} | {shown} | {found[0]}{none} | {best(table, limit):.2f} | {found[1]} |"
    return row, {"limit": limit, "cells": list(cells), "accuracies": values, "regrets": regrets}


def main() -> None:
    flags = Flags(__doc__, "find_table", seeds=3, data="CIFAR-10 and nasbench201.csv.gz", work="runs/find-table")
    flags.add_argument("--first-seed", type=int, default=200)
    flags.add_argument("--budget", type=float, default=1_200.0, help="seconds of a find (default 1200)")
    flags.add_argument("--data", default="cifar-10")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(seeds=1, budget=None, workers=1, data="digits")
    answers: dict[float | None, list[dict[str, Any]]] = {None: [], OWN: []}
    kept = KeptRows(given.out.with_name("find_table_rows.json.gz"))
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for limit in answers:
            place = given.work_folder / f"{given.budget}-{seed}-{'free' if limit is None else limit}"
            if place.name not in kept.rows:
                kept.put(place.name, told(found(place, given, seed, limit)))
            answers[limit].append(kept.rows[place.name])
            print(f"{place}: {answers[limit][-1]['sentence']}", file=sys.stderr, flush=True)
    table = load_table(folder=given.data_folder)
    fronts = [a["front"] for a in answers[None]]
    rows = [
        line("winner", None, [a["winner"] for a in answers[None]], table),
        line(
            "answer: the winner, or the reference where it is not better",
            None,
            [a["answer"] for a in answers[None]],
            table,
        ),
        line("winner of a find within the limit", OWN, [a["winner"] for a in answers[OWN]], table),
        line("answer of a find within the limit", OWN, [a["answer"] for a in answers[OWN]], table),
        *(line("front of the find without a limit", m, [front[str(m)] for front in fronts], table) for m in LIMITS),
    ]
    head = "| what | limit | test accuracy in the table, % | best there | regret, points |\n|---|---|---|---|---|"
    text = "\n".join([head, *(row for row, _ in rows)]) + "\n"
    print(text)
    save(given, {"budget": given.budget, "rows": [figures for _, figures in rows]}, table=text)


if __name__ == "__main__":
    main()
