"""Which default rate of the architecture? Rules compared by what their cells reach when they are trained alone.

    python benchmarks/rate_rules.py --data-folder DATA

GAEA-DARTS (ERM, or what --objective says) on NAS-Bench-201 at the proxy of search_nasbench201.py, on Fashion-MNIST and
CIFAR-10, seeds 0 and up. With --narrow the supernet has half of its channels and batches are half as large, so that
long searches are affordable: 75 steps per epoch in the time of 37 at the whole size.
Every rule searches with the same seeds; each cell found is then trained from scratch on 16 x 16 pixels, 8 channels, one
cell per stage, and judged by rows of the training part that it did not learn from. Nothing here reads
a test part or NAS-Bench-201's table: those judge the rule that is chosen here.

Rules: `start` measures the size of a gradient before the first step; `quarter` and `half` hold the architecture for
that part of the epochs and measure it then; `0.3` is a fixed rate. With --averaged, cells of the mean of the weights
after each epoch in which they moved are trained too. With --unseen 4 the seeds from 4 on are compared alone, too: half
had become the default after a first comparison, with seeds 0 to 3 at 16 epochs. What was searched and trained is kept
in rate_rules_runs.json.gz beside the result, so an interrupted benchmark resumes.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from scipy.stats import t as student

from _shared import Flags, kept, mean_and_deviation, save, search_or_resume, shrunk, spread
from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.searching import Run
from nasight.spaces import load as load_space
from nasight.training import Job, Trainer, settings_for
from search_nasbench201 import PROXIES

RULES: dict[str, dict[str, Any]] = {
    "start": {},
    "quarter": {"warmup": 0.25},
    "half": {"warmup": 0.5},
    "0.3": {"arch_lr": 0.3},
}
RETRAINED = {"epochs": 12, "examples": 6_000, "batch_size": 64, "lr": 0.05, "size": {"channels": 8, "cells": 1}}
NARROW = {"size": {"channels": 4, "cells": 1}, "batch_size": 32}
HELD_OUT = 0.1  # of the training part: 5,000 rows or more
TRAININGS = 1
Item = tuple[int, str, int, str]  # seed, data, epochs, rule


def find(item: Item, proxy: dict[str, Any], folder: Path, data_folder: str | None) -> dict[str, Any]:
    """What a search with this rule came to: its cell, that of the averaged weights, its last rate and entropy."""
    seed, data, epochs, rule = item
    own = dict(RULES[rule])
    own["warmup"] = int(own.get("warmup", 0) * epochs)
    objective = proxy.get("objective", "erm")
    settings = {
        **proxy,
        **own,
        "method": "gaea-darts",
        "objective": objective,
        "epochs": epochs,
        "seed": seed,
        "data": data,
    }
    other = ("" if objective == "erm" else f"-{objective}") + ("-narrow" if "batch_size" in proxy else "")
    path = folder / data / f"{epochs}-{rule}-{seed}{other}"
    run = search_or_resume(path, data_folder=data_folder, **settings)
    last = run.history[-1]
    cells = {"last": str(run.result["architecture"]), "averaged": averaged(run)}
    return {"cells": cells, "arch_lr": last["arch_lr"], "entropy": last["entropy"]}


def averaged(run: Run) -> str:
    """The cell of the mean of the weights after each epoch in which they moved."""
    rows = [row["weights"] for row in run.history if row["arch_lr"]]
    mean = {name: torch.tensor([row[name] for row in rows]).mean(0) for name in rows[0]}
    return run.space.format(run.space.derive(mean))


def retrained(item: tuple[str, str], settings: dict[str, Any], data_folder: str | None, side: int) -> list[float]:
    """Held-out accuracies of a cell that is trained alone, one per seed."""
    data, cell = item
    torch.set_num_threads(1)
    space = load_space("nasbench201")
    how, rows = settings_for(space, "small", validation=HELD_OUT, **settings), small(data, data_folder, side)
    accuracies = []
    for seed in range(TRAININGS):
        trainer = Trainer(Job(space, space.parse(cell), rows, how, seed))
        while not trainer.done:
            trainer.set_rates()
            for _ in range(trainer.loader.steps):
                trainer.take_step()
            trainer.next_epoch()
        accuracies.append(trainer.judge()[1])
    return accuracies


@lru_cache(maxsize=2)
def small(data: str, folder: str | None, side: int) -> Dataset:
    """The data set with small images, made once per process."""
    return shrunk(load_data(data, folder=folder), side)


def difference(a: list[float], b: list[float]) -> str:
    """The mean difference of pairs with its 95 % interval."""
    pairs = [x - y for x, y in zip(a, b, strict=True)]
    mean, deviation = mean_and_deviation(pairs)
    if len(pairs) < 2:
        return f"{mean:+.2f}"
    half = float(student.ppf(0.975, len(pairs) - 1)) * deviation / len(pairs) ** 0.5
    return f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})"


def mean_of(columns: list[list[float]]) -> list[float]:
    """The mean over lines, one number per seed."""
    return [mean_and_deviation(values)[0] for values in zip(*columns, strict=True)]


def main() -> None:
    flags = Flags(__doc__, "rate_rules", seeds=4, data="data sets", work="runs/rate-rules")
    flags.add_argument("--data", default="cifar-10,fashion-mnist")
    flags.add_argument("--epochs", default="16")
    flags.add_argument("--rules", default="start,quarter,half")
    flags.add_argument("--objective", default="erm", help="of the searches (default erm)")
    flags.add_argument("--narrow", action="store_true", help="half of the channels, and batches half as large")
    flags.add_argument("--workers", type=int, default=1)
    flags.add_argument("--averaged", action="store_true", help="train the cells of averaged weights too")
    flags.add_argument("--unseen", type=int, metavar="N", help="compare the seeds from N on alone, too")
    given = flags.read(seeds=1, data="cifar-10", epochs="2", rules="start,half")
    proxy, settings = PROXIES["quick" if given.quick else "minute"], RETRAINED
    if given.objective != "erm":
        proxy = {**proxy, "objective": given.objective}
    if given.narrow:
        proxy = {**proxy, **NARROW}
    if given.quick:
        settings = {**RETRAINED, "epochs": 1, "examples": 128}
    rules, sets = given.rules.split(","), given.data.split(",")
    lengths = [int(number) for number in given.epochs.split(",")]
    items = [(s, data, n, rule) for s in range(given.seeds) for data in sets for n in lengths for rule in rules]
    work = partial(find, proxy=proxy, folder=given.work_folder, data_folder=given.data_folder)
    place = given.out.with_name("rate_rules_runs.json.gz")
    found = kept(place, items, work, workers=given.workers, settings=proxy)
    runs = dict(zip(items, found, strict=True))
    kinds = ("last", "averaged") if given.averaged else ("last",)
    cells = {(item, kind): run["cells"][kind] for item, run in runs.items() for kind in kinds}
    distinct = sorted({(item[1], cell) for (item, _), cell in cells.items()})
    judge = partial(retrained, settings=settings, data_folder=given.data_folder, side=proxy["resolution"])
    trained = kept(place, distinct, judge, workers=given.workers, settings=settings)
    accuracy = {key: mean_and_deviation(values)[0] for key, values in zip(distinct, trained, strict=True)}
    lines = [
        "| epochs | data | rule | learning rate at the end | entropy, nats | trained alone, % | less `start` |"
        + (" averaged, % |" if given.averaged else ""),
        "|---|---|---|---|---|---|---|" + ("---|" if given.averaged else ""),
    ]
    rows = []
    for n in lengths:
        for data in sets:
            values: dict[str, dict[str, list[float]]] = {}
            for rule in rules:
                mine = [item for item in items if item[1:] == (data, n, rule)]
                values[rule] = {kind: [accuracy[data, cells[item, kind]] for item in mine] for kind in kinds}
                rate, entropy = (spread([runs[item][name] for item in mine]) for name in ("arch_lr", "entropy"))
                rows.append({"epochs": n, "data": data, "rule": rule, **values[rule]})
                less = difference(values[rule]["last"], values[rules[0]]["last"])
                alone, *mean = (spread(values[rule][kind]) for kind in kinds)
                lines.append(" | ".join([f"| {n}", data, rule, rate, entropy, alone, less, *mean]) + " |")
    begins = [0] if given.unseen is None else [0, given.unseen]
    heads = ["all seeds", f"seeds from {given.unseen} on"][: len(begins)]
    lines += [
        "",
        f"| rule, less `start`, the mean of all lines | {' | '.join(heads)} |",
        "|---|" + "---|" * len(begins),
    ]
    for rule in rules:
        over = {which: mean_of([row["last"] for row in rows if row["rule"] == which]) for which in (rule, rules[0])}
        cells_of = [difference(over[rule][begin:], over[rules[0]][begin:]) for begin in begins]
        lines.append(f"| {rule} | {' | '.join(cells_of)} |")
    print("\n".join(lines))
    save(given, {"proxy": proxy, "retrained": settings, "rows": rows, "cells": [[*k, v] for k, v in cells.items()]})


if __name__ == "__main__":
    main()
