"""One training of a find, in any process: small requests in, plain values out, the data read from a map once."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.data import Dataset, SentData, TableLayout, Task, map_of, open_map, read_augment
from nasight.errors import RunError
from nasight.own import OwnParts
from nasight.reproducible import torch_threads
from nasight.runs import parcel
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.studies.finding._boosting import train_boosting
from nasight.studies.finding._race import Outcome
from nasight.training import Diverged, Job, Trainer, load_trained, run_job, settings_for

AUGMENTATIONS = ("none", "shift", "shift and flip")
BOOSTING = "boosting"
"""The key of the control that is no network."""


@dataclass(frozen=True)
class Recipe:
    """How all candidates are trained: chosen on the reference, before any of them is seen."""

    lr: float = 0.05
    weight_decay: float = 3e-4
    augmentation: str = "none"

    @property
    def words(self) -> str | None:
        """The random changes as `--augment` has them; None: none.

        >>> Recipe(augmentation="shift and flip").words, Recipe().words
        ('shift,flip', None)
        """
        return None if self.augmentation == "none" else self.augmentation.replace(" and ", ",")


@dataclass(frozen=True)
class Request:
    """One training, described by plain values."""

    architecture: str
    space: str
    """The key of its space in the `Trainings` that take it."""
    epochs: int
    seed: int
    recipe: Recipe
    examples: int | None = None
    validation: float | str = "test"
    size: tuple[tuple[str, int], ...] = ()
    batch_size: int = 64
    place: str | None = None
    """The folder in which it is kept; None: nothing of it is but the outcome."""

    @property
    def final(self) -> bool:
        """Whether the test part judges it: it is one of the answer's."""
        return self.validation == "test"

    def key(self) -> str:
        """A name under which its outcome is kept."""
        r, size = self.recipe, ",".join(f"{name}={value}" for name, value in self.size)
        recipe = f"lr={r.lr:g} decay={r.weight_decay:g} {r.augmentation}"
        return (
            f"training {self.space} {self.architecture} epochs={self.epochs} seed={self.seed} {recipe} "
            f"rows={self.examples} judged={self.validation} size={size} batch={self.batch_size}"
        )


@dataclass(frozen=True)
class Trainings:
    """Trains what a `Request` asks for; sent to other processes it takes its spaces by name and its data by path."""

    spaces: Mapping[str, Space | tuple[str, Mapping[str, Any]]]
    data: str | SentData
    """The folder where `shared` laid it out, or what another machine needs to load it."""
    threads: int = 1
    device: str = "cpu"
    own: OwnParts = field(default_factory=OwnParts)
    class_weights: str | None = None
    precision: str = "32"
    _loaded: dict[str, Space] = field(default_factory=dict, compare=False, repr=False)

    def space(self, key: str) -> Space:
        if key not in self._loaded:
            given = self.spaces[key]
            self._loaded[key] = given if isinstance(given, Space) else load_space(given[0], **given[1])
        return self._loaded[key]

    def __getstate__(self) -> dict[str, Any]:
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "spaces": dict(self.spaces), "_loaded": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def job(self, request: Request) -> Job:
        """The training that a request means."""
        data, space = augmented(rows_of(self.data), request.recipe.words), self.space(request.space)
        settings = settings_for(
            space,
            "small",
            epochs=request.epochs,
            lr=request.recipe.lr,
            weight_decay=request.recipe.weight_decay,
            augment=request.recipe.words is not None,
            batch_size=request.batch_size,
            examples=request.examples,
            validation=request.validation,
            size=dict(request.size),
            class_weights=self.class_weights,
            precision=self.precision,
        )
        arch = space.reference if request.space == BOOSTING else read_architecture(space, request.architecture)
        return Job(space, arch, data, settings, request.seed, own=self.own, device=self.device)

    def __call__(self, request: Request) -> Any:
        """The outcome, or None where the training failed; from another machine it comes with the folder it wrote.

        In the race whatever torch refuses is a failure of the candidate; in the end only a loss that diverges is.
        """
        if request.place is not None and isinstance(self.data, SentData):
            return parcel(lambda place: self._outcome(replace(request, place=str(place))))
        return self._outcome(request)

    def _outcome(self, request: Request) -> Outcome | None:
        start = time.perf_counter()
        with torch_threads(self.threads):
            try:
                job = self.job(request)
                if request.space == BOOSTING:
                    return train_boosting(job, self.threads)
                right, before = (_train(Trainer(job)), 0.0) if request.place is None else self._kept(job, request.place)
            except Diverged:
                return None
            except RunError:
                # Nothing to do with the architecture, such as a full disk: the find stops, and can be resumed.
                raise
            except RuntimeError:
                if request.final:
                    raise
                return None
        # One that a kill cut off took longer than what was left of it.
        seconds = max(time.perf_counter() - start, before)
        return Outcome(100.0 * float(right.float().mean()), right.numpy(), seconds)

    def _kept(self, job: Job, place: str) -> tuple[Tensor, float]:
        """The scores of the rows that judge a training with a folder of its own, and the seconds of all its epochs.

        A finished one is read.
        """
        found = list[Tensor]()
        took = run_job(
            job, place, threads=self.threads, judged_once=True, ended=lambda trainer: found.append(trainer.right())
        ).seconds
        if found:
            return found[0], took
        trainer = Trainer(job)
        trainer.network.load_state_dict(load_trained(place, space=job.space).state_dict())
        return trainer.right(), took


