"""Which short trainings predict a long one? What the rungs of a find's race are made of.

    python benchmarks/find_rungs.py --data-folder DATA

A pool of NAS-Bench-201 cells, half drawn at random and half the largest of a further draw, is trained for the whole
schedule that a find of three minutes has on two cores, with two seeds, and for schedules of a third and a ninth of that
cost: fewer epochs on all rows, all epochs on fewer rows, and ways between. All are judged by the same held-out rows of
the training part; no test part and no table is read. Prints how each short schedule ranks the pool beside the long one,
beside what the parameter count and chance do, and what races of equal cost end with: many cells on short rungs, or few
on long ones. What was trained is kept in find_rungs_rows.json.gz beside the result, so an interrupted benchmark
resumes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.stats import kendalltau

from _shared import Flags, kept, mean_interval, save
from find import data_of
from nasight.reproducible import generator_for
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.studies.finding import Recipe, Request, Trainings, shared

SETS: dict[str, tuple[int, str]] = {"cifar-10": (6, "shift and flip"), "fashion-mnist": (12, "none")}
"""Data -> epochs of the long training, random changes of images."""
JUDGED = 0.25
LONG = (1.0, 1.0)
SEEDS = (0, 1)
Way = tuple[float, float]  # shares of the epochs and of the rows
Item = tuple[str, str, float, float, int]  # data, cell, shares of epochs and of rows, seed
WAYS: dict[str, list[Way]] = {
    "cifar-10": [(1 / 3, 1.0), (1 / 2, 2 / 3), (1.0, 1 / 3), (1 / 3, 1 / 3), (1 / 2, 2 / 9), (1.0, 1 / 9)],
    "fashion-mnist": [(1 / 3, 1.0), (1.0, 1 / 3), (1 / 4, 4 / 9), (1 / 3, 1 / 3), (1.0, 1 / 9)],
}
TRIALS = 2_000


def pool(space: Space, number: int, inputs: tuple[int, ...]) -> list[str]:
    """Half at random, half the largest quarter of a draw twice as large as the pool."""
    generator, count = generator_for(0, "pool"), space.parameters(inputs, 10)
    drawn = [space.sample(generator) for _ in range(3 * number)]
    large = sorted(drawn[number:], key=count, reverse=True)[: number // 2]
    return list(dict.fromkeys(space.format(arch) for arch in (*drawn[: number // 2], *large)))


def request_of(item: Item, rows: dict[str, int]) -> Request:
    """The training that an item means."""
    name, cell, epochs, share, seed = item
    space, (longest, changes) = load_space("nasbench201", none=False), SETS[name]
    return Request(
        cell, "space", max(1, round(epochs * longest)), seed, Recipe(augmentation=changes),
        examples=max(64, round(share * rows[name])), validation=JUDGED,
        size=tuple(sorted((space.train_size("tiny") or {}).items())), batch_size=64,
    )  # fmt: skip


def trained(item: Item, folders: dict[str, str], rows: dict[str, int]) -> float:
    """Held-out accuracy of a cell after a schedule."""
    space = load_space("nasbench201", none=False)
    outcome = Trainings({"space": space}, folders[item[0]])(request_of(item, rows))
    return float("nan") if outcome is None else float(outcome.accuracy)


def raced(seen: dict[Way, np.ndarray], long: np.ndarray, rungs: list[tuple[Way, int]], rng: Any) -> float:
    """What races end with on average: the second seed's accuracy of the cell that the last rung puts first."""
    ends = []
    for _ in range(TRIALS):
        left = rng.permutation(len(long))[: rungs[0][1]]
        for way, places in rungs:
            left = left[:places]
            left = left[np.argsort(-seen[way][left], kind="stable")]
        ends.append(long[left[0]])
    return float(np.mean(ends))


