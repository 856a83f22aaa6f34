"""What weight-sharing methods find on NAS-Bench-201 at a size that two cores can search.

    python benchmarks/search_nasbench201.py --controls --data-folder DATA

searches CIFAR-10 with DARTS and PC-DARTS and their GAEA twins, eight seeds that chose nothing (100 to 107), one process
per core. Each search is a run folder, so that an interrupted benchmark resumes where it stopped. Its figures are kept
in search_runs.json.gz beside the result: what was searched once is not searched again, by none of the commands below.
The proxy was chosen by its cost alone: one cell per stage, 8 channels, images of 16 x 16, 3,000 of them, 16 epochs,
about a minute per search on one core. Prints tables in Markdown. Cells found on CIFAR-10 are looked up in
DATA/nasbench201.csv.gz after all searches are done; nothing here is chosen by that table. --controls adds what NASWOT
and the parameter count choose in the same time. Further reports: other data, the preset `small`, all methods.

    python benchmarks/search_nasbench201.py --data fashion-mnist --methods mixtures --data-folder DATA \\
        --out benchmarks/results/search_fashion.json.gz
    python benchmarks/search_nasbench201.py --proxy small --methods mixtures --controls --data-folder DATA \\
        --out benchmarks/results/search_small.json.gz
    python benchmarks/search_nasbench201.py --methods all --data-folder DATA \\
        --out benchmarks/results/table_runs.json.gz

`--methods mixtures` stands for DARTS and PC-DARTS and their GAEA twins, ERM and bilevel, `joint` for the same four with
one step for both, and `all` for every row of the method table, each with its default objective on this space.
"""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

from _shared import Flags, kept, mean_interval, save, search_or_resume, spread
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.kernels import score
from nasight.searching import METHODS as TABLE
from nasight.searching import resolve
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
MIXTURES = ("darts", "gaea-darts", "pc-darts", "gaea-pc-darts")
Item = tuple[str, str, str, int]  # method, objective, data, seed
Figures = dict[str, Any]


def find(item: Item, proxy: dict[str, Any], folder: Path, data_folder: str | None) -> Figures:
    """The figures of a search, finished."""
    method, objective, data, seed = item
    settings = {"method": method, "objective": objective, "data": data, "seed": seed, **proxy}
    run = search_or_resume(folder / data / f"{method}-{objective}-{seed}", data_folder=data_folder, **settings)
    last, quarter = run.history[-1], run.history[len(run.history) // 4 - 1]
    return {
        "cell": str(run.result["architecture"]),
        "entropy_quarter": quarter["entropy"],
        "entropy": last["entropy"],
        "supernet": last["valid_accuracy"],
        "discretized": last["discrete_accuracy"],
        "drop": last["drop"],
        "seconds": run.result["seconds"],
    }


def summarize(found: list[Figures], table: Table | None) -> Figures:
    """The figures of one method on one data set, over its seeds."""
    cells = [one["cell"] for one in found]
    digits = {"entropy_quarter": 3, "entropy": 3, "supernet": 2, "discretized": 2, "drop": 2, "seconds": 2}
    return {
        "seeds": len(found),
        **{name: spread([one[name] for one in found], number) for name, number in digits.items()},
        "skips": spread([float(cell.count("skip_connect")) for cell in cells]),
        "convolutions": spread([float(cell.count("nor_conv")) for cell in cells]),
        "cells": cells,
        **accuracies(table, cells),
    }


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


def control(item: tuple[str, str, int], folder: str | None, seconds: float) -> dict[str, Any]:
    """What simpler ways choose with one seed and one thread: the best NASWOT of as many random cells as can be scored
    in the time of a search, and the most parameters of the same cells.
    """
    _, data, seed = item
    torch.set_num_threads(1)
    space, rows = load("nasbench201", none=False), load_data(data, folder=folder)
    count = space.parameters(rows.inputs, rows.n_classes)
    generator, scored = torch.Generator().manual_seed(seed), dict[str, float]()
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        cells = [space.format(space.sample(generator)) for _ in range(10)]
        values = score(space, "naswot", rows, architectures=cells, seed=seed, workers=1)
        scored.update(zip(values.architectures, values.goodness("naswot"), strict=True))
    most = max(scored, key=lambda cell: count(space.parse(cell)))
    return {"naswot": max(scored, key=lambda cell: scored[cell]), "parameters": most, "scored": len(scored)}


def markdown(results: dict[str, dict[str, Any]], random: dict[str, Any] | None, simple: dict[str, Any]) -> str:
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
            "| method | objective | CIFAR-10 test, % | 95 % interval of the mean | best seed | CIFAR-100 test, % |"
            " ImageNet-16-120 test, % |",
            "|---|---|---|---|---|---|---|",
        ]
        found = {tuple(key.split(" ")): r for key, r in results["cifar-10"].items()}
        found |= {(f"best by {way}, the same time", ""): r for way, r in simple.items()}
        found |= {(f"{len(random['c10_test200'])} random cells", ""): random}
        for (method, objective), r in found.items():
            values = r["c10_test200"]
            mean, half = mean_interval(values)
            lines.append(
                f"| {method} | {objective} | {spread(values)} | {mean - half:.2f} to {mean + half:.2f} |"
                f" {max(values):.2f} | {spread(r['c100_test200'])} | {spread(r['in16_test200'])} |"
            )
        lines += ["", *differences(results["cifar-10"], simple)]
    return "\n".join(lines)


