"""The work of one process: networks built from texts and a seed, and their scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from nasight.compute import to_device
from nasight.data import Dataset, batches, prepare
from nasight.errors import RequestError
from nasight.kernels._initial import reinitialize
from nasight.kernels._score_table import Score
from nasight.kernels._scored import Line
from nasight.kernels._scores import NoScore
from nasight.reproducible import generator_for, seeded, torch_threads
from nasight.spaces import Space
from nasight.spaces import load as load_space

BATCH = 16
"""Forms in one piece of work: what a kill can cost each worker."""
Batch = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""((form, text), ...) and the metrics that they lack."""
NOISE = (1, 3, 3)
"""The shape of the noise on which thin networks are scored."""


@dataclass(frozen=True, eq=False)
class ScoreJob:
    """All that a score depends on but the architecture."""

    space: Space | str
    options: tuple[tuple[str, Any], ...]
    size: tuple[tuple[str, int], ...]
    rows: tuple[Score, ...]
    data: tuple[Tensor, Tensor]
    classes: int
    seed: int
    batch: int | None = None
    """Examples for every row, in place of its own number."""
    device: str = "cpu"


def draw_batch(
    dataset: Dataset, rows: Sequence[Score], batch: int | None, resolution: int | None, seed: int
) -> tuple[Tensor, Tensor]:
    """The examples for the row that needs most of them; the others take the first ones."""
    if batch is not None and batch < 2:
        raise RequestError(f"a batch needs at least 2 examples, got {batch}")
    if resolution is not None and resolution < 4:
        raise RequestError(f"the resolution must be at least 4 pixels, got {resolution}")
    wanted = max([batch or row.batch for row in rows if not row.thin], default=2)
    prepared, count = prepare(dataset), len(dataset.train_y)
    chosen = torch.randperm(count, generator=generator_for(seed, "score"))[: min(wanted, count)]
    x, y = dataset.train_x[chosen], dataset.train_y[chosen]
    x, y = next(batches(x, y, size=len(y), mean=prepared.mean, std=prepared.std))
    if resolution is not None and x.dim() == 4 and min(x.shape[2:]) > resolution:
        x = F.adaptive_avg_pool2d(x, resolution)
    return x, y


def score_batch(job: ScoreJob, batch: Batch) -> list[Line]:
    """The scores of some forms, on one thread: so that they are the same on any number of workers, and faster."""
    forms, names = batch
    space = _space(job.space, job.options) if isinstance(job.space, str) else job.space
    rows = [row for row in job.rows if row.name in names]
    with torch_threads(1):
        return [_line(job, space, rows, form, text) for form, text in forms]


@cache
def _space(name: str, options: tuple[tuple[str, Any], ...]) -> Space:
    return load_space(name, **dict(options))


def _line(job: ScoreJob, space: Space, rows: list[Score], form: str, text: str) -> Line:
    arch = space.parse(text)
    line: Line = {"form": form, "architecture": text, "scores": {}, "seconds": {}, "failed": {}}
    unusable = space.usable(arch)
    for row in rows:
        start = time.perf_counter()
        try:
            if unusable is not None:
                raise NoScore(unusable)
            line["scores"][row.name] = _value(job, space, text, row)
        except (NoScore, RequestError, ArithmeticError, LinAlgError) as error:
            line["scores"][row.name], line["failed"][row.name] = row.failed, str(error)
        line["seconds"][row.name] = time.perf_counter() - start
    return line


def _value(job: ScoreJob, space: Space, text: str, row: Score) -> float:
    network, x, y = _network(job, space, text, row)
    assert row.function is not None
    value = float(row.function(network, x, y))
    if not isfinite(value):
        raise NoScore(f"the score is {value}")
    return value


def _network(job: ScoreJob, space: Space, text: str, row: Score) -> tuple[nn.Module, Tensor, Tensor]:
    """A network of its own for every metric, all with the same initial weights, and the examples it is scored on."""
    x, y = job.data
    size, batch = dict(job.size), row.batch if row.thin else job.batch or row.batch
    if row.thin and space.thin_size:
        x = torch.randn(batch, *NOISE, generator=generator_for(job.seed, "noise"))
        y, size = torch.zeros(batch, dtype=torch.int64), {**size, **space.thin_size}
    with seeded(job.seed, "initial weights"):
        network = space.network(space.parse(text), tuple(x.shape[1:]), job.classes, **size)
        network = reinitialize(network, row.init)
    device = torch.device(job.device)
    x, y = to_device((x[:batch], y[:batch]), device)
    return network.to(device, non_blocking=True), x, y
