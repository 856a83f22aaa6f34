"""What weight-sharing methods find on NAS-Bench-201 at a size that two cores can search.

    python benchmarks/search_nasbench201.py --data-folder DATA

runs every method on Fashion-MNIST and CIFAR-10 over several seeds, one process per core; each search is a run folder,
so that an interrupted benchmark resumes where it stopped. The proxy was chosen by its cost alone: one cell per stage,
8 channels, images of 16 x 16, 3,000 of them, 16 epochs, about a minute per search on one core. Prints two tables in
Markdown. Cells found on CIFAR-10 are looked up in DATA/nasbench201.csv.gz after all searches are done; nothing here is
chosen by that table. Two more results, of a larger proxy and of all methods:

    python benchmarks/search_nasbench201.py --proxy small --methods gaea-darts:erm --data cifar-10 --data-folder DATA \\
        --work-folder runs/small --out benchmarks/results/search_small.json.gz
    python benchmarks/search_nasbench201.py --methods all --data cifar-10 --seeds 3 --data-folder DATA \\
        --out benchmarks/results/table_runs.json.gz
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from _shared import Flags, save, search_or_resume, spread
from nasight.compute import map_resumable
from nasight.errors import RequestError
from nasight.searching import METHODS as TABLE
from nasight.searching import Run
from nasight.spaces import load
from nasight.tables import Table
from nasight.tables import load as load_table

PROXY: dict[str, Any] = {
    "space": "nasbench201",
    "size": {"channels": 8, "cells": 1},
    "examples": 3_000,
    "resolution": 16,
    "epochs": 16,
    "threads": 1,
}
# The preset that `nasight search` has by default: 8,000 images of 32 x 32, 10 epochs, some minutes on one core.
SMALL: dict[str, Any] = {"space": "nasbench201", "preset": "small", "threads": 1}
QUICK = {**PROXY, "size": {"channels": 4, "cells": 1}, "examples": 200, "resolution": 8, "epochs": 1}
PROXIES = {"minute": PROXY, "small": SMALL, "quick": QUICK}
COLUMNS = ("c10_test200", "c100_test200", "in16_test200")
METHODS = (
    ("darts", "erm-joint"),
    ("gaea-darts", "erm-joint"),
    ("gaea-darts", "erm"),
    ("darts", "bilevel"),
    ("gaea-darts", "bilevel"),
    ("rs-ws", "weights"),
    ("gdas", "bilevel"),
    ("gdas-drawn", "bilevel"),
    ("gdas-straight", "bilevel"),
    ("gaea-gdas", "bilevel"),
    ("pc-darts", "bilevel"),
    ("gaea-pc-darts", "erm"),
)
Item = tuple[str, str, str, int, str, str | None, str]  # method, objective, data, seed, folder, data folder, proxy


def find(item: Item) -> str:
    """The path of a search, finished."""
    method, objective, data, seed, folder, data_folder, proxy = item
    settings = {"method": method, "objective": objective, "data": data, "seed": seed, **PROXIES[proxy]}
    path = Path(folder) / data / f"{method}-{objective}-{seed}"
    return str(search_or_resume(path, data_folder=data_folder, **settings).path)


def summarize(runs: list[Run], table: Table | None) -> dict[str, Any]:
    """The figures of one method on one data set, over its seeds."""
    last = [run.history[-1] for run in runs]
    cells = [str(run.result["architecture"]) for run in runs]
    found: dict[str, Any] = {
        "seeds": len(runs),
        "entropy_quarter": spread([run.history[len(run.history) // 4 - 1]["entropy"] for run in runs], 3),
        "entropy": spread([row["entropy"] for row in last], 3),
        "supernet": spread([row["valid_accuracy"] for row in last]),
        "discretized": spread([row["discrete_accuracy"] for row in last]),
        "drop": spread([row["drop"] for row in last]),
        "skips": spread([float(cell.count("skip_connect")) for cell in cells]),
        "convolutions": spread([float(cell.count("nor_conv")) for cell in cells]),
        "seconds": spread([run.result["seconds"] for run in runs]),
        "cells": cells,
    }
    return {**found, **accuracies(table, cells)}


def read_table(folder: str | None) -> Table | None:
    """NAS-Bench-201's table; None, with a word, where it is not there."""
    try:
        return load_table(folder=folder)
    except RequestError as error:
        print(f"no look-up: {error}", file=sys.stderr)
        return None


