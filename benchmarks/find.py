"""`nasight find` beside what a user would do instead, at equal time, with the same trainer and the same last training.

    python benchmarks/find.py --data-folder DATA

For every data set and seed a find runs first. The others then get the seconds that it took to choose (its proposals and
its race) on the same number of processes, and its recipe; what each of them chooses is trained as the find's winner
was: the same rows and seeds, and as many seconds (a slower network has fewer epochs; in finds that gave all networks
the same epochs, as many epochs). The test part judges all of them, and nothing else. Ways to choose:

    reference    the space's own architecture; it takes no time
    halving      random architectures with successive halving, as optuna's documentation shows it
    largest      the most parameters of the space; it takes no time
    naswot       the best NASWOT of as many random architectures as there is time for, each form once
    gaea         the arg max of one GAEA-DARTS search that takes all the time

A find leaves out networks that there is no time to train (`most_products` in its result), and so do all other ways: the
arg max is then that of the likeliest network within the limit. In the space convnet the reference is the plain network.

A find ends with a winner, and with what it says to take: the winner where it is better than the baseline, else the
baseline. Both are shown. The second was decided by the rows of the test part that judge it here.

Data: digits, and parts of Fashion-MNIST and CIFAR-10. What is done is kept in find_rows.json.gz beside the result, so
an interrupted benchmark resumes; a find that was interrupted begins anew, since what it did before a kill would not
count. Seconds count here: nothing else may run on the machine. The two strongest ways again, in 15 minutes:

    python benchmarks/find.py --data cifar-10 --budget 900 --seeds 3 --ways WAY,WAY --data-folder DATA \\
        --out benchmarks/results/find_ways_15m.json.gz
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch

from _find_ways import WAYS, Chooser, Rules
from _shared import Flags, KeptRows, code_digest, machine, mean_interval, save, shrunk, spread, states, without_folders
from nasight.compute import process_pool
from nasight.data import Dataset, load
from nasight.reproducible import generator_for
from nasight.spaces import Space, search_options
from nasight.spaces import load as load_space
from nasight.studies import find
from nasight.studies.finding import (
    Outcome,
    PaceProbe,
    Recipe,
    Request,
    Trainings,
    answer_seeds,
    paced_epochs,
    shared,
    used_seconds,
)

SETS: dict[str, dict[str, Any]] = {
    "digits": {},
    "fashion-mnist": {"rows": 5_000, "test": 5_000, "side": 14},
    "cifar-10": {"rows": 8_000, "test": 5_000, "side": 16},
}
SPACE = "convnet"
UNNAMED = "nasbench201"
"""The space whose rows have no name of it: they were the first."""
QUICK = {"trainings": 26, "epochs": 1}


def data_of(name: str, folder: str | None) -> Dataset:
    """A part of a data set, the same for all seeds."""
    how, data = SETS[name], load(name, folder=folder)
    if how:
        train = torch.randperm(len(data.train_y), generator=generator_for(0, "benchmark rows"))[: how["rows"]]
        assert data.test_x is not None
        assert data.test_y is not None
        parts = {"train_x": data.train_x[train], "train_y": data.train_y[train]}
        tests = {"test_x": data.test_x[: how["test"]], "test_y": data.test_y[: how["test"]]}
        data = shrunk(replace(data, **parts, **tests), how["side"])
    return replace(data, name=f"{name} (part)")


def searched(name: str) -> Space:
    """The space as it is searched."""
    return load_space(name, **search_options(name))


def found(space: str, data: Dataset, seed: int, budget: float | None, folder: Path, workers: int) -> dict[str, Any]:
    """What a find has come to: its winner, what it says to take, and all that its folder says."""
    how, code = QUICK if budget is None else {"budget": budget}, code_digest()
    answer = find(data, space=space, seed=seed, workers=workers, out=folder, overwrite=True, **how)
    result, base, took = answer.result, answer.result["baseline"], answer.result["training_seconds"]
    used = used_seconds(folder / "journal.jsonl", 0, len(result["recipes"]))
    winner = {"architecture": result["architecture"], "accuracies": result["accuracies"]}
    baseline = {"architecture": base["architecture"], "accuracies": base["accuracies"]}
    return {
        "find: its winner": winner,
        "find: what it says to take": winner if result["better"] else baseline,
        "about": {
            "recipe": result["recipe"], "epochs": result["epochs"], "examples": result["examples"], "seed": seed,
            "seconds": result["seconds"], "size": result["target"]["size"], "code": code,
            "most_products": result["most_products"],
            "equal": result["equal"], "baseline_epochs": base["epochs"],
            "slower": took["winner"] / took["baseline"], "baseline": base["architecture"],
            "choosing": used.get("propose", 0.0) + used.get("race", 0.0) or 2.0, "workers": workers,
            "machine": machine(), "result": without_folders(result),
        },
    }  # fmt: skip


def one(
    space: Space,
    data: Dataset,
    seed: int,
    budget: float | None,
    place: Path,
    workers: int,
    ways: list[str],
    rows: KeptRows,
) -> dict[str, Any]:
    """The find, then every other way, on one data set with one seed."""
    row: dict[str, Any] = rows.rows.get(place.name, {})
    if not row:
        row = found(space.name, data, seed, budget, place / "find", workers)
        rows.put(place.name, row)
    about = row["about"]
    size = about["size"]
    with shared(data) as mapped_data:
        work = Trainings({"space": load_space(space.name)}, mapped_data)
        request = Request(
            row["find: its winner"]["architecture"], "space", about["epochs"], 0, Recipe(**about["recipe"]),
            examples=about["examples"], size=tuple(sorted(size.items())),
            batch_size=32 if len(data.train_y) < 4_000 else 64,
        )  # fmt: skip
        paced = about.get("equal") == "seconds"
        products = space.multiply_adds(data.inputs, data.n_classes, **size)
        rules = Rules(space, about["choosing"], work, request, products, about.get("most_products"), paced)
        chooser = Chooser(rules, data, seed, workers)
        for way in ways:
            if way not in row:
                start = time.monotonic()
                chosen = chooser.choose(way, place / way)
                row[way] = {"architecture": chosen, "seconds": time.monotonic() - start, "code": code_digest()}
                rows.put(place.name, row)
        left = [way for way in ways if "accuracies" not in row[way]]
        seeds = answer_seeds(seed, number=len(row["find: its winner"]["accuracies"]))
        chosen = [replace(request, architecture=row[way]["architecture"]) for way in left]
        with process_pool(workers) as pool:
            if paced:
                known = {about["baseline"]: about["baseline_epochs"], request.architecture: request.epochs}
                chosen = in_the_same_time(chosen, request, known, work, pool, workers)
            asked = [replace(each, seed=s) for each in chosen for s in seeds]
            trained: list[Outcome | None] = list(pool.map(work, asked))
        for way, at in zip(left, range(0, len(trained), len(seeds)), strict=True):
            outcomes = trained[at : at + len(seeds)]
            ended = [o.seconds for o in outcomes if o is not None]
            row[way]["accuracies"] = [None if o is None else round(o.accuracy, 4) for o in outcomes]
            row[way]["training"], row[way]["epochs"] = fmean(ended) if ended else None, asked[at].epochs
            print(f"{place.name}: {way} {row[way]['accuracies']}", file=sys.stderr, flush=True)
        rows.put(place.name, row)
    return row


def in_the_same_time(
    chosen: list[Request], winner: Request, known: dict[str, int], work: Trainings, pool: Executor, workers: int
) -> list[Request]:
    """These trainings with as many epochs as take the seconds of the winner's; those of the find's sides are known."""
    new = sorted({each.architecture for each in chosen} - known.keys())
    asked = [replace(winner, architecture=text) for text in new for _ in range(workers)]
    paces = list(pool.map(PaceProbe(work, winner, 0.4), asked))
    each_pace = {text: median(paces[i * workers : (i + 1) * workers]) for i, text in enumerate(new)}
    epochs = {**{text: paced_epochs(winner.epochs, pace) for text, pace in each_pace.items()}, **known}
    return [replace(each, epochs=epochs[each.architecture]) for each in chosen]


def value(row: dict[str, Any], way: str, classes: int = 10) -> float:
    """The mean accuracy over seeds; a training that diverged is worth a guess."""
    return round(fmean(100 / classes if a is None else a for a in row[way]["accuracies"]), 4)


def table(rows: dict[str, list[dict[str, Any]]], ways: list[str]) -> str:
    """Mean test accuracy over seeds, with the paired differences of both ends of a find and their intervals."""
    ends = ("find: its winner", "find: what it says to take")
    lines = [
        "| data | way | test accuracy, % | winner less it, points (95 %) | advice less it, points (95 %) | best in |"
        " seconds to choose | seconds of a training |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in rows.items():
        means = {way: [value(row, way) for row in found] for way in (*ends, *ways)}
        racing = [ends[0], *ways]
        best = dict.fromkeys(racing, 0.0)
        for i in range(len(found)):
            top = [way for way in racing if means[way][i] == max(means[w][i] for w in racing)]
            for way in top:
                best[way] += 1 / len(top)
        for way in means:
            apart = ["", ""]
            if way not in ends and len(found) > 1:
                for k, end in enumerate(ends):
                    mean, half = mean_interval([a - b for a, b in zip(means[end], means[way], strict=True)])
                    apart[k] = f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})"
            failed = sum(a is None for row in found for a in row[way]["accuracies"])
            took = [row["about"]["choosing"] if way == ends[0] else row[way].get("seconds") for row in found]
            each = [row[way].get("training") for row in found]
            lines.append(
                f"| {name} | {way} | {spread(means[way])}{f' ({failed} diverged)' if failed else ''} | {apart[0]} |"
                f" {apart[1]} | {f'{best[way]:.2g} of {len(found)}' if way in best else ''} |"
                f" {_seconds(took)} | {_seconds(each)} |"
            )
    every = [row for found in rows.values() for row in found]
    codes = [row["about"]["code"] for row in every] + [row[way]["code"] for row in every for way in ways]
    return "\n".join(lines) + "\n" + states(codes)


def _seconds(values: list[float | None]) -> str:
    known = [v for v in values if v is not None]
    return f"{fmean(known):.1f}" if known else ""


def main() -> None:
    flags = Flags(__doc__, "find_ways", seeds=6, data="Fashion-MNIST and CIFAR-10", work="runs/find-benchmark")
    flags.add_argument("--space", default=SPACE, help=f"the space that is searched (default {SPACE})")
    flags.add_argument("--data", default="digits,fashion-mnist,cifar-10")
    flags.add_argument("--budget", type=float, default=180.0, help="seconds")
    flags.add_argument("--first-seed", type=int, default=0)
    flags.add_argument("--workers", type=int, default=2)
    flags.add_argument("--ways", default=",".join(WAYS), help="ways to compare with, joined by commas (default all)")
    given = flags.read(seeds=1, data="digits", budget=None, workers=1)
    torch.set_num_threads(1)  # as many trainings at once as there are workers, each with a core of its own
    ways = given.ways.split(",")
    if unknown := sorted(set(ways) - set(WAYS)):
        flags.error(f"--ways knows {', '.join(WAYS)}, got {', '.join(unknown)}")
    rows: dict[str, list[dict[str, Any]]] = {}
    kept, space = KeptRows(given.out.with_name("find_rows.json.gz")), searched(given.space)
    named = "" if given.space == UNNAMED else f"{given.space}-"
    for name in given.data.split(","):
        data = data_of(name, given.data_folder)
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            place = Path(given.work_folder) / f"{named}{name}-{given.budget}-{given.workers}-{seed}"
            rows.setdefault(name, []).append(one(space, data, seed, given.budget, place, given.workers, ways, kept))
    if len({row["about"].get("equal", "epochs") for found in rows.values() for row in found}) > 1:
        flags.error("some of the kept rows gave all networks the same epochs, others the same seconds: do not mix them")
    text = table(rows, ways)
    print(text)
    figures = {
        name: [{way: row[way] for way in row if way != "about"} for row in found] for name, found in rows.items()
    }
    save(given, {"budget": given.budget, "rows": figures}, table=text)


if __name__ == "__main__":
    main()
