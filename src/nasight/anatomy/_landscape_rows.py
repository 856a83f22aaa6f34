"""One row of a landscape: what it depends on, and its work in whatever process it lands."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from nasight.anatomy._variance import CROSS_ENTROPY, gradient_variance
from nasight.compute import double, to_host
from nasight.errors import RequestError
from nasight.gradients import Loss, logits_of
from nasight.reproducible import torch_threads

Direction = Mapping[str, Tensor]
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class LandscapeJob:
    """All that a row depends on but its place. The model is the job's own."""

    model: nn.Module
    names: tuple[str, ...]
    start: Tensor
    first: Tensor
    second: Tensor
    """Moved parameters and both directions, each as one vector: a step is one addition."""
    x: Tensor
    y: Tensor
    loss: Loss
    grid: tuple[float, ...]
    batch: int
    chunk: int
    recompute: bool
    variance: bool


def make_job(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    directions: tuple[Direction, Direction],
    loss: Loss | None,
    grid: tuple[float, ...],
    batch: int,
    chunk: int,
    batch_norm: str,
    variance: bool,
) -> LandscapeJob:
    own = copy.deepcopy(model).eval()
    named = dict(own.named_parameters())
    for direction in directions:
        for name, values in direction.items():
            if name not in named or named[name].shape != values.shape:
                raise RequestError(
                    f"a direction has {name!r} of shape {tuple(values.shape)}, which the network has not"
                )
    names = tuple(name for name in named if any(name in direction for direction in directions))
    if not names:
        raise RequestError("the directions move no parameter of the network")

    def flat(values: Direction) -> Tensor:
        parts = [values.get(name, torch.zeros_like(named[name])).detach().flatten() for name in names]
        return torch.cat(parts).clone()

    vectors = flat(named), flat(directions[0]), flat(directions[1])
    recompute = batch_norm == "recomputed"
    return LandscapeJob(own, names, *vectors, x, y, loss or CROSS_ENTROPY, grid, batch, chunk, recompute, variance)


def compute_row(job: LandscapeJob, row: int) -> Row:
    """One row of the grid, on one thread. Only the vector behind the parameters changes from point to point."""
    here = job.start + job.grid[row] * job.second
    weights = here.clone()
    named, place = dict(job.model.named_parameters()), 0
    for name in job.names:
        p = named[name]
        p.data = weights[place : place + p.numel()].view_as(p)
        place += p.numel()
    losses, variances = [], []
    with torch_threads(1):
        for a in job.grid:
            with torch.no_grad():
                torch.add(here, job.first, alpha=a, out=weights)
                losses.append(_loss(job))
            if job.variance:
                variances.append(gradient_variance(job.model, job.x, job.y, loss=job.loss, chunk=job.chunk))
    return {"row": row, "losses": finite(losses), "variances": finite(variances)}


def _loss(job: LandscapeJob) -> float:
    if job.recompute:
        _recompute(job)
    total = 0.0
    for x, y in zip(torch.split(job.x, job.batch), torch.split(job.y, job.batch), strict=True):
        total += float(double(job.loss(logits_of(job.model(x)), y)).sum())
    return total / len(job.x)


def _recompute(job: LandscapeJob) -> None:
    norms = [part for part in job.model.modules() if isinstance(part, _BatchNorm) and part.track_running_stats]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # torch's word for a plain mean over the batches
        norm.train()
    for x in torch.split(job.x, job.batch):
        job.model(x)
    for norm in norms:
        norm.eval()


def finite(values: Iterable[float]) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def fingerprint(tensors: Iterable[Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(to_host(tensor.detach()).contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
