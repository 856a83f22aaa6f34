"""The costly parts of a report, kept in the run folder: RUN/deep/landscape, RUN/deep/scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from nasight.anatomy import landscape_run
from nasight.errors import RequestError
from nasight.kernels import score
from nasight.runs import RunFolder, read_json
from nasight.searching import Run
from nasight.studies._retrain import sendable_space
from nasight.training import load_trained

METRICS = ("eigen", "naswot", "params")
SAMPLE = 100
EXAMPLES = 256
Note = Callable[[str], Callable[[int, int], None]]
"""Given what begins, gives what is called with how much of it is done and how much there is."""


def deepen(
    run: Run,
    data: Any = None,
    data_folder: str | Path | None = None,
    *,
    points: int = 21,
    note: Note | None = None,
    device: str = "auto",
) -> None:
    """Compute the landscape around the retrained network and the scores of the found cell among random ones.

    A second call resumes what an interrupted one left.
    """
    dataset = run.load_data(data, data_folder=data_folder, may_differ=True)
    began = note or (lambda _: lambda done, total: None)
    architectures = _sampled(run)
    score(
        sendable_space(run),
        METRICS,
        dataset,
        architectures=architectures,
        out=run.path / "deep" / "scores",
        progress=began("architectures scored"),
        device=device,
    )
    network = retrained(run)
    if network is not None:
        place = run.path / "deep" / "landscape"
        part = "test" if dataset.test_y is not None else "train"
        landscape_run(
            network,
            dataset,
            out=place,
            points=points,
            examples=EXAMPLES,
            part=part,
            progress=began("rows of the landscape"),
            device=device,
        )


def _sampled(run: Run) -> list[str]:
    """The found architecture, and random ones that are not it."""
    generator = torch.Generator().manual_seed(0)
    found = run.space.format(run.architecture)
    chosen = {found: None}
    for _ in range(20 * SAMPLE):
        if len(chosen) > SAMPLE:
            break
        arch = run.space.sample(generator)
        if run.space.usable(arch) is None:
            chosen[run.space.format(arch)] = None
    return list(chosen)


def trainings(run: Run) -> list[Path]:
    """Folders of finished trainings of what the run found, in order of their names."""
    return sorted(path.parent for path in run.path.glob("train/*/seed-*/result.json"))


def retrained(run: Run) -> torch.nn.Module | None:
    """The network that `nasight train RUN` left, or nothing."""
    for folder in trainings(run):
        about = RunFolder.open(folder, kind="train").about
        if about.get("architecture") == run.result["architecture"]:
            return load_trained(folder, space=run.space)
    return None


def kept(path: Path) -> dict[str, Any] | None:
    """A result file, if there is one that can be read."""
    try:
        return dict(read_json(path)) if path.exists() else None
    except (RequestError, TypeError, ValueError):
        return None
