"""Cells trained alike: how fast and how steadily each converges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from torch import Tensor, from_numpy

from nasight.anatomy import Design
from nasight.compute import choose_device, is_device, is_remote, map_resumable
from nasight.data import Dataset, SentData, split_indices
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.reproducible import generator_for, torch_threads
from nasight.runs import RunFolder
from nasight.spaces import load
from nasight.studies._protocol import Protocol
from nasight.training import TrainingCurve, train_curve

HELD_OUT = 0.2
"""The share of the training rows that judges where the data has no test part."""
KIND = "convergence"
Item = tuple[str, float, int]
"""(architecture, learning rate, seed)"""


@dataclass(frozen=True, slots=True)
class CellRow:
    """One cell at one learning rate: means over the seeds, and the spread (standard deviation) between them."""

    name: str
    architecture: str
    width: float
    depth: int
    parameters: int
    """Of the network for images of 32 x 32 in 10 classes, at the size of the protocol."""
    multiply_adds: int
    """Of the same network, for one image."""
    lr: float
    accuracy: float
    accuracy_spread: float | None
    loss: float
    loss_spread: float | None
    steps_to_loss: float | None
    """None where a seed never reaches it."""
    area: float | None
    """Mean test loss over the steps; None where a seed broke off."""
    diverged: int


@dataclass(frozen=True)
class Comparison:
    """All trainings of a comparison, designs in their order: rates, then seeds, for each."""

    designs: tuple[Design, ...]
    trainings: tuple[TrainingCurve, ...]
    protocol: Protocol
    lrs: tuple[float, ...]
    seeds: tuple[int, ...]

    def of(self, place: int, lr: float) -> list[TrainingCurve]:
        """The trainings of a design at a learning rate, one per seed."""
        each = len(self.lrs) * len(self.seeds)
        first = place * each + self.lrs.index(lr) * len(self.seeds)
        return list(self.trainings[first : first + len(self.seeds)])

    def target(self, lr: float) -> float:
        """A test loss that every training at this rate reaches which did not diverge: the highest of their lowest."""
        steady = [t for i in range(len(self.designs)) for t in self.of(i, lr) if not t.diverged]
        everyone = steady or [t for i in range(len(self.designs)) for t in self.of(i, lr)]
        return max(min(p.loss for p in t.curve) for t in everyone)

    def rows(self, target: float | None = None) -> list[CellRow]:
        """The figures of every design and rate; `target` is the loss to count steps to (default: see `target`)."""
        return [
            self._row(place, lr, self.target(lr) if target is None else target)
            for lr in self.lrs
            for place in range(len(self.designs))
        ]

    def _row(self, place: int, lr: float, target: float) -> CellRow:
        design, runs = self.designs[place], self.of(place, lr)
        graph = design[design.main]
        size = {"channels": self.protocol.channels, "cells": self.protocol.cells}
        return CellRow(
            name=design.name,
            architecture=runs[0].architecture,
            width=graph.width,
            depth=graph.depth,
            parameters=design.parameters(**size),
            multiply_adds=design.multiply_adds(**size),
            lr=lr,
            accuracy=mean(t.accuracy for t in runs),
            accuracy_spread=stdev(t.accuracy for t in runs) if len(runs) > 1 else None,
            loss=mean(t.loss for t in runs),
            loss_spread=stdev(t.loss for t in runs) if len(runs) > 1 else None,
            steps_to_loss=_mean([t.steps_to(target) for t in runs]),
            area=_mean([t.area() for t in runs]),
            diverged=sum(t.diverged for t in runs),
        )

    def to_dict(self, target: float | None = None) -> dict[str, Any]:
        return {
            "protocol": self.protocol.kept(),
            "lrs": list(self.lrs),
            "seeds": list(self.seeds),
            "target_loss": {str(lr): self.target(lr) if target is None else target for lr in self.lrs},
            "cells": [asdict(row) for row in self.rows(target)],
            "trainings": [t.to_dict() for t in self.trainings],
        }


def compare_cells(
    designs: Sequence[Design],
    data: Any,
    *,
    protocol: Protocol | None = None,
    lrs: Sequence[float] = (0.025,),
    seeds: Sequence[int] = (0, 1, 2),
    out: str | Path | None = None,
    data_folder: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    device: str = "auto",
) -> Comparison:
    """Train every design with every learning rate and seed under one protocol.

    With `out` each training is written down when it is finished, and none is repeated: the same call, or one with more
    designs, learning rates or seeds, resumes that folder. `progress(done, total)` counts trainings. On a `device` they
    are made one after the other by default.
    """
    protocol, chosen = protocol or Protocol(), choose_device(device)
    if is_device(chosen) and executor is None:
        workers = workers or 1
    _check(designs, lrs, seeds)
    whole = load_data(data, folder=data_folder)
    dataset, space = judged_part(whole, protocol), designs[0].space
    sent = SentData.of(whole, partial(judged_part, protocol=protocol)) if is_remote(executor) else None
    texts = [load(space).format(design.architecture()) for design in designs]
    items: list[Item] = [(text, float(lr), int(seed)) for text in texts for lr in lrs for seed in seeds]
    folder = None if out is None else _folder(Path(out), space, dataset, protocol)
    with nullcontext() if folder is None else folder.writing():
        stored = [] if folder is None else [TrainingCurve.from_dict(row) for row in folder.history]
        done = {(t.architecture, t.lr, t.seed): t for t in stored}
        every, finished = len(dict.fromkeys(items)), sum(item in done for item in dict.fromkeys(items))

        def arrived(item: Item, training: TrainingCurve) -> None:
            nonlocal finished
            finished += 1
            stored.append(training)
            if folder is not None:
                folder.append_history(training.to_dict())
            if progress is not None:
                progress(finished, every)

        work = _Work(space, sent or dataset, protocol, str(chosen))
        trainings = map_resumable(work, items, executor=executor, workers=workers, done=done, on_result=arrived)
        found = Comparison(tuple(designs), tuple(trainings), protocol, tuple(map(float, lrs)), tuple(map(int, seeds)))
        if folder is not None:
            folder.write_result(found.to_dict())
    return found


@dataclass
class _Work:
    """A training as sent to another process: the arrays go as NumPy's, not through shared memory.

    One thread each, so that curves are the same with any number of workers.
    """

    space: str
    data: Dataset | SentData
    protocol: Protocol
    device: str = "cpu"

    def __call__(self, item: Item) -> TrainingCurve:
        text, lr, seed = item
        with torch_threads(1):
            space, data = load(self.space), self.data.load() if isinstance(self.data, SentData) else self.data
            job = self.protocol.job(space, space.parse(text), data, lr=lr, seed=seed, device=self.device)
            return train_curve(job, evaluations=self.protocol.evaluations)[0]

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self.data, SentData):
            return {"space": self.space, "data": self.data, "protocol": self.protocol, "device": self.device}
        parts = {f.name: getattr(self.data, f.name) for f in fields(self.data)}
        data = {name: value.numpy() if isinstance(value, Tensor) else value for name, value in parts.items()}
        return {"space": self.space, "data": data, "protocol": self.protocol, "device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.space, self.protocol, self.device = state["space"], state["protocol"], state["device"]
        if isinstance(state["data"], SentData):
            self.data = state["data"]
            return
        arrays = ("train_x", "train_y", "test_x", "test_y")
        parts: dict[str, Any] = {k: from_numpy(v) if k in arrays else v for k, v in state["data"].items()}
        self.data = Dataset(**parts)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None


def _check(designs: Sequence[Design], lrs: Sequence[float], seeds: Sequence[int]) -> None:
    if not designs or len({design.space for design in designs}) > 1:
        raise RequestError(f"a comparison needs one or more designs of one space, got {[d.space for d in designs]}")
    if not lrs or len(set(lrs)) < len(lrs) or not all(0 < lr < math.inf for lr in lrs):
        raise RequestError(f"learning rates must be one or more different numbers above 0, got {list(lrs)}")
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise RequestError(f"seeds must be one or more different numbers of at least 0, got {list(seeds)}")


def judged_part(data: Dataset, protocol: Protocol) -> Dataset:
    """The rows that are trained on and judged by; the choice depends on no seed."""
    if data.task.kind != "classes":
        raise RequestError(f"cells are compared by their accuracy on classes, and {data.name} has {data.task.kind}")
    if data.test_x is None or data.test_y is None:
        held, rest = data.split(HELD_OUT, generator_for("convergence", "held out"))
        data = replace(
            data,
            train_x=data.train_x[rest],
            train_y=data.train_y[rest],
            test_x=data.train_x[held],
            test_y=data.train_y[held],
        )
    if protocol.examples is not None and protocol.examples < len(data.train_y):
        if protocol.examples < data.fewest:
            raise RequestError(f"{protocol.examples} examples are too few for {data.outputs_text}")
        (rows,) = split_indices(data.strata, [protocol.examples], generator_for("convergence", "examples"))
        data = replace(data, train_x=data.train_x[rows], train_y=data.train_y[rows])
    x, y = data.test_x, data.test_y
    if x is not None and y is not None and protocol.test_examples is not None and protocol.test_examples < len(y):
        (rows,) = split_indices(data.task.strata(y), [protocol.test_examples], generator_for("convergence", "test"))
        data = replace(data, test_x=x[rows], test_y=y[rows])
    return data


def _folder(path: Path, space: str, data: Dataset, protocol: Protocol) -> RunFolder:
    settings = {"space": space, "data": data.name, "fingerprint": data.fingerprint, **protocol.kept()}
    return RunFolder.create_or_open(path, kind=KIND, holds="a comparison", settings=settings)
