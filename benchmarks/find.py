"""`nasight find` beside what a user would do instead, at equal time, with the same trainer and the same last training.

    python benchmarks/find.py --data-folder DATA

For every data set and seed a find runs first. The others then get the seconds that it took to choose (its proposals and
its race) on the same number of processes, and its recipe; what each of them chooses is trained as the find's winner
was: the same rows, epochs and seeds. The test part judges all of them, and nothing else. Ways to choose:

    reference    the space's own architecture; it takes no time
    halving      random architectures with successive halving, as optuna's documentation shows it
    largest      the most parameters of a sample
    naswot       the best NASWOT of as large a sample as there is time for
    gaea         the arg max of one GAEA-DARTS search that takes all the time

Data: digits, and parts of Fashion-MNIST and CIFAR-10. What is done is kept in find_rows.json.gz beside the result, so
an interrupted benchmark resumes. Seconds count here: nothing else may run on the machine.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from _shared import Flags, KeptRows, machine, save, shrunk, spread
from nasight.compute import process_pool
from nasight.data import Dataset, load
from nasight.kernels import score
from nasight.reproducible import generator_for, torch_threads
from nasight.searching import search
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.studies import find, resume_find
from nasight.studies.finding import (
    Outcome,
    Recipe,
    Request,
    Trainings,
    answer_seeds,
    difference,
    shared,
    used_seconds,
)
from nasight.training import Trainer

SETS: dict[str, dict[str, Any]] = {
    "digits": {},
    "fashion-mnist": {"rows": 5_000, "test": 5_000, "side": 14},
    "cifar-10": {"rows": 8_000, "test": 5_000, "side": 16},
}
STUDY = "benchmark"
WAYS = ("reference", "halving", "largest", "naswot", "gaea")
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

    def choose(self, way: str, place: Path) -> str:
        return str(getattr(self, way)(place))

    def sample(self, number: int) -> list[str]:
        generator = generator_for(self.seed, "benchmark sample")
        return [self.space.format(self.space.sample(generator)) for _ in range(number)]

    def reference(self, place: Path) -> str:
        return self.space.format(self.space.reference)

    def largest(self, place: Path) -> str:
        count = self.space.parameters(self.data.inputs, self.data.n_classes, **self.settings["size"])
        return max(self.sample(1_000), key=lambda text: count(self.space.parse(text)))

    def naswot(self, place: Path) -> str:
        best, at, sampled = ("", float("-inf")), 0, self.sample(4_096)
        with process_pool(self.workers) as pool:
            list(pool.map(abs, range(self.workers)))  # the processes have started, as those of a find have
            start = time.monotonic()
            while time.monotonic() - start < self.seconds and at < len(sampled):
                found = score(self.space, "naswot", self.data, architectures=sampled[at : at + 20], executor=pool)
                best = max(
                    [best, *zip(found.architectures, found.goodness("naswot"), strict=True)], key=lambda pair: pair[1]
                )
                at += 20
        return best[0]

    def gaea(self, place: Path) -> str:
        """One search with as many epochs as there is time for, from the time that two epochs take."""
        recipe: Recipe = self.settings["request"].recipe
        how = {"data": self.data, "method": "gaea-darts", "preset": "tiny", "examples": "all", "seed": self.seed}
        how |= {"augment": recipe.words or False, "threads": self.workers}
        probe = search("nasbench201", **how, epochs=2, out=place / "probe", overwrite=True)
        epoch = float(probe.result["seconds"]) / 2
        epochs = max(2, int(0.9 * self.seconds / epoch) - 2)
        run = search("nasbench201", **how, epochs=epochs, out=place / "search", overwrite=True)
        return str(run.result["architecture"])

    def halving(self, place: Path) -> str:
        """Random architectures, each trained epoch by epoch, stopped where it is behind (optuna's pruner)."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        place.mkdir(parents=True, exist_ok=True)
        log = str(place / "study.log")
        (place / "study.log").unlink(missing_ok=True)
        storage = JournalStorage(JournalFileBackend(log))
        optuna.create_study(study_name=STUDY, storage=storage, direction="maximize")
        with process_pool(self.workers) as pool:
            list(pool.map(abs, range(self.workers)))  # the processes have started, as those of a find have
            trial = Trial(self.settings["trainings"], self.settings["request"], log, self.seconds)
            list(pool.map(trial, [1_000 * self.seed + k for k in range(self.workers)]))
        study = optuna.load_study(study_name=STUDY, storage=storage)
        ended = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
        best = max(ended, key=lambda t: t.value or 0.0) if ended else study.trials[0]
        return self.space.format(self.space.architecture(dict(best.params)))


@dataclass(frozen=True)
class Trial:
    """One process of optuna's: its documentation gives several processes one storage, since threads share a lock."""

    trainings: Trainings
    request: Request
    log: str
    seconds: float

    def __call__(self, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        space = load_space("nasbench201", none=False)

        def objective(trial: optuna.Trial) -> float:
            options = {d.name: trial.suggest_categorical(d.name, d.options) for d in space.decisions}
            text = space.format(space.architecture(options))
            request = replace(self.request, architecture=text, validation=0.25)
            trainer, accuracy = Trainer(self.trainings.job(request)), 0.0
            while not trainer.done:
                accuracy = trainer.run_epoch(lambda: None).test_accuracy or 0.0
                trial.report(accuracy, trainer.epoch)
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
            study.optimize(objective, timeout=self.seconds)


def one(data: Dataset, seed: int, budget: float | None, place: Path, workers: int, rows: KeptRows) -> dict[str, Any]:
    """The find, then every other way, on one data set with one seed."""
    row: dict[str, Any] = rows.rows.get(place.name, {})
    if "find" not in row:
        folder = place / "find"
        if (folder / "run.json").exists():
            answer = resume_find(folder, data=data)
        else:
            how = QUICK if budget is None else {"budget": budget}
            answer = find(data, space="nasbench201", seed=seed, workers=workers, out=folder, **how)
        result = answer.result
        used = used_seconds(folder / "journal.jsonl", 0, len(result["recipes"]))
        row["find"] = {"accuracies": result["accuracies"], "architecture": result["architecture"]}
        row["plain or reference"] = {
            "accuracies": result["baseline"]["accuracies"],
            "architecture": result["baseline"]["architecture"],
        }
        row["about"] = {
            "recipe": result["recipe"], "epochs": result["epochs"], "examples": result["examples"], "seed": seed,
            "seconds": result["seconds"], "better": result["better"], "size": result["target"]["size"],
            "choosing": used.get("propose", 0.0) + used.get("race", 0.0) or 2.0, "machine": machine(),
        }  # fmt: skip
        rows.put(place.name, row)
    about = row["about"]
    space = load_space("nasbench201", none=False)
    size = about["size"]
    with shared(data) as mapped_data:
        work = Trainings({"space": load_space("nasbench201")}, mapped_data)
        request = Request(
            space.format(space.reference), "space", about["epochs"], 0, Recipe(**about["recipe"]),
            examples=about["examples"], size=tuple(sorted(size.items())),
            batch_size=32 if len(data.train_y) < 4_000 else 64,
        )  # fmt: skip
        settings = {"size": size, "trainings": work, "request": request}
        chooser = Chooser(space, data, about["choosing"], seed, settings, workers)
        for way in WAYS:
            if way in row:
                continue
            start = time.monotonic()
            chosen = chooser.choose(way, place / way)
            took = time.monotonic() - start
            seeds = answer_seeds(seed, number=len(row["find"]["accuracies"]))
            asked = [replace(request, architecture=chosen, seed=s) for s in seeds]
            with process_pool(workers) as pool:
                outcomes: list[Outcome | None] = list(pool.map(work, asked))
            row[way] = {
                "architecture": chosen, "seconds": took,
                "accuracies": [None if o is None else o.accuracy for o in outcomes],
            }  # fmt: skip
            rows.put(place.name, row)
            print(f"{place.name}: {way} {row[way]['accuracies']}", file=sys.stderr, flush=True)
    return row


def table(rows: dict[str, list[dict[str, Any]]]) -> str:
    """Mean test accuracy over seeds, with the paired difference to `find` and its interval."""
    lines = ["| data | way | test accuracy, % | less than find, points (95 %) | best in |", "|---|---|---|---|---|"]
    for name, found in rows.items():
        ways = ("find", "plain or reference", *WAYS)
        means = {way: [fmean(a for a in row[way]["accuracies"] if a is not None) for row in found] for way in ways}
        for way in ways:
            apart = ""
            if way != "find" and len(found) > 1:
                d = difference([Outcome(a) for a in means["find"]], [Outcome(a) for a in means[way]])
                apart = f"{d.mean:+.2f} ({d.low:+.2f} to {d.high:+.2f})"
            best = sum(means[way][i] == max(means[w][i] for w in ways) for i in range(len(found)))
            lines.append(f"| {name} | {way} | {spread(means[way])} | {apart} | {best} of {len(found)} |")
    return "\n".join(lines)


def main() -> None:
    flags = Flags(__doc__, "find", seeds=6, data="Fashion-MNIST and CIFAR-10", work="runs/find-benchmark")
    flags.add_argument("--data", default="digits,fashion-mnist,cifar-10")
    flags.add_argument("--budget", type=float, default=180.0, help="seconds")
    flags.add_argument("--first-seed", type=int, default=0)
    flags.add_argument("--workers", type=int, default=2)
    given = flags.read(seeds=1, data="digits", budget=None, workers=1)
    torch.set_num_threads(1)  # as many trainings at once as there are workers, each with a core of its own
    rows: dict[str, list[dict[str, Any]]] = {}
    kept = KeptRows(given.out.with_name("find_rows.json.gz"))
    for name in given.data.split(","):
        data = data_of(name, given.data_folder)
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            place = Path(given.work_folder) / f"{name}-{given.budget}-{seed}"
            rows.setdefault(name, []).append(one(data, seed, given.budget, place, given.workers, kept))
    print(table(rows))
    save(given, rows)


if __name__ == "__main__":
    main()
