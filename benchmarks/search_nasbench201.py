"""What weight-sharing methods find on NAS-Bench-201 at a size that two cores can search.

    python benchmarks/search_nasbench201.py --controls --control-seconds 98 --data-folder DATA

searches CIFAR-10 with DARTS, PC-DARTS, P-DARTS and SNAS and their GAEA twins, eight seeds that chose nothing (100 to
107), one process per core. Each search is a run folder, so that an interrupted benchmark resumes where it stopped. Its
figures are kept in search_runs.json.gz beside the result: what was searched once is not searched again, by none of the
commands below.
The proxy was chosen by its cost alone: one cell per stage, 8 channels, images of 16 x 16, 3,000 of them, 16 epochs,
about a minute per search on one core. Prints tables in Markdown. Cells found on CIFAR-10 are looked up in
DATA/nasbench201.csv.gz after all searches are done; nothing here is chosen by that table. --controls adds two simpler
ways: the cell with the most parameters of all that could be found, which costs nothing, and the best by NASWOT of as
many random cells as can be scored in the time of a search. NASWOT runs once per seed, for the longest median time of
the rows, and remembers its best from the first second on, so each row is compared with what NASWOT had at the median
time of that row; --control-seconds says how long it runs, where rows were slower beside other work. Further reports:
other data, the preset `small`, all methods.

    python benchmarks/search_nasbench201.py --data fashion-mnist --methods mixtures --data-folder DATA \\
        --out benchmarks/results/search_fashion.json.gz
    python benchmarks/search_nasbench201.py --proxy small --methods mixtures,p-darts,snas --controls \\
        --control-seconds 434 --data-folder DATA --out benchmarks/results/search_small.json.gz
    python benchmarks/search_nasbench201.py --methods all --data-folder DATA \\
        --out benchmarks/results/table_runs.json.gz

`--methods mixtures` stands for DARTS and PC-DARTS and their GAEA twins, ERM and bilevel, `joint` for the same four with
one step for both, `p-darts` and `snas` for P-DARTS and SNAS and their twins, and `all` for every row of the method
table; the last three have the default objective of each row on this space.
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
from nasight.searching import Method, resolve
from nasight.spaces import Space, load
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
TWINS = {name: (name, f"gaea-{name}") for name in ("p-darts", "snas")}
# Rows that differ by how a gradient is estimated.
ESTIMATORS = tuple(tuple(f"{twin}gdas{kind}" for kind in ("", "-drawn", "-straight")) for twin in ("", "gaea-"))
SCORED_AT_ONCE = 10  # cells, between two looks at the clock
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


def median_seconds(found: list[Figures]) -> float:
    """The median time of the searches of a row."""
    return statistics.median(one["seconds"] for one in found)


def summarize(found: list[Figures], table: Table | None) -> Figures:
    """The figures of one method on one data set, over its seeds."""
    cells = [one["cell"] for one in found]
    digits = {"entropy_quarter": 3, "entropy": 3, "supernet": 2, "discretized": 2, "drop": 2, "seconds": 2}
    return {
        "seeds": len(found),
        **{name: spread([one[name] for one in found], number) for name, number in digits.items()},
        "median_seconds": round(median_seconds(found), 1),
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


def most_parameters(folder: str | None, data: str = "cifar-10") -> str:
    """Of all cells that a search can find the one with the most parameters; ties go by text."""
    space, rows = load("nasbench201", none=False), load_data(data, folder=folder)
    count = space.parameters(rows.inputs, rows.n_classes)
    return max((count(arch), space.format(arch)) for arch in space)[1]


def control(item: tuple[str, str, int], folder: str | None, seconds: float) -> list[list[Any]]:
    """What NASWOT chooses with one seed and one thread: seconds, cells scored and the best of them, whenever the best
    changes and once more at the end, which is after so many seconds.
    """
    _, data, seed = item
    torch.set_num_threads(1)
    space, rows = load("nasbench201", none=False), load_data(data, folder=folder)
    generator, scored = torch.Generator().manual_seed(seed), dict[str, float]()
    steps: list[list[Any]] = []
    began, passed = time.monotonic(), 0.0
    while passed < seconds:
        cells = [space.format(space.sample(generator)) for _ in range(SCORED_AT_ONCE)]
        values = score(space, "naswot", rows, architectures=cells, seed=seed, workers=1)
        scored.update(zip(values.architectures, values.goodness("naswot"), strict=True))
        passed, best = time.monotonic() - began, max(scored, key=lambda cell: scored[cell])
        if not steps or steps[-1][2] != best:
            steps.append([round(passed, 2), len(scored), best])
    return [*steps, [round(passed, 2), len(scored), best]]


def within(steps: list[list[Any]], seconds: float) -> list[Any]:
    """Where a control was after so many seconds; its first step where that took longer."""
    return max((step for step in steps if step[0] <= seconds), key=lambda step: step[0], default=steps[0])


def simpler_ways(
    chosen: list[list[list[Any]]], rows: dict[str, Figures], table: Table, most: str, longest: float
) -> dict[str, dict[str, Figures]]:
    """Way -> row -> what the way chooses at the cost of the row, or in the longest time it had; under "" in that."""
    at = {key: min(r["median_seconds"], longest) for key, r in rows.items()}
    at[""] = max(at.values())
    naswot = {}
    for key, seconds in at.items():
        steps = [within(one, seconds) for one in chosen]
        cells = [str(step[2]) for step in steps]
        # It scores evenly: at the last change of its best it had scored fewer than when its time was over.
        scored = spread([one[-1][1] * min(1.0, seconds / one[-1][0]) for one in chosen], 0)
        naswot[key] = {"seconds": seconds, "scored": scored, "cells": cells, **accuracies(table, cells)}
    free = {"cells": [most], **accuracies(table, [most])}
    return {"naswot": naswot, "parameters": dict.fromkeys(at, free)}


def markdown(
    results: dict[str, dict[str, Any]], random: dict[str, Any] | None, simple: dict[str, dict[str, Figures]]
) -> str:
    lines = []
    for data, rows in results.items():
        lines += [
            f"### {data}",
            "",
            "| method | objective | entropy after a quarter | entropy at the end | supernet, % | discretized, % |"
            " lost, points | skips of 6 | convolutions of 6 | seconds | median |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for key, r in rows.items():
            method, objective = key.split(" ")
            lines.append(
                f"| {method} | {objective} | {r['entropy_quarter']} | {r['entropy']} | {r['supernet']} |"
                f" {r['discretized']} | {r['drop']} | {r['skips']} | {r['convolutions']} | {r['seconds']} |"
                f" {r['median_seconds']} |"
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
        for way, by_row in simple.items():
            longest = by_row[""]
            cost = f"best by NASWOT of {longest['scored']} in {longest['seconds']:.0f} s" if "scored" in longest else ""
            found[cost or f"most {way} of all", ""] = longest
        found |= {(f"{len(random['c10_test200'])} random cells", ""): random}
        for (method, objective), r in found.items():
            values = r["c10_test200"]
            mean, half = mean_interval(values)
            interval = f"{mean - half:.2f} to {mean + half:.2f}" if len(values) > 1 else ""
            lines.append(
                f"| {method} | {objective} | {spread(values)} | {interval} |"
                f" {max(values):.2f} | {spread(r['c100_test200'])} | {spread(r['in16_test200'])} |"
            )
        lines += ["", *differences(results["cifar-10"], simple)]
    return "\n".join(lines)


def usual(row: Method, space: Space) -> tuple[str, str]:
    """A row of the method table with its default objective on this space."""
    return row.name, resolve(row, space, data="cifar-10").objective


def wanted_rows(text: str) -> list[tuple[str, str]]:
    """(method, objective) of every row that `--methods` asks for."""
    space = load("nasbench201", none=False)
    groups = {
        "mixtures": [(name, objective) for name in MIXTURES for objective in ("erm", "bilevel")],
        "joint": [(name, "erm-joint") for name in MIXTURES],
        **{group: [usual(TABLE[name], space) for name in names] for group, names in TWINS.items()},
        "all": [usual(row, space) for row in TABLE.values()],
    }
    found = [row for word in text.split(",") for row in groups.get(word) or [(*word.split(":"),)]]
    return list(dict.fromkeys((method, objective) for method, objective in found))


def differences(rows: dict[str, Figures], simple: dict[str, dict[str, Figures]]) -> list[str]:
    """What separates GAEA rows from their bases, objectives of one method, estimators, and all from simpler ways."""
    keys = [tuple(key.split(" ")) for key in rows]
    twins = [(a, b) for a in keys for b in keys if a[0] == f"gaea-{b[0]}"]
    alike = [(a, b) for a, b in twins if a[1] == b[1]]
    # Where a twin has no base of its own objective, both are as they are by default.
    pairs = alike + [(a, b) for a, b in twins if not any(a == one or b == other for one, other in alike)]
    two = [(a, b) for i, a in enumerate(keys) for b in keys[i + 1 :]]
    pairs += [(a, b) for a, b in two if a[0] == b[0]]
    pairs += [(a, b) for a, b in two if a[0] != b[0] and a[1] == b[1] and any({a[0], b[0]} <= {*e} for e in ESTIMATORS)]
    values = {" ".join(key): rows[" ".join(key)]["c10_test200"] for key in keys}
    compared = [(_row_name(a), _row_name(b), values[" ".join(a)], values[" ".join(b)]) for a, b in pairs]
    for way, by_row in simple.items():
        for key in keys:
            mine, its = values[" ".join(key)], by_row[" ".join(key)]
            name = f"NASWOT in {its['seconds']:.0f} s" if "seconds" in its else f"most {way}"
            compared.append((_row_name(key), name, mine, its["c10_test200"] * (len(mine) // len(its["c10_test200"]))))
    lines = ["| CIFAR-10 test, points | mean of the pairs | 95 % interval | says |", "|---|---|---|---|"]
    for one, other, mine, its in compared:
        mean, half = mean_interval([a - b for a, b in zip(mine, its, strict=True)])
        says = "undecided" if abs(mean) <= half else "better" if mean > 0 else "worse"
        lines.append(f"| {one} less {other} | {mean:+.2f} | {mean - half:+.2f} to {mean + half:+.2f} | {says} |")
    return [*lines, ""] if compared and len(next(iter(values.values()))) > 1 else []


def _row_name(key: tuple[str, ...]) -> str:
    method, objective = key
    return f"{method} ({objective})"


def main() -> None:
    flags = Flags(__doc__, "search_fresh", seeds=8, data="data sets and nasbench201.csv.gz", work="runs/nasbench201")
    flags.add_argument("--data", default="cifar-10", help="names, joined by commas (default cifar-10)")
    flags.add_argument(
        "--methods",
        default="mixtures,joint,p-darts,snas",
        help="method:objective, or one of these names, joined by commas",
    )
    flags.add_argument("--proxy", choices=sorted(PROXIES), default="minute")
    flags.add_argument("--workers", type=int, default=None)
    flags.add_argument("--first-seed", type=int, default=100, help="seeds count up from here (default 100)")
    flags.add_argument(
        "--controls", action="store_true", help="what the parameter count chooses, and NASWOT in the time of each row"
    )
    flags.add_argument(
        "--control-seconds",
        type=int,
        metavar="N",
        help="how long NASWOT runs (default: the longest median of the rows)",
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
    simple: dict[str, dict[str, Figures]] = {}
    if given.controls and table is not None and "cifar-10" in results:
        rows = results["cifar-10"]
        seconds = given.control_seconds or max(1, round(max(r["median_seconds"] for r in rows.values())))
        asked = [("controls", "cifar-10", seed) for seed in seeds]
        choose = partial(control, folder=given.data_folder, seconds=seconds)
        settings = {**proxy, "seconds": seconds}
        chosen = kept(place, asked, choose, workers=given.workers, settings=settings)
        simple = simpler_ways(chosen, rows, table, most_parameters(given.data_folder), seconds)
    text = markdown(results, random, simple)
    print(text)
    save(given, {"proxy": proxy, "results": results, "random": random, "controls": simple}, table=text)


if __name__ == "__main__":
    main()
