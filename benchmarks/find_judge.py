"""Who should win a race of short trainings? Ways to judge candidates, on a pool whose worth is known.

    python benchmarks/find_judge.py --data-folder DATA

A pool of NAS-Bench-201 cells is trained as the rungs of a find of three minutes on two cores train them: for about a
ninth and a third of the longest schedule, and for all of it with two seeds. Each training is judged by a quarter of
the training rows, by all rows that it did not learn from, and by 5,000 further rows of the training part, which no
find would have: these say what a cell is worth. No test part and no table is read. Races are then drawn again and again
from the pool and run on paper, with every way to judge and at equal cost; what a way is worth is the mean accuracy of
the cells that win, after the long training with the second seed, on the further rows. Intervals are over pools drawn
from the pool. What was trained is kept in find_judge_rows.json.gz beside the result, so an interrupted benchmark
resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.stats import kendalltau, rankdata

from _shared import Flags, kept, save, shrunk
from find import SETS, data_of
from find_rungs import JUDGED, LONG, Item, Way, pool, request_of
from nasight.data import Dataset, load
from nasight.reproducible import generator_for
from nasight.spaces import load as load_space
from nasight.studies.finding import Trainings, shared
from nasight.training import Job, Trainer, parts

RUNGS: dict[str, list[Way]] = {
    "cifar-10": [(1.0, 1 / 9), (1.0, 1 / 3)],
    "fashion-mnist": [(1 / 2, 2 / 9), (1 / 2, 2 / 3)],
}
"""Shares of the epochs and rows, as the plan of a find has them: 6 epochs, and 6 of 12."""
FURTHER = 5_000
PLACES = (13, 4, 2)
RACES, DRAWN_RACES, DRAWS = 3_000, 150, 300
BY = {"judged": "a quarter of the rows", "rest": "all rows not learned from", "others": "5,000 further rows"}
Array = np.ndarray[Any, Any]
Judge = Callable[[Array, Array], Array]
"""Merits of candidates, from their accuracies on a rung and their sizes."""
JUDGES: dict[str, Judge] = {
    "accuracy": lambda accuracy, size: accuracy,
    "sum of the ranks by accuracy and by size": lambda accuracy, size: rankdata(accuracy) + rankdata(size),
    "size": lambda accuracy, size: size,
}


def with_further_rows(name: str, folder: str | None) -> Dataset:
    """The rows that a find has, and as its test part others of the training part."""
    part, whole = data_of(name, folder), load(name, folder=folder)
    order = torch.randperm(len(whole.train_y), generator=generator_for(0, "benchmark rows"))
    others = order[SETS[name]["rows"] :][:FURTHER]
    further = shrunk(replace(whole, train_x=whole.train_x[others], train_y=whole.train_y[others]), SETS[name]["side"])
    return replace(part, test_x=further.train_x, test_y=further.train_y)


def trained(item: Item, folders: dict[str, str], rows: dict[str, int]) -> dict[str, float]:
    """What a cell has after a schedule, by three sets of rows."""
    trainings = Trainings({"space": load_space("nasbench201", none=False)}, folders[item[0]])
    return accuracies(trainings.job(request_of(item, rows)))


def accuracies(job: Job) -> dict[str, float]:
    """What a training comes to, by the rows that judge a race, by all that it did not learn from, by further ones."""
    torch.set_num_threads(1)
    trainer = Trainer(job)
    while not trainer.done:
        trainer.set_rates()
        while trainer.step < trainer.loader.steps:
            trainer.take_step()
        trainer.next_epoch()
    taught, held_out, _ = parts(job.data, job.settings)
    assert taught is not None
    unseen = torch.ones(len(job.data.train_y), dtype=torch.bool)
    unseen[taught] = False
    found = {}
    for by, judging in (("judged", held_out), ("rest", unseen.nonzero()[:, 0]), ("others", None)):
        trainer.held_out = judging
        found[by] = 100.0 * float(trainer.right().float().mean())
    return found


@dataclass(frozen=True)
class Pool:
    """Accuracies of cells (cells, rungs) by every set of rows, their sizes, and what they are worth."""

    accuracies: dict[str, Array]
    sizes: Array
    worth: Array

    def winner(self, raced: Array, judge: Judge, by: str, *, champion: bool = False) -> int:
        """Who wins a race of these cells; the champion by size has a place on every rung, if there is one."""
        left, largest = raced, raced[np.argmax(self.sizes[raced])]
        for rung, places in enumerate(PLACES):
            left = left[:places]
            if champion and largest not in left:
                left = np.append(left[:-1], largest)
            merits = judge(self.accuracies[by][left, rung], self.sizes[left])
            left = left[np.argsort(-merits, kind="stable")]
        return int(left[0])

    def race(self, cells: Array, races: int, seed: int, **how: Any) -> float:
        """The mean worth of those who win races of cells drawn from these."""
        rng = np.random.default_rng(seed)
        drawn = (rng.permutation(cells)[: PLACES[0]] for _ in range(races))
        return float(np.mean([self.worth[self.winner(raced, **how)] for raced in drawn]))


def ways() -> dict[str, dict[str, Any]]:
    """The ways to judge a race."""
    accuracy = JUDGES["accuracy"]
    found: dict[str, dict[str, Any]] = {name: {"judge": judge, "by": "judged"} for name, judge in JUDGES.items()}
    found["accuracy on all rows not learned from"] = {"judge": accuracy, "by": "rest"}
    found["accuracy; the largest has a place on every rung"] = {"judge": accuracy, "by": "judged", "champion": True}
    return found


def raced(cells: Pool) -> list[str]:
    """A line for each way to judge: what it ends with, and how that differs from accuracy alone."""
    number, rng = len(cells.worth), np.random.default_rng(0)
    pools = [np.unique(rng.integers(number, size=number)) for _ in range(DRAWS)]
    means, drawn = dict[str, float](), dict[str, Array]()
    for name, how in ways().items():
        means[name] = cells.race(np.arange(number), RACES, 0, **how)
        drawn[name] = np.array([cells.race(some, DRAWN_RACES, seed, **how) for seed, some in enumerate(pools, 1)])
    lines = ["| race judged by | winners are worth, % | less accuracy alone (95 %) |", "|---|---|---|"]
    for name, mean in means.items():
        low, high = np.quantile(drawn[name] - drawn["accuracy"], [0.025, 0.975])
        apart = "" if name == "accuracy" else f"{mean - means['accuracy']:+.2f} ({low:+.2f} to {high:+.2f})"
        lines.append(f"| {name} | {mean:.2f} | {apart} |")
    average, best = cells.worth.mean(), cells.worth.max()
    return [*lines, f"| no race: a cell at random | {average:.2f} | |", f"| the best of the pool | {best:.2f} | |", ""]


def predicted(cells: Pool, rungs: Sequence[str]) -> list[str]:
    """How trainings of every length, judged by every set of rows, rank the pool beside what the cells are worth."""
    lines = ["| judged by | " + " | ".join(rungs) + " |", "|---|" + "---|" * len(rungs)]
    for by, text in BY.items():
        taus = [kendalltau(column, cells.worth).statistic for column in cells.accuracies[by].T]
        lines.append(f"| {text} | " + " | ".join(f"{tau:+.2f}" for tau in taus) + " |")
    size = kendalltau(cells.sizes, cells.worth).statistic
    return [*lines, "| size alone | " + " | ".join(f"{size:+.2f}" for _ in rungs) + " |", ""]


def main() -> None:
    flags = Flags(__doc__, "find_judge", data="CIFAR-10 and Fashion-MNIST")
    flags.add_argument("--data", default="cifar-10", help="names, joined by commas (default cifar-10)")
    flags.add_argument("--cells", type=int, default=48, help="of the pool (default 48)")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(data="fashion-mnist", cells=6, workers=1)
    space, lines, results = load_space("nasbench201", none=False), list[str](), dict[str, Any]()
    for name in given.data.split(","):
        data = with_further_rows(name, given.data_folder)
        cells = pool(space, given.cells, data.inputs)
        rows = 300 if given.quick else round((1 - JUDGED) * len(data.train_y))
        schedules = [*((way, 0) for way in RUNGS[name]), (LONG, 0), (LONG, 1)]
        items: list[Item] = [(name, cell, *way, seed) for cell in cells for way, seed in schedules]
        with shared(data) as folder:
            work = partial(trained, folders={name: folder}, rows={name: rows})
            place = given.out.with_name("find_judge_rows.json.gz")
            found = kept(place, items, work, workers=given.workers, settings=rows)
        count, shape = space.parameters(data.inputs, 10), (len(cells), len(schedules))
        table = {by: np.array([one[by] for one in found]).reshape(shape) for by in BY}
        sizes = np.array([count(space.parse(cell)) for cell in cells], float)
        known = Pool({by: values[:, :-1] for by, values in table.items()}, sizes, table["others"][:, -1])
        texts = [f"{e:.0%} of the epochs, {r:.0%} of the rows" for e, r in [*RUNGS[name], LONG]]
        lines += [f"### {name}: {len(cells)} cells", "", *predicted(known, texts), *raced(known)]
        results[name] = {"cells": cells, "sizes": sizes.tolist(), **{by: v.tolist() for by, v in table.items()}}
    print("\n".join(lines))
    save(given, results, table="\n".join(lines))


if __name__ == "__main__":
    main()