def report(name: str, cells: list[str], found: dict[Item, float], sizes: list[int]) -> tuple[list[str], dict[str, Any]]:
    """The tables of one data set."""

    def column(way: Way, seed: int) -> np.ndarray:
        return np.array([found[name, cell, *way, seed] for cell in cells])

    first, second = (column(LONG, seed) for seed in SEEDS)
    seen = {way: column(way, 0) for way in [*WAYS[name], LONG]}
    epochs = SETS[name][0]
    lines = [f"### {name}: {len(cells)} cells, {epochs} epochs in the long training", ""]
    lines += ["| schedule | cost | Kendall's tau with the long one | accuracy, % |", "|---|---|---|---|"]
    shown = {way: f"{max(1, round(way[0] * epochs))} epochs, {way[1]:.0%} of the rows" for way in seen}
    for way, values in seen.items():
        other = second if way == LONG else (first + second) / 2
        text = "the long one, another seed" if way == LONG else shown[way]
        tau = kendalltau(values, other).statistic
        lines.append(f"| {text} | {way[0] * way[1]:.2f} | {tau:.2f} | {values.mean():.2f} |")
    lines.append(f"| number of parameters | 0 | {kendalltau(sizes, (first + second) / 2).statistic:.2f} | |")
    lines += ["", "| race, as much time as five long trainings | ends at, % |", "|---|---|"]
    rng, races = np.random.default_rng(0), dict[str, float]()
    plans: dict[str, list[tuple[Way, int]]] = {"5 x long": [(LONG, 5)]}
    for way in WAYS[name]:
        cost = way[0] * way[1]
        plans[f"{round(2.5 / cost)} x {shown[way]}, then 2 x long"] = [(way, round(2.5 / cost)), (LONG, 2)]
    for low in (w for w in WAYS[name] if w[0] * w[1] < 0.2):
        for middle in (w for w in WAYS[name] if w[0] * w[1] > 0.2):
            plans[f"15 x {shown[low]}, 5 x {shown[middle]}, 2 x long"] = [(low, 15), (middle, 5), (LONG, 2)]
    for text, rungs in plans.items():
        races[text] = raced(seen, second, rungs, rng)
        lines.append(f"| {text} | {races[text]:.2f} |")
    mean, half = mean_interval(second.tolist())
    lines += [f"| a cell at random | {mean:.2f} ± {half:.2f} |", f"| the best of the pool | {second.max():.2f} |", ""]
    values = {shown[way]: column.tolist() for way, column in seen.items()}
    return lines, {"cells": cells, "parameters": sizes, "first": values, "second": second.tolist(), "races": races}


def main() -> None:
    flags = Flags(__doc__, "find_rungs", data="Fashion-MNIST and CIFAR-10")
    flags.add_argument("--data", default="cifar-10,fashion-mnist")
    flags.add_argument("--cells", type=int, default=32, help="of the pool (default 32)")
    flags.add_argument("--workers", type=int, default=1)
    given = flags.read(data="fashion-mnist", cells=6)
    torch.set_num_threads(1)
    space, names = load_space("nasbench201", none=False), given.data.split(",")
    lines, results = list[str](), dict[str, Any]()
    for name in names:
        data = data_of(name, given.data_folder)
        cells = pool(space, given.cells, data.inputs)
        rows = 300 if given.quick else round((1 - JUDGED) * len(data.train_y))
        schedules = [*((LONG, seed) for seed in SEEDS), *((way, 0) for way in WAYS[name])]
        items: list[Item] = [(name, cell, *way, seed) for cell in cells for way, seed in schedules]
        with shared(data) as folder:
            work = partial(trained, folders={name: folder}, rows={name: rows})
            place = given.out.with_name("find_rungs_rows.json.gz")
            found = dict(zip(items, kept(place, items, work, workers=given.workers, settings=rows), strict=True))
        count = space.parameters(data.inputs, 10)
        text, results[name] = report(name, cells, found, [count(space.parse(cell)) for cell in cells])
        lines += text
    print("\n".join(lines))
    save(given, results, table="\n".join(lines))


if __name__ == "__main__":
    main()
