"""What a find would do with a budget, and the speeds that its plan is made of: measured, printed, nothing kept."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from nasight.compute import choose_device, cores, is_device, led_by_first
from nasight.data import Dataset, prepare, with_label
from nasight.errors import RequestError
from nasight.searching import method_row
from nasight.spaces import Space
from nasight.studies.finding._budget import read_budget, time_text
from nasight.studies.finding._find import data_and_space, default_method, find, search_size
from nasight.studies.finding._plan import Plan, Speed
from nasight.studies.finding._settings import with_test_part

READ = 10
"""Batches that are read to see how fast rows can be had."""
BATCH = 64


class _Ready(Exception):
    """The plan is made."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__()
        self.values = values


@dataclass(frozen=True)
class PlannedFind:
    """A plan, and what was measured for it on this machine."""

    plan: Plan
    speed: Speed
    workers: int
    read: float
    """Seconds to read and augment one row, in this process."""
    shared: int
    """Shared weights of the supernet: ranks send each other four bytes for each of them per step."""
    budget: float
    """Seconds that there are."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The plan as a person reads it."""
        s = self.speed
        return [
            f"Plan for {self.workers} worker{'' if self.workers == 1 else 's'}:",
            *self.plan.lines(),
            f"  in all       {time_text(sum(self.plan.seconds.values())):>12}",
            *self.plan.unused_lines(self.budget),
            "Measured, per process:",
            f"  training     {1e3 * s.train:.3f} ms per row, forward and backward",
            f"  search       {1e3 * s.search:.3f} ms per row, both steps of the supernet",
            f"  score        {1e3 * s.score:.1f} ms per architecture",
            f"  reading      {1e3 * self.read:.4f} ms per row, augmented",
            f"  ranks        {4 * self.shared / 1e6:.2f} MB per step to add up ({self.shared:,} shared weights)",
        ]


@led_by_first
def find_plan(
    data: Any = "digits",
    *,
    budget: str | float | None,
    label: str | None = None,
    task: str | None = None,
    space: str | Space | nn.Module | Callable[[], nn.Module] | None = None,
    method: str | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    data_folder: str | Path | None = None,
    device: str = "auto",
    **asked: Any,
) -> PlannedFind:
    """What `find` would do with this budget; the arguments are its own, and `asked` are all further ones.

    >>> planned = find_plan("digits", budget="10m", workers=1)
    >>> planned.plan.epochs > 0 and planned.speed.train > 0
    True
    """
    if budget is None:
        raise RequestError("a plan needs a budget of time, such as --budget 30m")
    labeled = with_label(data, label, task)
    loaded, found, _, _ = data_and_space(labeled, space, asked.get("target"), data_folder)
    workers = workers or getattr(executor, "workers", None) or (1 if is_device(choose_device(device)) else cores())

    def stop(event: str, values: Mapping[str, Any]) -> None:
        if event == "plan":
            raise _Ready(values)

    here: dict[str, Any] = {
        "space": space,
        "method": method,
        "workers": workers,
        "executor": executor,
        "device": device,
    }
    with tempfile.TemporaryDirectory(prefix="nasight-plan-") as folder:
        try:
            find(loaded, budget=budget, out=Path(folder) / "find", progress=stop, **here, **asked)
        except _Ready as ready:
            plan, speed, seconds = (ready.values[name] for name in ("plan", "speed", "budget"))
        else:
            raise RequestError(f"a budget of {budget!r} has no plan")
    shared = _shared_weights(loaded, found, method, search_size(found, read_budget(budget, None)))
    return PlannedFind(plan, speed, workers, _read_seconds(with_test_part(loaded)), shared, seconds)


def _read_seconds(data: Dataset) -> float:
    loader = prepare(data).loader(batch_size=BATCH, seed=0, stream="read")
    loader.batch(0, 0)
    steps, start = min(READ, loader.steps), time.perf_counter()
    for step in range(steps):
        loader.batch(0, step)
    return (time.perf_counter() - start) / (steps * loader.batch_size)


def _shared_weights(data: Dataset, space: Space, method: str | None, size: dict[str, int]) -> int:
    relaxation = method_row(method or default_method(space)).relaxation
    shape: dict[str, Any] = {**size, "edges": relaxation.edges, "partial": relaxation.partial}
    supernet = space.supernet(data.inputs, data.n_classes, **shape)
    return sum(p.numel() for p in supernet.parameters())
