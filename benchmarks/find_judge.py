"""Who should win a race of short trainings? Ways to judge candidates, on a pool whose worth is known.

    python benchmarks/find_judge.py --data-folder DATA

A pool of NAS-Bench-201 cells is trained as the rungs of a find of three minutes on two cores train them: for about a
ninth and a third of the longest schedule, and for all of it with two seeds. Each training is judged by a quarter of
the training rows, by all rows that it did not learn from, and by 5,000 further rows of the training part, which no
find would have: these say what a cell is worth. No test part and no table is read. Races are then drawn again and again
from the pool and run on paper, with every way to judge; what a way is worth is the mean accuracy of the cells that win,
after the long training with the second seed, on the further rows. Intervals are over pools drawn from the pool. What
was trained is kept in find_judge_rows.json.gz beside the result, so an interrupted benchmark resumes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from _shared import Flags, kept, shrunk
from find import SETS, data_of
from find_rungs import JUDGED, LONG, Item, Way, pool, request_of
from nasight.data import Dataset, load
from nasight.reproducible import generator_for
from nasight.spaces import load as load_space
from nasight.studies.finding import Trainings, shared
from nasight.training import Trainer

RUNGS: dict[str, list[Way]] = {
    "cifar-10": [(1.0, 1 / 9), (1.0, 1 / 3)],
    "fashion-mnist": [(1 / 2, 2 / 9), (1 / 2, 2 / 3)],
}
"""Shares of the epochs and rows, as the plan of a find has them: 6 epochs, and 6 of 12."""
FURTHER = 5_000


def with_further_rows(name: str, folder: str | None) -> Dataset:
    """The rows that a find has, and as its test part others of the training part."""
    part, whole = data_of(name, folder), load(name, folder=folder)
    order = torch.randperm(len(whole.train_y), generator=generator_for(0, "benchmark rows"))
    others = order[SETS[name]["rows"] :][:FURTHER]
    further = shrunk(replace(whole, train_x=whole.train_x[others], train_y=whole.train_y[others]), SETS[name]["side"])
    return replace(part, test_x=further.train_x, test_y=further.train_y)


def trained(item: Item, folders: dict[str, str], rows: dict[str, int]) -> dict[str, float]:
    """What a cell has after a schedule, by three sets of rows."""
    torch.set_num_threads(1)
    work = Trainings({"space": load_space("nasbench201", none=False)}, folders[item[0]])
    trainer = Trainer(work.job(request_of(item, rows)))
    while not trainer.done:
        trainer.set_rates()
        while trainer.step < trainer.loader.steps:
            trainer.take_step()
        trainer.next_epoch()
    held_out = trainer.held_out
    assert held_out is not None
    learned = torch.zeros(len(trainer.job.data.train_y), dtype=torch.bool)
    learned[trainer.loader._rows] = True
    found = {}
    for by, judging in (("judged", held_out), ("rest", (~learned).nonzero()[:, 0]), ("others", None)):
        trainer.held_out = judging
        found[by] = 100.0 * float(trainer.right().float().mean())
    return found


def main() -> None:
    flags = Flags(__doc__, "find_judge", data="Fashion-MNIST and CIFAR-10")
    flags.add_argument("--data", default="cifar-10,fashion-mnist")
    flags.add_argument("--cells", type=int, default=48, help="of the pool (default 48)")
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(data="fashion-mnist", cells=6, workers=1)
    space, names = load_space("nasbench201", none=False), given.data.split(",")
    results = dict[str, Any]()
    for name in names:
        data = with_further_rows(name, given.data_folder)
        cells = pool(space, given.cells, data.inputs)
        rows = 300 if given.quick else round((1 - JUDGED) * len(data.train_y))
        schedules = [*((way, 0) for way in RUNGS[name]), (LONG, 0), (LONG, 1)]
        items: list[Item] = [(name, cell, *way, seed) for cell in cells for way, seed in schedules]
        with shared(data) as folder:
            work = partial(trained, folders={name: folder}, rows={name: rows})
            place = given.out.with_name("find_judge_rows.json.gz")
            results[name] = kept(place, items, work, workers=given.workers, settings=rows)


if __name__ == "__main__":
    main()
