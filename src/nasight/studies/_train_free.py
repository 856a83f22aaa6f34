"""A search that trains no supernet: score a sample, keep the best K, pick by a short training of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import nn

from nasight.compute import choose_device, resumed_device
from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.kernels import eigen_search
from nasight.reproducible import torch_threads
from nasight.runs import DataRecord, RunFolder, is_code
from nasight.searching import TRAIN_FREE, Progress, Run, checked, chosen_space
from nasight.spaces import SPACES, Space
from nasight.training import TrainSettings, settings_for, train

TRAIN_FREE_METHODS = ("eigen", "knas", "naswot", "te-nas", "nasi")
"""Methods of `nasight.search` that score architectures without training."""
# Preset -> architectures scored, and the short training of each one kept.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"candidates": 50, "epochs": 2, "examples": 1_200},
    "small": {"candidates": 1_000, "epochs": 4, "examples": 8_000},
    "medium": {"candidates": 1_000, "epochs": 8, "examples": None},
    "paper": {"candidates": 1_000, "epochs": 12, "examples": None},
}
TAKEN = ("device", "candidates", "epochs", "examples", "validation", "batch_size", "lr", "augment", "resolution")
TOP = 20
VALIDATION = 0.2


def train_free_search(
    space: str | Space | nn.Module | Callable[[], nn.Module],
    method: str,
    data: Any = "digits",
    *,
    out: str | Path,
    preset: str = "small",
    data_folder: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Find an architecture by a score without training, and a short training of the best few.

    Parameters
    ----------
    space, data, out, preset, data_folder, overwrite, progress : as in `nasight.search`.
    method : the score, one of `TRAIN_FREE_METHODS`.
    settings : `candidates` (scored), `top` (trained), `epochs`, `examples`, `validation`, `batch_size`, `lr`,
        `augment`, `resolution`, `size`, `seed`, `threads`, `device` and the options of the space.
    """
    if preset not in PRESETS:
        raise RequestError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    given = {key: value for key, value in settings.items() if value is not None}
    found, name, options = chosen_space(space, given.pop("space_options", None), none=given.pop("none", None))
    top, size = given.pop("top", TOP), given.pop("size", {})
    seed, threads = given.pop("seed", 0), given.pop("threads", None)
    unknown = [key for key in given if key not in TAKEN]
    if unknown:
        raise RequestError(f"method {method!r} trains no supernet and has no setting {unknown[0]!r}")
    if top < 1:
        raise RequestError(f"--top must be at least 1, got {top}")
    values = {**PRESETS[preset], "validation": VALIDATION, **given}
    short = _short_training(found, size, values)
    dataset = load_data(data, folder=data_folder)
    resolved = checked(
        {
            "space": name,
            "space_options": options,
            "size": short.size,
            "method": method,
            "objective": TRAIN_FREE,
            "data": data if isinstance(data, str) else dataset.origin or dataset.name,
            "preset": preset,
            "schedule_epochs": short.epochs,
            "warmup": 0,
            "candidates": values["candidates"],
            "resolution": values.get("resolution"),
            "seed": seed,
            "device": str(choose_device(values.get("device", "auto"))),
            "threads": threads or torch.get_num_threads(),
            "validation": short.validation,
            **{key: getattr(short, key) for key in ("epochs", "examples", "batch_size", "lr", "lr_min", "augment")},
        }
    )
    about = {
        "settings": resolved.model_dump(),
        "trainfree": {"train": short.model_dump(), "top": top},
        "data": DataRecord.of(dataset).to_dict(),
    }
    folder = RunFolder.create(out, kind="search", about=about, overwrite=overwrite, code=[name])
    run = Run(folder.path, space=name if is_code(name) else found)
    # The folder that was made holds the lock.
    run.folder = folder
    return _search(run, dataset, progress or Progress(), resolved.device)


def resume_train_free(
    run: Run,
    *,
    data: Any = None,
    data_folder: str | Path | None = None,
    progress: Progress | None = None,
    device: str | None = None,
) -> Run:
    """Resume an interrupted search without training, on its device or another; a finished one is returned as it is."""
    if run.finished:
        return run
    chosen, note = resumed_device(run.settings.device, device)
    dataset, told = run.load_data(data, data_folder=data_folder), progress or Progress()
    if note is not None:
        told.note(note)
    return _search(run, dataset, told, chosen)


def _short_training(space: Space, size: dict[str, int], values: dict[str, Any]) -> TrainSettings:
    keys = ("epochs", "examples", "batch_size", "lr", "augment", "validation")
    return settings_for(space, "tiny", size=size, **{k: values[k] for k in keys if values.get(k) is not None})


def _search(run: Run, dataset: Dataset, progress: Progress, device: str) -> Run:
    try:
        with run.folder.writing(), torch_threads(run.settings.threads):
            run.folder.write_result(_result(run, dataset, progress, device))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; resume with: nasight search --resume {quote(str(run.path))}") from None
    finally:
        progress.close()
    return run


def _result(run: Run, dataset: Dataset, progress: Progress, device: str) -> dict[str, Any]:
    settings, plan, start = run.settings, run.folder.about["trainfree"], time.monotonic()

    def evaluate(texts: list[str]) -> list[float]:
        found = []
        for i, text in enumerate(texts):
            place = run.path / "candidates" / f"{i:03d}"
            outcome = train(
                run.space,
                text,
                dataset,
                preset="tiny",
                seed=settings.seed,
                out=place,
                device=device,
                **plan["train"],
            )
            progress.note(
                f"{i + 1} of {len(texts)} trained: {dataset.task.units.text(outcome.accuracy, digits=1)} for {text}"
            )
            found.append(outcome.accuracy)
        return found

    shrunk: dict[str, Any] = {} if settings.resolution is None else {"resolution": settings.resolution}
    sent = run.sendable_space
    named = isinstance(sent, str) or settings.space in SPACES
    found = eigen_search(
        sent if isinstance(sent, str) else settings.space if named else run.space,
        dataset,
        evaluate,
        metric=settings.method,
        sample=settings.candidates,
        top=plan["top"],
        seed=settings.seed,
        out=run.path / "scores",
        progress=lambda done, total: progress.count("forms scored", done, total),
        space_options=settings.space_options if named else None,
        device=device,
        **shrunk,
    )
    return {
        "run": str(run.path),
        "space": settings.space,
        "method": settings.method,
        "objective": TRAIN_FREE,
        "data": settings.data,
        "seed": settings.seed,
        "epochs": settings.epochs,
        "architecture": found.architecture,
        "accuracy": found.accuracy,
        **dataset.task.units.kept(),
        "unusable": None,
        "entropy": None,
        "seconds": time.monotonic() - start,
        "scored": found.scored,
        "forms": found.forms,
        "candidates": found.to_dict()["candidates"],
    }
