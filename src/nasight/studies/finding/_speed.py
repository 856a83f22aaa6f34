"""How fast this machine is on this data: a few steps of each kind, in all processes at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from statistics import fmean, median
from typing import Any

import torch

from nasight.compute import autocast, synchronize, to_device
from nasight.data import Dataset
from nasight.kernels import score
from nasight.reproducible import torch_threads
from nasight.searching import method_row
from nasight.spaces import Space
from nasight.studies.finding._boosting import boosting_seconds
from nasight.studies.finding._lengths import PER_TRAINING
from nasight.studies.finding._plan import Speed
from nasight.studies.finding._work import Request, Trainings, read_architecture, rows_of
from nasight.training import Trainer

STEPS = 5
PASSES = 2
"""Of a search: one for the architecture, one for the shared weights."""


@dataclass(frozen=True)
class TrainingProbe:
    """Seconds per row of some trainings, in one process; called with a number that does not matter."""

    trainings: Trainings
    requests: tuple[Request, ...]

    def __call__(self, number: int) -> float:
        with torch_threads(1):
            return fmean(map(self._training, self.requests))

    def _training(self, request: Request) -> float:
        trainer = Trainer(self.trainings.job(request))
        trainer.set_rates()

        def step() -> None:
            trainer.take_step()
            synchronize(trainer.device)

        return _per_step(step, min(STEPS, trainer.loader.steps)) / trainer.loader.batch_size


@dataclass(frozen=True)
class Probe:
    """Measures in one process what `requests` and a search cost; called with a number that does not matter."""

    trainings: Trainings
    requests: tuple[Request, ...]
    method: str
    size: tuple[tuple[str, int], ...]
    """Of the supernet."""
    own: Request | None = None
    """A training of the user's own baseline."""
    large: Request | None = None
    """A training of a large architecture."""
    others: int = 2
    """Controls besides it, which take about as long as the architectures of the space."""
    boosting: Request | None = None
    """A training of gradient boosting, where that runs along."""

    def __call__(self, number: int) -> Speed:
        trainings, data = self.trainings, rows_of(self.trainings.data)
        space = trainings.space(self.requests[0].space)
        # The first is the reference.
        each = [TrainingProbe(trainings, (request,))(number) for request in self.requests]
        train = fmean(each)
        large = train if self.large is None else TrainingProbe(trainings, (self.large,))(number)
        with torch_threads(1):
            search = PASSES * self._supernet(space, data)
            archs = [read_architecture(space, request.architecture) for request in self.requests]
            # A reference may have an option that is not searched, and then is not scored.
            archs = [arch for arch in archs if arch in space]
            start = time.perf_counter()
            score(space, "naswot", data, architectures=archs, workers=1, device=trainings.device)
            scored = (time.perf_counter() - start) / max(len(archs), 1)
        # One that is faster counts as one: it waits for the others of its rung.
        own = 0.0 if self.own is None else TrainingProbe(trainings, (self.own,))(number)
        slower = 0.0 if self.own is None else max(1.0, own / train)
        boosting = 0.0 if self.boosting is None else boosting_seconds(trainings.job(self.boosting), trainings.threads)
        return Speed(
            train,
            search,
            scored,
            self.others + slower,
            each[0] / train,
            max(1.0, large / train),
            own / each[0],
            boosting,
        )

    def _supernet(self, space: Space, data: Dataset) -> float:
        """Seconds per image of a forward and a backward pass of the supernet."""
        row = method_row(self.method)
        relaxation, batch = row.relaxation, row.schedule.batch_size
        edges, size = relaxation.edges, dict[str, Any](self.size)
        supernet = space.supernet(data.inputs, data.n_classes, edges=edges, partial=relaxation.partial, **size)
        device = torch.device(self.trainings.device)
        supernet.to(device)
        weights = {g.name: g.uniform().requires_grad_() for g in space.groups(edges=edges)}
        y = data.train_y[torch.arange(batch) % len(data.train_y)]
        x, y = to_device((torch.randn(batch, *data.inputs), y), device)

        def step() -> None:
            with autocast(device, self.trainings.precision):
                logits = supernet(x, weights).float()
            data.task.loss(logits, y).backward()  # type: ignore[no-untyped-call]
            synchronize(device)

        return _per_step(step, STEPS) / batch


def mean_speed(found: Sequence[Speed]) -> Speed:
    """The mean over processes."""
    return Speed(*(fmean(values) for values in zip(*map(astuple, found), strict=True)))


def expected_seconds(rows: float, seen: Sequence[tuple[float, float]]) -> float:
    """What a training of so many rows will take, from (rows, seconds) of some others; rather too much than too little.

    A longer one takes longer in proportion. A shorter one saves rows alone: besides them it takes what is usual.

    >>> seen = [(1000, 1.0), (3000, 3.0)]
    >>> expected_seconds(4000, seen), round(expected_seconds(1000, seen), 3)
    (4.0, 1.2)
    """
    usual, seconds = (fmean(values) for values in zip(*seen, strict=True))
    # However short trainings are, their rows take a part of the time.
    beside = 0.0 if rows >= usual else min(PER_TRAINING, 0.7 * seconds)
    return beside + (seconds - beside) * rows / usual


def _per_step(step: Callable[[], None], number: int) -> float:
    """The median time of a step, the first not counted where there are more."""
    seconds = []
    for _ in range(number):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return median(seconds[1:] or seconds)
