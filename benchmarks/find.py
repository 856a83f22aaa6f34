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

import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from _shared import Flags, KeptRows, code_digest, machine, mean_interval, save, shrunk, spread, states, without_folders
from nasight.architecture import Architecture
from nasight.compute import process_pool
from nasight.data import Dataset, load
from nasight.errors import RunError
from nasight.kernels import score
from nasight.reproducible import generator_for, torch_threads
from nasight.searching import Diverged as SearchDiverged
from nasight.searching import LogProbability, search
from nasight.spaces import MultiplyAdds, Space, search_options
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
from nasight.training import Diverged, Trainer

SETS: dict[str, dict[str, Any]] = {
    "digits": {},
    "fashion-mnist": {"rows": 5_000, "test": 5_000, "side": 14},
    "cifar-10": {"rows": 8_000, "test": 5_000, "side": 16},
}
STUDY = "benchmark"
WAYS = ("reference", "halving", "largest", "naswot", "gaea")
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


class Chooser:
    """The ways to choose an architecture in so many seconds."""

    def __init__(
        self, space: Space, data: Dataset, seconds: float, seed: int, settings: dict[str, Any], workers: int
    ) -> None:
        self.space, self.data, self.seconds, self.seed = space, data, seconds, seed
        self.settings, self.workers = settings, workers

        self.products = space.multiply_adds(data.inputs, data.n_classes, **settings["size"])

    def choose(self, way: str, place: Path) -> str:
        shutil.rmtree(place, ignore_errors=True)  # of a call that was killed
        return str(getattr(self, way)(place))

    def allowed(self) -> Iterator[Architecture]:
        """The architectures that a find has time for."""
        most = self.settings["most_products"]
        return (arch for arch in self.space if most is None or (self.products(arch) or 0) <= most)

    def reference(self, place: Path) -> str:
        return self.space.format(self.space.reference)

    def largest(self, place: Path) -> str:
        count = self.space.parameters(self.data.inputs, self.data.n_classes, **self.settings["size"])
        return max((count(arch), self.space.format(arch)) for arch in self.allowed())[1]

    def naswot(self, place: Path) -> str:
        forms = list({self.space.canonical(arch): self.space.format(arch) for arch in self.allowed()}.values())
        order = torch.randperm(len(forms), generator=generator_for(self.seed, "benchmark sample"))
        sampled = [forms[k] for k in order.tolist()]
        best, at = ("", float("-inf")), 0
        with process_pool(self.workers) as pool:
            list(pool.map(abs, range(self.workers)))  # the processes have started, as those of a find have
            start = time.monotonic()
            while time.monotonic() - start < self.seconds and at < len(sampled):
                found = score(
                    self.space, "naswot", self.data, architectures=sampled[at : at + 20], seed=self.seed, executor=pool
                )
                values = zip(found.architectures, found.goodness("naswot"), strict=True)
                best = max([best, *values], key=lambda pair: pair[1])
                at += 20
        return best[0]

    def gaea(self, place: Path) -> str:
        """One search with as many epochs as there is time for, by the time of two epochs on a quarter of the rows."""
        recipe: Recipe = self.settings["request"].recipe
        rows = len(self.data.train_y)
        how = {"data": self.data, "method": "gaea-darts", "preset": "tiny", "seed": self.seed}
        name = self.space.name
        how |= {"augment": recipe.words or False, "threads": self.workers}
        start = time.monotonic()
        try:
            probe = search(name, **how, examples=rows // 4, epochs=2, out=place / "probe")
            epoch = 2 * float(probe.result["seconds"])
            epochs = max(2, int((self.seconds - (time.monotonic() - start)) / epoch))
            run = search(name, **how, examples="all", epochs=epochs, out=place / "search")
        except (SearchDiverged, RunError):
            return self.reference(place)
        if run.architecture in set(self.allowed()):
            return str(run.result["architecture"])
        log_p = LogProbability(run.weights, self.space.groups(), self.space)
        return max((log_p(arch), self.space.format(arch)) for arch in self.allowed())[1]

    def halving(self, place: Path) -> str:
        """Random architectures, each trained epoch by epoch, stopped where it is behind (optuna's pruner)."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        place.mkdir(parents=True)
        log = str(place / "study.log")
        storage = JournalStorage(JournalFileBackend(log))
        optuna.create_study(study_name=STUDY, storage=storage, direction="maximize")
        with process_pool(self.workers) as pool:
            list(pool.map(abs, range(self.workers)))  # the processes have started, as those of a find have
            request = replace(self.settings["request"], seed=10_000 * self.seed, validation=0.25)
            most, paced = self.settings["most_products"], self.settings["paced"]
            trial = Trial(
                self.space, self.products, most, self.settings["trainings"], request, paced, log, self.seconds
            )
            list(pool.map(trial, [1_000 * self.seed + k for k in range(self.workers)]))
        study = optuna.load_study(study_name=STUDY, storage=storage)
        ended = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
        best = max(ended, key=lambda t: t.value or 0.0) if ended else study.trials[0]
        return self.space.format(self.space.architecture(dict(best.params)))


@dataclass(frozen=True)
class Trial:
    """One process of optuna's: its documentation gives several processes one storage, since threads share a lock."""

    space: Space
    products: MultiplyAdds
    most_products: float | None
    trainings: Trainings
    request: Request
    """A training of the find's winner."""
    paced: bool
    """Whether all trainings take as long as that one; else they have its epochs."""
    log: str
    seconds: float

    def __call__(self, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        space, probe = self.space, PaceProbe(self.trainings, self.request)

        def objective(trial: optuna.Trial) -> float:
            options = {d.name: trial.suggest_categorical(d.name, d.options) for d in space.decisions}
            arch = space.architecture(options)
            if self.most_products is not None and (self.products(arch) or 0) > self.most_products:
                raise optuna.TrialPruned
            request = replace(self.request, architecture=space.format(arch))
            if self.paced:
                request = replace(request, epochs=paced_epochs(request.epochs, probe(request)))
            trainer, accuracy, told = Trainer(self.trainings.job(request)), 0.0, set[int]()
            while not trainer.done:
                accuracy = trainer.run_epoch(lambda: None).test_accuracy or 0.0
                # By the time it has had: trials are compared where they are equally far in their schedules.
                step = round(trainer.epoch * self.request.epochs / request.epochs)
                if step not in told and step > 0:
                    told.add(step)
                    trial.report(accuracy, step)
                    if trial.should_prune():
                        raise optuna.TrialPruned
            return accuracy

        with torch_threads(1):
            study = optuna.load_study(
                study_name=STUDY,
                storage=JournalStorage(JournalFileBackend(self.log)),
                sampler=optuna.samplers.RandomSampler(seed=seed),
                pruner=optuna.pruners.SuccessiveHalvingPruner(),
            )
            study.optimize(objective, timeout=self.seconds, catch=(Diverged,))


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
        settings = {
            "size": size,
            "trainings": work,
            "request": request,
            "most_products": about.get("most_products"),
            "paced": about.get("equal") == "seconds",
        }
        chooser = Chooser(space, data, about["choosing"], seed, settings, workers)
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
            if settings["paced"]:
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
