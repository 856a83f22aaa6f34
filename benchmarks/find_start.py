"""Should the trainings of a find's race start from the shared weights of the search that proposed them?

    python benchmarks/find_start.py --data-folder DATA

The pool, the long trainings and the short ones of find_rungs.py, and beside each short training one that starts from
the shared weights of a GAEA-DARTS search of the same rows (kernels, stem, reductions and head; batch norms inside cells
start anew, since those of a supernet have no scale). A start helps where the short training then ranks the pool more
like the long ones, which start from nothing, with two seeds. Differences of Kendall's tau have 95 % intervals over
draws of the pool. Held-out rows of the training part judge; no test part and no table is read. What was trained is kept
in find_rungs_rows.json.gz and find_start_rows.json.gz beside the result, so an interrupted benchmark resumes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor, nn

from _shared import Flags, kept, save
from find import data_of
from find_rungs import JUDGED, LONG, SEEDS, SETS, Item, pool, request_of, trained
from nasight.data import Dataset
from nasight.searching import Run, resume, search
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.studies.finding import Trainings, shared
from nasight.training import Trainer, parts

WAYS = ((1.0, 1 / 9), (1.0, 1 / 3))
SEARCH: dict[str, Any] = {
    "method": "gaea-darts",
    "objective": "erm",
    "preset": "tiny",
    "threads": 1,
    "validation": 0.0,
    "seed": 0,
}
SEARCH_EPOCHS = 12
DRAWS = 2_000


def searched(space: Space, data: Dataset, place: Path, epochs: int, rows: Tensor) -> str:
    """The folder of a search of the rows that the trainings learn from, and of no others."""
    taught = replace(data, train_x=data.train_x[rows], train_y=data.train_y[rows])
    if (place / "run.json").exists():
        resume(place, data=taught)
    else:
        search(space, data=taught, size=space.train_size("tiny"), epochs=epochs, out=place, **SEARCH)
    return str(place)


def adopt(network: nn.Module, weights: dict[str, Tensor], space: Space, cell: str) -> None:
    """Copy what the network of a cell shares with the supernet."""
    arch, edges = space.parse(cell), [decision.name for decision in space.decisions]
    last = str(len(list(network.children())) - 1)
    for name, tensor in network.state_dict().items():
        number, _, rest = name.partition(".")
        source: Tensor | None
        if rest.startswith("edges."):
            edge = rest.split(".")[1].replace("_", "->")
            kernels = weights.get(f"layers.{number}.kernels.{arch[edge]}") if rest.endswith(".1.weight") else None
            source = None if kernels is None else kernels[edges.index(edge)]
        else:
            source = weights.get(f"head.{rest}" if number == last else f"layers.{number}.{rest}")
        if source is not None:
            tensor.copy_(source)


def started(item: Item, folders: dict[str, str], rows: dict[str, int], runs: dict[str, str]) -> float:
    """Held-out accuracy of a cell after a schedule that starts from the shared weights."""
    space = load_space("nasbench201", none=False)
    torch.set_num_threads(1)
    trainer = Trainer(Trainings({"space": space}, folders[item[0]]).job(request_of(item, rows)))
    adopt(trainer.network, Run(runs[item[0]]).supernet().state_dict(), space, item[1])
    while not trainer.done:
        trainer.run_epoch(lambda: None)
    return trainer.rows[-1].test_accuracy


def report(name: str, cells: list[str], long: np.ndarray, short: dict[Any, tuple[np.ndarray, np.ndarray]]) -> list[str]:
    """One table row per schedule."""
    rng, lines = np.random.default_rng(0), list[str]()
    for (epochs, share), (scratch, begun) in short.items():
        draws = [rng.integers(len(cells), size=len(cells)) for _ in range(DRAWS)]
        apart = [kendalltau(begun[d], long[d]).statistic - kendalltau(scratch[d], long[d]).statistic for d in draws]
        low, high = np.nanquantile(apart, [0.025, 0.975])
        one, other = (kendalltau(values, long).statistic for values in (scratch, begun))
        says = "undecided" if low <= 0 <= high else "helps" if low > 0 else "harms"
        lines.append(
            f"| {name} | {round(epochs * SETS[name][0])} epochs, {share:.0%} of the rows | {scratch.mean():.2f} | "
            f"{begun.mean():.2f} | {one:+.2f} | {other:+.2f} | {other - one:+.2f} ({low:+.2f} to {high:+.2f}) |"
            f" {says} |"
        )
    return lines


def main() -> None:
    flags = Flags(__doc__, "find_start", data="Fashion-MNIST and CIFAR-10", work="runs/find-start")
    flags.add_argument("--data", default="cifar-10")
    flags.add_argument("--cells", type=int, default=32, help="of the pool (default 32)")
    flags.add_argument("--workers", type=int, default=1)
    given = flags.read(data="fashion-mnist", cells=4)
    torch.set_num_threads(1)
    space, results = load_space("nasbench201", none=False), dict[str, Any]()
    lines = [
        "| data | schedule | from nothing, % | from shared weights, % | tau, from nothing | tau, from shared weights |"
        " difference | says |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in given.data.split(","):
        data = data_of(name, given.data_folder)
        cells = pool(space, given.cells, data.inputs)
        rows = {name: 300 if given.quick else round((1 - JUDGED) * len(data.train_y))}
        long = [(name, cell, *LONG, seed) for seed in SEEDS for cell in cells]
        short = [(name, cell, *way, 0) for way in WAYS for cell in cells]
        with shared(data) as folder:
            how = partial(trained, folders={name: folder}, rows=rows)
            beside = given.out.with_name("find_rungs_rows.json.gz")
            found = kept(beside, [*long, *short], how, workers=given.workers, settings=rows[name])
            job = Trainings({"space": space}, folder).job(request_of(long[0], rows))
            taught, _, _ = parts(job.data, job.settings)
            assert taught is not None
            epochs = 1 if given.quick else SEARCH_EPOCHS
            place = searched(space, data, given.work_folder / name, epochs, taught)
            begin = partial(started, folders={name: folder}, rows=rows, runs={name: place})
            own = given.out.with_name("find_start_rows.json.gz")
            begun = kept(own, short, begin, workers=given.workers, settings=[rows[name], epochs, SEARCH])
        count = len(cells)
        truth = np.array(found[: 2 * count]).reshape(2, count).mean(0)
        scratch = np.array(found[2 * count :]).reshape(len(WAYS), count)
        pairs = dict(zip(WAYS, zip(scratch, np.array(begun).reshape(len(WAYS), count), strict=True), strict=True))
        lines += report(name, cells, truth, pairs)
        results[name] = {"cells": cells, "long": truth.tolist(), "scratch": scratch.tolist(), "started": begun}
    print("\n".join(lines))
    save(given, results, table="\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