def accuracies(table: Table | None, cells: list[str]) -> dict[str, list[float]]:
    """Test accuracies of the cells, by column of the table; none without a table."""
    if table is None:
        return {column: [] for column in COLUMNS}
    places = [table.index(cell) for cell in cells]
    return {column: [float(table.column(column)[place]) for place in places] for column in COLUMNS}


def random_cells(table: Table, number: int = 500) -> dict[str, list[float]]:
    """What so many cells drawn uniformly from the searched space (without `none`) are worth."""
    space, generator = load("nasbench201", none=False), torch.Generator().manual_seed(0)
    return accuracies(table, [space.format(space.sample(generator)) for _ in range(number)])


def markdown(results: dict[str, dict[str, Any]], random: dict[str, Any] | None) -> str:
    lines = []
    for data, rows in results.items():
        lines += [
            f"### {data}",
            "",
            "| method | objective | entropy after a quarter | entropy at the end | supernet, % | discretized, % |"
            " lost, points | skips of 6 | convolutions of 6 | seconds |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for key, r in rows.items():
            method, objective = key.split(" ")
            lines.append(
                f"| {method} | {objective} | {r['entropy_quarter']} | {r['entropy']} | {r['supernet']} |"
                f" {r['discretized']} | {r['drop']} | {r['skips']} | {r['convolutions']} | {r['seconds']} |"
            )
        lines.append("")
    if random is not None and "cifar-10" in results:
        lines += [
            "### The cells found on CIFAR-10, in the table",
            "",
            "| method | objective | CIFAR-10 test, % | best seed | CIFAR-100 test, % | ImageNet-16-120 test, % |",
            "|---|---|---|---|---|---|",
        ]
        for key, r in results["cifar-10"].items():
            method, objective = key.split(" ")
            values = r["c10_test200"]
            lines.append(
                f"| {method} | {objective} | {spread(values)} | {max(values):.2f} |"
                f" {spread(r['c100_test200'])} | {spread(r['in16_test200'])} |"
            )
        values = random["c10_test200"]
        lines.append(
            f"| {len(values)} random cells | | {spread(values)} | {max(values):.2f} |"
            f" {spread(random['c100_test200'])} | {spread(random['in16_test200'])} |"
        )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    flags = Flags(__doc__, "search_results", seeds=4, data="data sets and nasbench201.csv.gz", work="runs/nasbench201")
    flags.add_argument("--data", default="cifar-10,fashion-mnist")
    flags.add_argument(
        "--methods", default=None, help="method:objective, joined by commas, or `all` rows of the method table"
    )
    flags.add_argument("--proxy", choices=sorted(PROXIES), default="minute")
    flags.add_argument("--workers", type=int, default=None)
    flags.add_argument("--first-seed", type=int, default=0, help="seeds count up from here (default 0)")
    given = flags.read(seeds=1, data="cifar-10", methods="darts:erm,gaea-darts:erm", proxy="quick", workers=1)
    if given.methods == "all":
        wanted = [(m.name, m.objectives[0].name) for m in TABLE.values()]
    elif given.methods:
        wanted = [(m.split(":")[0], m.split(":")[1]) for m in given.methods.split(",")]
    else:
        wanted = list(METHODS)
    items: list[Item] = [
        (method, objective, data, seed, str(given.work_folder), given.data_folder, given.proxy)
        for seed in range(given.first_seed, given.first_seed + given.seeds)
        for method, objective in wanted
        for data in given.data.split(",")
    ]
    done: list[str] = []

    def arrived(item: Item, path: str) -> None:
        done.append(path)
        print(f"{len(done)}/{len(items)} {path}: {Run(path).result['architecture']}", file=sys.stderr, flush=True)

    paths = map_resumable(find, items, workers=given.workers, on_result=arrived)
    table = read_table(given.data_folder)
    results: dict[str, dict[str, Any]] = {}
    for data in given.data.split(","):
        results[data] = {}
        for method, objective in wanted:
            runs = [Run(p) for item, p in zip(items, paths, strict=True) if item[:3] == (method, objective, data)]
            results[data][f"{method} {objective}"] = summarize(runs, table)
    random = None if table is None else random_cells(table)
    print(markdown(results, random))
    save(given, {"proxy": PROXIES[given.proxy], "results": results, "random": random})


if __name__ == "__main__":
    main()
