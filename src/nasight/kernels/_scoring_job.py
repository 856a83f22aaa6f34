"""The work of one process: networks built from texts and a seed, and their scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
from nasight.kernels._te_nas_measures import crops
from nasight.reproducible import generator_for, seeded, torch_threads
from nasight.spaces import Space
from nasight.spaces import load as load_space

BATCH = 16
"""Forms in one piece of work: what a kill can cost each worker."""
Batch = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""((form, text), ...) and the metrics that they lack."""


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
    crops: Tensor | None = None
    """What thin networks are scored on."""
    sized: bool = False
    """Whether the size is another than the space's own."""
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


def draw_crops(dataset: Dataset, rows: Sequence[Score], seed: int) -> Tensor | None:
    """Crops of as many images as the row that needs most of them asks for; rows that are no images as they are."""
    number = max([row.batch for row in rows if row.thin], default=0)
    if not number:
        return None
    prepared, count = prepare(dataset), len(dataset.train_y)
    generator = generator_for(seed, "crops")
    chosen = torch.randperm(count, generator=generator)[:number]
    x, y = dataset.train_x[chosen], dataset.train_y[chosen]
    x, _ = next(batches(x, y, size=len(y), mean=prepared.mean, std=prepared.std))
    return crops(x, number, generator) if x.dim() == 4 else x


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
    line["versions"] = {row.name: row.version for row in rows if row.version > 1}
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
    arch, size, batch = space.parse(text), dict(job.size), job.batch or row.batch
    build: Callable[..., nn.Module] = space.network
    if row.thin:
        assert job.crops is not None
        x, batch, build = job.crops, row.batch, space.thin_network
        y = torch.zeros(len(x), dtype=torch.int64)
    elif row.small and not job.sized:
        size.update(space.prune_size)
    with seeded(job.seed, "initial weights"):
        network = reinitialize(build(arch, tuple(x.shape[1:]), job.classes, **size), row.init)
    device = torch.device(job.device)
    x, y = to_device((x[:batch], y[:batch]), device)
    return network.to(device, non_blocking=True), x, y