def read_architecture(space: Space, text: str) -> Architecture:
    """The architecture of a text; a reference with an option that searches leave out is one too."""
    return space.reference if text == space.format(space.reference) else space.parse(text)


def _train(trainer: Trainer) -> Tensor:
    """All epochs, then the scores of the rows that judge: nothing is decided on the way, so nothing is judged there."""
    while not trainer.done:
        trainer.set_rates()
        while trainer.step < trainer.loader.steps:
            trainer.take_step()
        trainer.next_epoch()
    return trainer.right()


def augmented(data: Dataset, words: str | None) -> Dataset:
    """The data set with these random changes: shifts by up to an eighth of the image, and mirrored images."""
    if words is None or len(data.inputs) != 3:
        return data.augmented(None)
    return data.augmented(read_augment(words, data.inputs))


@contextmanager
def shared(data: Dataset) -> Iterator[str]:
    """The data set laid out in a folder for other processes to map, while the block lasts."""
    folder = tempfile.mkdtemp(prefix="nasight-find-")
    try:
        rest = {}
        for each in fields(data):
            value = getattr(data, each.name)
            file = map_of(value) if isinstance(value, Tensor) else None
            if file is not None:
                (Path(folder) / f"{each.name}.map").write_text(str(file))
            elif isinstance(value, Tensor):
                np.save(Path(folder) / f"{each.name}.npy", value.contiguous().numpy())
            elif each.name == "task":
                rest[each.name] = value.to_dict()
            elif each.name == "table":
                rest[each.name] = None if value is None else value.to_list()
            elif each.name != "augmentation":
                rest[each.name] = value
        torch.save(rest, Path(folder) / "rest.pt")
        yield folder
    finally:
        mapped.cache_clear()
        shutil.rmtree(folder, ignore_errors=True)


def rows_of(data: str | SentData) -> Dataset:
    """The data set, in whatever process this is."""
    return mapped(data) if isinstance(data, str) else data.load()


@lru_cache(maxsize=4)
def mapped(folder: str) -> Dataset:
    """The data set that `shared` laid out, its arrays mapped."""
    place = Path(folder)
    rest = torch.load(place / "rest.pt", weights_only=True)
    arrays = {file.stem: open_map(file) for file in place.glob("*.npy")}
    arrays |= {file.stem: open_map(file.read_text()) for file in place.glob("*.map")}
    columns = rest.pop("table")
    parts = {
        "task": Task.from_dict(rest.pop("task")),
        "table": None if columns is None else TableLayout.from_list(columns),
    }
    return Dataset(**{"test_x": None, "test_y": None, **arrays, **rest, **parts})
