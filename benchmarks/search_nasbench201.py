"""What weight-sharing methods find on NAS-Bench-201 at a size that two cores can search.

Runs every method on Fashion-MNIST and CIFAR-10 over several seeds, one process a core; each search is a run folder, so
that an interrupted benchmark goes on where it stopped. The proxy was chosen by its cost alone: one cell a stage,
8 channels, images of 16 x 16, 3,000 of them, 16 epochs, about a minute a search on one core.

    python benchmarks/search_nasbench201.py --data-folder DATA --out runs/nasbench201 --report docs/search_results

prints two tables in Markdown and writes REPORT.md and REPORT.json. Cells found on CIFAR-10 are looked up in
DATA/nasbench201.csv.gz after all searches are done; nothing here is chosen by that table.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch

from nasight.parallel import map_resumable
from nasight.search import METHODS as TABLE
from nasight.search import Run, resume, search

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
PROXIES = {"minute": PROXY, "small": SMALL}
METHODS = (
    ("darts", "erm"),
    ("gaea-darts", "erm"),
    ("darts", "bilevel"),
    ("gaea-darts", "bilevel"),
    ("rs-ws", "weights"),
    ("gdas", "erm"),
    ("gaea-gdas", "erm"),
    ("pc-darts", "erm"),
    ("gaea-pc-darts", "erm"),
)
Item = tuple[str, str, str, int, str, str, str]  # method, objective, data, seed, out, data folder, proxy


def one(item: Item) -> str:
    """Search, or go on searching, and give the run's path."""
    method, objective, data, seed, out, folder, proxy = item
    path = Path(out) / data / f"{method}-{objective}-{seed}"
    if (path / "run.json").exists():
        run = resume(path, data_folder=folder)
    else:
        run = search(
            method=method, objective=objective, data=data, seed=seed, out=path, data_folder=folder, **PROXIES[proxy]
        )
    return str(run.path)


def spread(values: list[float], digits: int = 2) -> str:
    mean = f"{statistics.mean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean


def summarise(runs: list[Run], table: dict[str, dict[str, str]]) -> dict[str, Any]:
    """The figures of one method on one data set, over its seeds."""
    last = [run.history[-1] for run in runs]
    cells = [str(run.result["architecture"]) for run in runs]
    found: dict[str, Any] = {
        "seeds": len(runs),
        "entropy_quarter": spread([run.history[len(run.history) // 4 - 1]["entropy"] for run in runs], 3),
        "entropy": spread([row["entropy"] for row in last], 3),
        "supernet": spread([row["valid_accuracy"] for row in last]),
        "discretised": spread([row["discrete_accuracy"] for row in last]),
        "drop": spread([row["drop"] for row in last]),
        "skips": spread([float(cell.count("skip_connect")) for cell in cells]),
        "convolutions": spread([float(cell.count("nor_conv")) for cell in cells]),
        "seconds": spread([run.result["seconds"] for run in runs]),
        "cells": cells,
    }
    for column in ("c10_test200", "c100_test200", "in16_test200"):
        found[column] = [float(table[cell][column]) for cell in cells] if table else []
    return found


def read_table(folder: str) -> dict[str, dict[str, str]]:
    path = Path(folder) / "nasbench201.csv.gz"
    if not path.exists():
        print(f"{path} is not there: no look-up", file=sys.stderr)
        return {}
    with gzip.open(path, "rt", newline="") as file:
        return {row["arch"]: row for row in csv.DictReader(file)}


def random_cells(table: dict[str, dict[str, str]], number: int = 500) -> dict[str, Any]:
    """What so many cells drawn uniformly from the searched space (without `none`) are worth."""
    from nasight.spaces import load

    space, generator = load("nasbench201", none=False), torch.Generator().manual_seed(0)
    rows = [table[space.format(space.sample(generator))] for _ in range(number)]
    return {c: [float(row[c]) for row in rows] for c in ("c10_test200", "c100_test200", "in16_test200")}


def markdown(results: dict[str, dict[str, Any]], random: dict[str, Any] | None) -> str:
    lines = []
    for data, rows in results.items():
        lines += [
            f"### {data}",
            "",
            "| method | objective | entropy after a quarter | entropy at the end | supernet, % | discretised, % |"
            " lost, points | skips of 6 | convolutions of 6 | seconds |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for key, r in rows.items():
            method, objective = key.split(" ")
            lines.append(
                f"| {method} | {objective} | {r['entropy_quarter']} | {r['entropy']} | {r['supernet']} |"
                f" {r['discretised']} | {r['drop']} | {r['skips']} | {r['convolutions']} | {r['seconds']} |"
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-folder", required=True)
    parser.add_argument("--out", default="runs/nasbench201")
    parser.add_argument("--report", default=None, help="write REPORT.md and REPORT.json")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--data", default="cifar-10,fashion-mnist")
    parser.add_argument(
        "--methods", default=None, help="method:objective, joined by commas, or `all` rows of the method table"
    )
    parser.add_argument("--proxy", choices=sorted(PROXIES), default="minute")
    parser.add_argument("--workers", type=int, default=None)
    given = parser.parse_args()
    if given.methods == "all":
        wanted = [(m.name, m.objectives[0].name) for m in TABLE.values()]
    elif given.methods:
        wanted = [(m.split(":")[0], m.split(":")[1]) for m in given.methods.split(",")]
    else:
        wanted = list(METHODS)
    items: list[Item] = [
        (method, objective, data, seed, given.out, given.data_folder, given.proxy)
        for seed in range(given.seeds)
        for method, objective in wanted
        for data in given.data.split(",")
    ]
    done: list[str] = []

    def arrived(item: Item, path: str) -> None:
        done.append(path)
        print(f"{len(done)}/{len(items)} {path}: {Run(path).result['architecture']}", file=sys.stderr, flush=True)

    paths = map_resumable(one, items, workers=given.workers, on_result=arrived)
    table = read_table(given.data_folder)
    results: dict[str, dict[str, Any]] = {}
    for data in given.data.split(","):
        results[data] = {}
        for method, objective in wanted:
            runs = [Run(p) for item, p in zip(items, paths, strict=True) if item[:3] == (method, objective, data)]
            results[data][f"{method} {objective}"] = summarise(runs, table)
    random = random_cells(table) if table else None
    text = markdown(results, random)
    print(text)
    if given.report:
        Path(f"{given.report}.md").write_text(text + "\n")
        Path(f"{given.report}.json").write_text(
            json.dumps({"proxy": PROXIES[given.proxy], "results": results, "random": random}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
