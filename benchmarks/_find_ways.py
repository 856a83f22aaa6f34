"""What a user would do instead of a find: ways to choose an architecture in so many seconds."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import optuna
import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from nasight.architecture import Architecture
from nasight.compute import process_pool
from nasight.data import Dataset
from nasight.errors import RunError
from nasight.kernels import score
from nasight.reproducible import generator_for, torch_threads
from nasight.searching import Diverged as SearchDiverged
from nasight.searching import LogProbability, search
from nasight.spaces import MultiplyAdds, Space
from nasight.studies.finding import PaceProbe, Request, Trainings, paced_epochs
from nasight.training import Diverged, Trainer

WAYS = ("reference", "halving", "largest", "naswot", "gaea")
STUDY = "benchmark"


@dataclass(frozen=True)
class Rules:
    """What all ways keep to."""

    space: Space
    seconds: float
    """That there are to choose."""
    trainings: Trainings
    request: Request
    """A training of the find's winner."""
    products: MultiplyAdds
    most_products: float | None
    """Multiply-adds that a network may have; None: any number."""
    paced: bool
    """Whether all trainings take as long as that one; else they have its epochs."""

    def allow(self, arch: Architecture) -> bool:
        """Whether a find has time for it."""
        return self.most_products is None or (self.products(arch) or 0) <= self.most_products


@dataclass(frozen=True)
class Chooser:
    """The ways to choose an architecture in so many seconds."""

    rules: Rules
    data: Dataset
    seed: int
    workers: int

    @property
    def space(self) -> Space:
        return self.rules.space

    def choose(self, way: str, place: Path) -> str:
        shutil.rmtree(place, ignore_errors=True)  # of a call that was killed
        return str(getattr(self, way)(place))

    def allowed(self) -> Iterator[Architecture]:
        """The architectures that a find has time for."""
        return filter(self.rules.allow, self.space)

    def reference(self, place: Path) -> str:
        return self.space.format(self.space.reference)

    def largest(self, place: Path) -> str:
        count = self.space.parameters(self.data.inputs, self.data.n_classes, **dict(self.rules.request.size))
        return max((count(arch), self.space.format(arch)) for arch in self.allowed())[1]

    def naswot(self, place: Path) -> str:
        forms = list({self.space.canonical(arch): self.space.format(arch) for arch in self.allowed()}.values())
        order = torch.randperm(len(forms), generator=generator_for(self.seed, "benchmark sample"))
        sampled = [forms[k] for k in order.tolist()]
        best, at = ("", float("-inf")), 0
        with process_pool(self.workers) as pool:
            list(pool.map(abs, range(self.workers)))  # the processes have started, as those of a find have
            start = time.monotonic()
            while time.monotonic() - start < self.rules.seconds and at < len(sampled):
                found = score(
                    self.space, "naswot", self.data, architectures=sampled[at : at + 20], seed=self.seed, executor=pool
                )
                values = zip(found.architectures, found.goodness("naswot"), strict=True)
                best = max([best, *values], key=lambda pair: pair[1])
                at += 20
        return best[0]

    def gaea(self, place: Path) -> str:
        """One search with as many epochs as there is time for, by the time of two epochs on a quarter of the rows."""
        name, rows = self.space.name, len(self.data.train_y)
        how = {"data": self.data, "method": "gaea-darts", "preset": "tiny", "seed": self.seed}
        how |= {"augment": self.rules.request.recipe.words or False, "threads": self.workers}
        start = time.monotonic()
        try:
            probe = search(name, **how, examples=rows // 4, epochs=2, out=place / "probe")
            epoch = 2 * float(probe.result["seconds"])
            epochs = max(2, int((self.rules.seconds - (time.monotonic() - start)) / epoch))
            run = search(name, **how, examples="all", epochs=epochs, out=place / "search")
        except (SearchDiverged, RunError):
            return self.reference(place)
        if run.architecture in set(self.allowed()):
            return str(run.result["architecture"])
        log_p = LogProbability(run.weights, self.space.groups(), self.space)
        return max((log_p(arch), self.space.format(arch)) for arch in self.allowed())[1]

    def halving(self, place: Path) -> str:
        """Random architectures, each trained epoch by epoch, stopped where it is behind (optuna's pruner)."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        place.mkdir(parents=True)
        log = str(place / "study.log")
        storage = JournalStorage(JournalFileBackend(log))
        optuna.create_study(study_name=STUDY, storage=storage, direction="maximize")
        with process_pool(self.workers) as pool:
            list(pool.map(abs, range(self.workers)))  # the processes have started, as those of a find have
            request = replace(self.rules.request, seed=10_000 * self.seed, validation=0.25)
            trials = Trials(replace(self.rules, request=request), log)
            list(pool.map(trials, [1_000 * self.seed + k for k in range(self.workers)]))
        study = optuna.load_study(study_name=STUDY, storage=storage)
        ended = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
        best = max(ended, key=lambda t: t.value or 0.0) if ended else study.trials[0]
        return self.space.format(self.space.architecture(dict(best.params)))


@dataclass(frozen=True)
class Trials:
    """One process of optuna's: its documentation gives several processes one storage, since threads share a lock."""

    rules: Rules
    log: str

    def __call__(self, seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        rules, space = self.rules, self.rules.space
        probe = PaceProbe(rules.trainings, rules.request)

        def objective(trial: optuna.Trial) -> float:
            options = {d.name: trial.suggest_categorical(d.name, d.options) for d in space.decisions}
            arch = space.architecture(options)
            if not rules.allow(arch):
                raise optuna.TrialPruned
            request = replace(rules.request, architecture=space.format(arch))
            if rules.paced:
                request = replace(request, epochs=paced_epochs(request.epochs, probe(request)))
            trainer, accuracy, told = Trainer(rules.trainings.job(request)), 0.0, set[int]()
            while not trainer.done:
                accuracy = trainer.run_epoch(lambda: None).test_accuracy or 0.0
                # By the time it has had: trials are compared where they are equally far in their schedules.
                step = round(trainer.epoch * rules.request.epochs / request.epochs)
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
            study.optimize(objective, timeout=rules.seconds, catch=(Diverged,))
