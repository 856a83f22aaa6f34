"""The loss and the variance of its gradient on a plane through a trained network (Cells, Section 4.2).

s(a, b) = E_i f_i(w* + a w_1 + b w_2), and Var_i(grad f_i) at the same points. A folder holds

run.json         settings, and fingerprints of the network, the directions and the data
history.jsonl    a line for each finished row of the grid; a restart skips them
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nasight.anatomy._landscape_rows import Direction, LandscapeJob, Row, compute_row, fingerprint, finite, make_job
from nasight.anatomy._variance import CHUNK, check_examples
from nasight.compute import is_device, map_resumable, to_device
from nasight.errors import RequestError
from nasight.gradients import Loss
from nasight.reproducible import generator_for
from nasight.runs import RunFolder

BATCH_NORMS = ("kept", "recomputed")
Progress = Callable[[int, int], None]
"""Called with the number of finished rows and of all rows."""


def filter_normalized_directions(
    model: nn.Module, generator: torch.Generator, *, vectors: bool = False
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Two random directions in which every filter is as long as the trained filter (Li et al. 2018).

    A filter is a slice along the first dimension of a weight: the weights of one output. One of norm zero has
    direction zero. Biases and the parameters of batch norms are vectors and are not moved; with `vectors` they are,
    every entry being a filter of its own: it moves by its own size, up or down.

    >>> one, two = filter_normalized_directions(nn.Linear(2, 3), torch.Generator().manual_seed(0))
    >>> sorted(one), two["weight"].shape
    (['weight'], torch.Size([3, 2]))
    """
    return _direction(model, generator, vectors), _direction(model, generator, vectors)


def _direction(model: nn.Module, generator: torch.Generator, vectors: bool) -> dict[str, Tensor]:
    found = {}
    for name, p in model.named_parameters():
        if p.dim() < 2 and not vectors:
            continue
        rows = p.detach().reshape(len(p) if p.dim() else 1, -1)
        noise = to_device(torch.randn(rows.shape, dtype=rows.dtype, generator=generator), rows.device)
        noise *= rows.norm(dim=1, keepdim=True) / noise.norm(dim=1, keepdim=True)
        found[name] = noise.view_as(p)
    return found


@dataclass(frozen=True, eq=False)
class Landscape:
    """`losses[i, j]` (and `variances[i, j]`) at a = grid[j] along the first direction, b = grid[i] along the second.

    What overflowed is infinite.
    """

    grid: np.ndarray[Any, np.dtype[np.float64]]
    losses: np.ndarray[Any, np.dtype[np.float64]]
    variances: np.ndarray[Any, np.dtype[np.float64]] | None
    settings: Mapping[str, Any]

    @property
    def center(self) -> float:
        """The loss of the network itself."""
        return float(self.losses[len(self.grid) // 2, len(self.grid) // 2])

    def to_dict(self) -> dict[str, Any]:
        """For JSON, infinite values as null."""
        shown = {"grid": self.grid.tolist(), "losses": [finite(row) for row in self.losses]}
        variances = None if self.variances is None else [finite(row) for row in self.variances]
        return {**shown, "variances": variances, "settings": dict(self.settings)}


def landscape(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    extent: float = 1.0,
    points: int = 41,
    seed: int = 0,
    directions: tuple[Direction, Direction] | None = None,
    vectors: bool = False,
    batch_norm: str = "kept",
    variance: bool = False,
    loss: Loss | None = None,
    batch: int = 512,
    chunk: int = CHUNK,
    folder: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Landscape:
    """The mean loss of `model` over the examples on points x points places of [-extent, extent]^2.

    Both directions are filter-normalized and follow from the seed, or are given; `vectors` moves biases and batch
    norms too. The network is in evaluation mode; the running statistics of its batch norms are "kept", or
    "recomputed" at each point, as the mean over batches of `batch` examples, at the price of a second pass. With
    `variance`, `gradient_variance` at each point, `chunk` examples at once. Rows are spread over processes, each on
    one thread, so that the numbers do not depend on how many there are; with a `folder` a row that is finished
    is not computed again. The model is left as it is.

    >>> net = nn.Linear(2, 3)
    >>> found = landscape(net, torch.randn(5, 2), torch.tensor([0, 1, 2, 0, 1]), points=5, workers=1)
    >>> found.losses.shape, found.settings["batch_norm"]
    ((5, 5), 'kept')
    """
    check_examples(x, y, min(batch, chunk))
    _check(extent, points, batch_norm)
    if directions is None:
        directions = filter_normalized_directions(model, generator_for(seed, "landscape"), vectors=vectors)
    job = make_job(model, x, y, directions, loss, _grid(extent, points), batch, chunk, batch_norm, variance)
    settings = {
        "extent": extent,
        "points": points,
        "seed": seed,
        "vectors": vectors,
        "batch_norm": batch_norm,
        "variance": variance,
        "batch": batch,
        "chunk": chunk,
        "examples": len(x),
        "network": fingerprint(model.state_dict().values()),
        "directions": fingerprint([job.first, job.second]),
        "data": fingerprint([x, y]),
    }
    run = None
    if folder is not None:
        run = RunFolder.create_or_open(folder, kind="landscape", holds="a landscape", settings=settings)
    with nullcontext() if run is None else run.writing():
        rows = _rows(job, run, executor, workers, progress)
    losses, variances = (np.array([row[key] for row in rows], dtype=float) for key in ("losses", "variances"))
    # None, for infinite, has become NaN.
    losses, variances = np.nan_to_num(losses, nan=math.inf), np.nan_to_num(variances, nan=math.inf)
    return Landscape(np.array(job.grid), losses, variances if variance else None, settings)


def _rows(
    job: LandscapeJob, run: RunFolder | None, executor: Executor | None, workers: int | None, progress: Progress | None
) -> list[Row]:
    done = {} if run is None else _finished(run, job)

    def arrived(row: int, result: Row) -> None:
        done[row] = result
        if run is not None:
            run.append_history(result)
        if progress is not None:
            progress(len(done), len(job.grid))

    if progress is not None and done:
        progress(len(done), len(job.grid))
    todo = range(len(job.grid))
    known = dict(done)
    if is_device(job.x.device):
        workers = 1  # a device is not shared between processes
    return map_resumable(
        partial(compute_row, job), todo, executor=executor, workers=workers, done=known, on_result=arrived
    )


def _finished(run: RunFolder, job: LandscapeJob) -> dict[int, Row]:
    rows = {}
    for row in run.history:
        size = len(job.grid)
        try:
            whole = 0 <= row["row"] < size and len(row["losses"]) == size
            whole = whole and len(row["variances"]) == (size if job.variance else 0)
        except (KeyError, TypeError):
            whole = False
        if not whole:
            raise RequestError(f"{run.path / 'history.jsonl'} is damaged: a line is not a row of {size} points")
        rows[int(row["row"])] = row
    return rows


def _grid(extent: float, points: int) -> tuple[float, ...]:
    """Odd numbers of points, so that the middle one is the network itself, exactly."""
    half = points // 2
    return tuple(extent * i / half for i in range(-half, half + 1))


def _check(extent: float, points: int, batch_norm: str) -> None:
    if not 0 < extent < math.inf:
        raise RequestError(f"the extent of a landscape must be a number above 0, got {extent!r}")
    if points < 3 or points % 2 == 0:
        raise RequestError(f"a landscape needs an odd number of points a side, at least 3, got {points}")
    if batch_norm not in BATCH_NORMS:
        raise RequestError(f"batch norm statistics are {' or '.join(BATCH_NORMS)}, got {batch_norm!r}")