def wanted_rows(text: str) -> list[tuple[str, str]]:
    """(method, objective) of every row that `--methods` asks for."""
    space = load("nasbench201", none=False)
    groups = {
        "mixtures": [(name, objective) for name in MIXTURES for objective in ("erm", "bilevel")],
        "joint": [(name, "erm-joint") for name in MIXTURES],
        "all": [(row.name, resolve(row, space, data="cifar-10").objective) for row in TABLE.values()],
    }
    found = [row for word in text.split(",") for row in groups.get(word) or [(*word.split(":"),)]]
    return list(dict.fromkeys((method, objective) for method, objective in found))


def differences(rows: dict[str, Figures], simple: dict[str, Figures]) -> list[str]:
    """What separates GAEA rows from their bases, objectives of one method, and both from simpler ways."""
    keys = [tuple(key.split(" ")) for key in rows]
    twins = [(a, b) for a in keys for b in keys if a[0] == f"gaea-{b[0]}"]
    alike = [(a, b) for a, b in twins if a[1] == b[1]]
    # Where a twin has no base of its own objective, both are as they are by default.
    pairs = alike + [(a, b) for a, b in twins if not any(a == one or b == other for one, other in alike)]
    pairs += [(a, b) for i, a in enumerate(keys) for b in keys[i + 1 :] if a[0] == b[0]]
    values = {" (".join(key) + ")": rows[" ".join(key)]["c10_test200"] for key in keys}
    named = [tuple(" (".join(key) + ")" for key in pair) for pair in pairs]
    for way, r in simple.items():
        named += [(name, way) for name in values if name.endswith(")")]
        values[way] = r["c10_test200"]
    lines = ["| CIFAR-10 test, points | mean of the pairs | 95 % interval | says |", "|---|---|---|---|"]
    for one, other in named:
        mean, half = mean_interval([a - b for a, b in zip(values[one], values[other], strict=True)])
        says = "undecided" if abs(mean) <= half else "better" if mean > 0 else "worse"
        lines.append(f"| {one} less {other} | {mean:+.2f} | {mean - half:+.2f} to {mean + half:+.2f} | {says} |")
    return [*lines, ""] if named and len(next(iter(values.values()))) > 1 else []


def main() -> None:
    flags = Flags(__doc__, "search_fresh", seeds=8, data="data sets and nasbench201.csv.gz", work="runs/nasbench201")
    flags.add_argument("--data", default="cifar-10", help="names, joined by commas (default cifar-10)")
    flags.add_argument(
        "--methods", default="mixtures,joint", help="method:objective, or one of these names, joined by commas"
    )
    flags.add_argument("--proxy", choices=sorted(PROXIES), default="minute")
    flags.add_argument("--workers", type=int, default=None)
    flags.add_argument("--first-seed", type=int, default=100, help="seeds count up from here (default 100)")
    flags.add_argument(
        "--controls", action="store_true", help="what NASWOT and the parameter count choose in the same time"
    )
    given = flags.read(seeds=1, data="cifar-10", methods="darts:erm,gaea-darts:erm", proxy="quick", workers=1)
    wanted = wanted_rows(given.methods)
    sets, seeds = given.data.split(","), range(given.first_seed, given.first_seed + given.seeds)
    items: list[Item] = [(*which, data, seed) for seed in seeds for which in wanted for data in sets]
    proxy = PROXIES[given.proxy]
    work = partial(find, proxy=proxy, folder=given.work_folder / given.proxy, data_folder=given.data_folder)
    place = given.out.with_name("search_runs.json.gz")
    figures = kept(place, items, work, workers=given.workers, settings=proxy)
    found = dict(zip(items, figures, strict=True))
    table = read_table(given.data_folder)
    results: dict[str, dict[str, Figures]] = {
        data: {" ".join(which): summarize([found[*which, data, seed] for seed in seeds], table) for which in wanted}
        for data in sets
    }
    random = None if table is None else random_cells(table)
    simple: dict[str, Figures] = {}
    if given.controls and table is not None and "cifar-10" in results:
        seconds = statistics.median(one["seconds"] for item, one in found.items() if item[2] == "cifar-10")
        asked = [("controls", "cifar-10", seed) for seed in seeds]
        choose = partial(control, folder=given.data_folder, seconds=seconds)
        chosen = kept(place, asked, choose, workers=given.workers, settings=proxy)
        for way in ("naswot", "parameters"):
            cells = [one[way] for one in chosen]
            simple[way] = {"cells": cells, "seconds": seconds, **accuracies(table, cells)}
    text = markdown(results, random, simple)
    print(text)
    save(given, {"proxy": proxy, "results": results, "random": random, "controls": simple}, table=text)


if __name__ == "__main__":
    main()
