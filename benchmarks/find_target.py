"""Who should be taken where a far longer training is meant? Ways to judge, on cells that are then trained for long.

    python benchmarks/find_target.py --data-folder DATA

A pool of NAS-Bench-201 cells (the reference, what is closest to it within sizes from small to large, the largest cell,
and cells drawn at random) is trained at the size that a find of twenty minutes has on two cores for CIFAR-10: for about
as long as the first rung of its race was, for as long as a race of one rung allows, and then, with another seed, for
three times as long. A tenth of the rows, which the short trainings do not learn from, judges these; the long one is
judged by 10,000 other rows of the training part. No test part and no table is read.

Prints how each way ranks the pool beside the long training, and what it takes within limits of parameters, counted at
the size of the table: how far the cell that it takes is behind the best of the pool within the limit, after the long
training. Intervals are over pools drawn from the pool. What was trained is kept in find_target_rows.json.gz beside the
result, so an interrupted benchmark resumes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import kendalltau, rankdata

from _shared import Flags, kept, save
from nasight.architecture import Architecture
from nasight.data import Dataset, load
from nasight.reproducible import generator_for
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.studies.finding import Recipe, Request, Trainings, shared

FURTHER = 10_000
JUDGED = 0.1
SCHEDULES = {"first rung": (6, 3_800, 0), "one rung": (6, 17_000, 0), "long": (8, 40_000, 1)}
"""Epochs, rows and seed."""
LIMITS = (0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95, 1.1)
"""Millions of parameters at the size of the table, within which the closest to the reference is in the pool."""
NONE = 10.0
"""A limit that no cell is over."""
ASKED = (0.2, 0.4, 0.6, 0.8, 1.1, NONE)
FULL = {"channels": 16, "cells": 5}
DRAWS = 2_000
Array = NDArray[Any]
Judge = Callable[[Array, Array, Array], Array]
"""Merits of cells, from their accuracies after the first and the one rung, and from their sizes."""
JUDGES: dict[str, Judge] = {
    "accuracy": lambda first, one, size: one,
    "sum of the ranks by accuracy and by size": lambda first, one, size: rankdata(one) + rankdata(size),
    "size": lambda first, one, size: size,
    "accuracy of the first rung": lambda first, one, size: first,
    "sum of the ranks, first rung": lambda first, one, size: rankdata(first) + rankdata(size),
}
Item = tuple[str, str]  # cell, schedule


def rows_apart(data: Dataset, quick: bool) -> Dataset:
    """The training part, of which some rows become the test part."""
    order = torch.randperm(len(data.train_y), generator=generator_for(0, "further rows"))
    further, rest = order[:FURTHER], order[FURTHER:]
    if quick:
        further, rest = order[:200], order[200:800]
    parts = {"train_x": data.train_x[rest], "train_y": data.train_y[rest]}
    return replace(data, **parts, test_x=data.train_x[further], test_y=data.train_y[further])


def pool(space: Space, number: int, count: Callable[[Architecture], int]) -> list[str]:
    """The reference, the closest to it within sizes, the largest, and as many more drawn at random."""
    cells, usual = sorted(space, key=space.format), space.reference

    def far(arch: Architecture) -> int:
        return sum(arch[decision.name] != usual[decision.name] for decision in space.decisions)

    def closest(limit: float) -> Architecture:
        return min((c for c in cells if count(c) <= limit * 1e6), key=lambda c: (far(c), -count(c)))

    chance = generator_for(0, "pool")
    found = [usual, *map(closest, LIMITS), max(cells, key=count)]
    found += [space.sample(chance) for _ in range(number)]
    return list(dict.fromkeys(map(space.format, found)))[:number]


def trained(item: Item, folder: str, quick: bool) -> float:
    """Accuracy of a cell after a schedule."""
    cell, (epochs, rows, seed) = item[0], SCHEDULES[item[1]]
    space, long = load_space("nasbench201", none=False), item[1] == "long"
    request = Request(
        cell, "space", 1 if quick else epochs, seed, Recipe(lr=0.15),
        examples=min(rows, 300) if quick else rows, validation="test" if long else JUDGED,
        size=tuple(sorted((space.train_size("tiny") or {}).items())), batch_size=64,
    )  # fmt: skip
    outcome = Trainings({"space": space}, folder)(request)
    return float("nan") if outcome is None else float(outcome.accuracy)


def behind(merits: Array, sizes: Array, worth: Array) -> list[float]:
    """How far what is taken within each limit is behind the best there."""
    found = []
    for limit in ASKED:
        within = np.flatnonzero(sizes <= limit * 1e6)
        if len(within):
            found.append(float(worth[within].max() - worth[within[np.argmax(merits[within])]]))
    return found


def table(seen: dict[str, Array], sizes: Array) -> tuple[str, dict[str, Any]]:
    """A line for each way to judge, and its figures."""
    rng, number = np.random.default_rng(0), len(sizes)

    def judged(cells: Array) -> dict[str, tuple[float, list[float]]]:
        first, one, worth, size = (column[cells] for column in (*seen.values(), sizes))
        merits = {name: judge(first, one, size) for name, judge in JUDGES.items()}
        return {name: (kendalltau(of, worth).statistic, behind(of, size, worth)) for name, of in merits.items()}

    whole, drawn = (
        judged(np.arange(number)),
        [judged(np.unique(rng.integers(number, size=number))) for _ in range(DRAWS)],
    )
    limits = " | ".join("none" if limit == NONE else f"{limit} M" for limit in ASKED)
    lines = [
        f"{number} cells. Points behind the best of the pool within a limit, after the long training:",
        "",
        f"| judged by | Kendall's tau | less accuracy's (95 %) | {limits} | mean | less accuracy's (95 %) |",
        "|---|---|---|" + "---|" * (len(ASKED) + 2),
    ]

    def apart(name: str, of: Callable[[tuple[float, list[float]]], float]) -> str:
        """How far a way is from accuracy, with its interval."""
        if name == "accuracy":
            return ""
        low, high = np.quantile([of(each[name]) - of(each["accuracy"]) for each in drawn], [0.025, 0.975])
        return f"{of(whole[name]) - of(whole['accuracy']):+.2f} ({low:+.2f} to {high:+.2f})"

    for name, (tau, regrets) in whole.items():
        figures = " | ".join(f"{value:.2f}" for value in regrets)
        ranked, lost = apart(name, lambda of: of[0]), apart(name, lambda of: fmean(of[1]))
        lines.append(f"| {name} | {tau:+.2f} | {ranked} | {figures} | {fmean(regrets):.2f} | {lost} |")
    return "\n".join(lines) + "\n", {"behind": {name: regrets for name, (_, regrets) in whole.items()}}


def main() -> None:
    flags = Flags(__doc__, "find_target", data="CIFAR-10")
    flags.add_argument("--data", default="cifar-10")
    flags.add_argument("--cells", type=int, default=20, help="of the pool (default 20)")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(data="digits", cells=5, workers=1)
    space, data = (
        load_space("nasbench201", none=False),
        rows_apart(load(given.data, folder=given.data_folder), given.quick),
    )
    count = space.parameters(data.inputs, data.n_classes, **FULL)
    cells = pool(space, given.cells, count)
    # The cells of a part of the pool are those of a whole one, and a schedule of all comes before the next.
    items: list[Item] = [(cell, schedule) for schedule in SCHEDULES for cell in cells]
    with shared(data) as folder:
        place = given.out.with_name("find_target_rows.json.gz")
        work = partial(trained, folder=folder, quick=given.quick)
        found = kept(place, items, work, workers=given.workers, settings=given.data)
    seen = {s: np.array(found[i * len(cells) : (i + 1) * len(cells)]) for i, s in enumerate(SCHEDULES)}
    sizes = np.array([count(space.reference if c == space.format(space.reference) else space.parse(c)) for c in cells])
    text, figures = table(seen, sizes)
    print(text)
    values = {name: column.tolist() for name, column in seen.items()}
    save(given, {"cells": cells, "parameters": sizes.tolist(), **values, **figures}, table=text)


if __name__ == "__main__":
    main()
