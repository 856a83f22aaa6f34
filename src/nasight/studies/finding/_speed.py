"""How fast this machine is on this data: a few steps of each kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from nasight.data import Dataset
from nasight.kernels import score
from nasight.reproducible import generator_for, torch_threads
from nasight.searching import Method
from nasight.spaces import Space
from nasight.studies.finding._plan import Speed
from nasight.studies.finding._work import Request, Trainings
from nasight.training import Trainer

STEPS = 6
SCORED = 3
PASSES = 2
"""Of a search: one for the architecture, one for the shared weights."""


def measure(
    trainings: Trainings, request: Request, space: Space, data: Dataset, method: Method, size: Mapping[str, int]
) -> Speed:
    """Seconds per image of the training of `request` and of a search, and per architecture scored, on one core.

    `size` is the supernet's.
    """
    with torch_threads(1):
        trainer = Trainer(trainings.job(request))
        trainer.set_rates()
        train = _per_step(trainer.take_step, min(STEPS, trainer.loader.steps)) / trainer.loader.batch_size
        search = PASSES * _supernet(space, data, method, size)
        sampled = [space.sample(generator_for(0, "speed", i)) for i in range(SCORED)]
        start = time.perf_counter()
        score(space, "naswot", data, architectures=[a for a in sampled if space.usable(a) is None], workers=1)
        return Speed(train, search, (time.perf_counter() - start) / SCORED)


def _supernet(space: Space, data: Dataset, method: Method, size: Mapping[str, int]) -> float:
    """Seconds per image of a forward and a backward pass of the supernet."""
    relaxation, batch = method.relaxation, method.schedule.batch_size
    edges, partial = relaxation.edges, relaxation.partial
    supernet = space.supernet(data.inputs, data.n_classes, edges=edges, partial=partial, **dict[str, Any](size))
    weights = {g.name: g.uniform().requires_grad_() for g in space.groups(edges=edges)}
    x, y = torch.randn(batch, *data.inputs), torch.arange(batch) % data.n_classes

    def step() -> None:
        cross_entropy(supernet(x, weights), y).backward()  # type: ignore[no-untyped-call]

    return _per_step(step, STEPS) / batch


def _per_step(step: Callable[[], None], number: int) -> float:
    """The median time of a step, the first not counted where there are more."""
    seconds = []
    for _ in range(number):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return median(seconds[1:] or seconds)
