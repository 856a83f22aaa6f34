"""All figures of the landscape around one trained network, in one folder.

run.json, history.jsonl   see `_landscape`
result.json               the grid, losses, variances, the Hessian's spectrum, and what they were taken on
"""

from __future__ import annotations

import copy
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nasight.anatomy._hessian import HessianSpectrum, hessian_spectrum
from nasight.anatomy._landscape import Landscape, Progress, landscape
from nasight.compute import choose_device, is_device, to_device
from nasight.data import Dataset, load, prepare, split_indices
from nasight.errors import RequestError
from nasight.reproducible import generator_for, torch_threads
from nasight.runs import RunFolder

PARTS = ("test", "train")


@dataclass(frozen=True, eq=False)
class LandscapeRun:
    """A landscape, and the curvature at its center where it was asked for."""

    landscape: Landscape
    hessian: HessianSpectrum | None
    data: str
    part: str
    out: str

    def to_dict(self) -> dict[str, Any]:
        hessian = None if self.hessian is None else self.hessian.to_dict()
        return {**self.landscape.to_dict(), "hessian": hessian, "data": self.data, "part": self.part}

    def summary(self) -> dict[str, Any]:
        """The figures without the grid: losses and variances at the center and at their medians, and the curvature."""
        shown: dict[str, Any] = {"loss": self.landscape.center, "median_loss": _median(self.landscape.losses)}
        variances = self.landscape.variances
        if variances is not None:
            middle = len(variances) // 2
            shown |= {"variance": _number(variances[middle, middle]), "median_variance": _median(variances)}
        if self.hessian is not None:
            found = self.hessian
            shown |= {"top_eigenvalue": found.largest, "smallest_eigenvalue": found.smallest}
            shown |= {"trace": found.trace, "trace_error": found.trace_error, "parameters": found.parameters}
        examples = self.landscape.settings["examples"]
        return {**shown, "examples": examples, "data": self.data, "part": self.part, "out": self.out}


def landscape_run(
    model: nn.Module,
    data: Any,
    *,
    out: str | Path,
    part: str = "test",
    examples: int = 512,
    seed: int = 0,
    hessian: bool = True,
    probes: int = 32,
    variance: bool = True,
    data_folder: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    device: str = "auto",
    **settings: Any,
) -> LandscapeRun:
    """Loss contour, variance map, top eigenvalue and trace around a trained network, kept in the folder `out`.

    They are taken on a stratified random choice of `examples` rows of a part of the data (all of them where there are
    fewer), normalized as in training. `settings` are those of `landscape`. The same call resumes what a killed one
    left; finished, it is read. On a `device` other than the CPU all points are computed there, in this process.
    """
    dataset = load(data, folder=data_folder).with_classes("a landscape")
    chosen = choose_device(device)
    x, y = to_device(_examples(dataset, part, examples, seed), chosen)
    model = model if not is_device(chosen) else copy.deepcopy(model).to(chosen)
    found = landscape(
        model,
        x,
        y,
        seed=seed,
        variance=variance,
        folder=out,
        executor=executor,
        workers=workers,
        progress=progress,
        **settings,
    )
    folder = RunFolder.open(out, kind="landscape")
    with folder.writing():
        spectrum = _spectrum(folder, model, x, y, settings, seed, probes) if hessian else None
        run = LandscapeRun(found, spectrum, dataset.name, part, str(out))
        folder.write_result(run.to_dict())
    return run


def _spectrum(
    folder: RunFolder, model: nn.Module, x: Tensor, y: Tensor, settings: dict[str, Any], seed: int, probes: int
) -> HessianSpectrum:
    before = folder.result or {}
    try:
        known = HessianSpectrum(**before["hessian"]) if before.get("hessian") else None
    except TypeError as error:
        raise RequestError(f"{folder.path}/result.json is damaged: {error}") from error
    if known is not None and known.probes == probes:
        return known
    generator = generator_for(seed, "hessian")
    with torch_threads(1):
        return hessian_spectrum(model, x, y, generator=generator, loss=settings.get("loss"), probes=probes)


def _examples(dataset: Dataset, part: str, examples: int, seed: int) -> tuple[Tensor, Tensor]:
    if part not in PARTS:
        raise RequestError(f"a landscape is taken on the part {' or '.join(PARTS)}, got {part!r}")
    y = dataset.train_y if part == "train" else dataset.test_y
    if y is None:
        raise RequestError(f"data set {dataset.name!r} has no test part; use the part train")
    if examples < 1:
        raise RequestError(f"a landscape needs at least 1 example, got {examples}")
    rows = torch.arange(len(y))
    if examples < len(y):
        (rows,) = split_indices(y, [examples], generator_for(seed, "landscape examples"))
    return next(prepare(dataset).batches(part, size=len(rows), rows=rows))


def _median(values: Any) -> float | None:
    return _number(np.median(values))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
