"""`nasight search` with a method that does not train a supernet: score a sample, keep k, pick by validation."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import typer

from nasight.errors import RequestError

METHODS = ("eigen", "knas", "naswot", "te-nas", "nasi")
OBJECTIVE = "train-free"
# Preset -> architectures scored, and the short training of each one kept.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"candidates": 50, "epochs": 2, "examples": 1_200},
    "small": {"candidates": 1_000, "epochs": 4, "examples": 8_000},
    "paper": {"candidates": 1_000, "epochs": 12, "examples": None},
}
TOP = 20
VALIDATION = 0.2


def resumes(folder: str) -> bool:
    """Whether this is the folder of such a search."""
    from nasight.runs import RunFolder

    return bool(RunFolder.open(folder, kind="search").about.get("settings", {}).get("objective") == OBJECTIVE)


def begin(
    space: str,
    method: str,
    data: str,
    *,
    out: str,
    preset: str,
    seed: int,
    top: int | None,
    overwrite: bool,
    data_folder: str | None,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """A new search; its result."""
    from nasight.data import load
    from nasight.runs import RunFolder
    from nasight.spaces import load as load_space

    if preset not in PRESETS:
        raise RequestError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    given = {key: value for key, value in settings.items() if value is not None}
    none = given.pop("none", None)
    options = given.pop("space_options", {})
    if space == "nasbench201":
        options = {**options, "none": bool(none)}
    size, threads = given.pop("size", {}), given.pop("threads", None)
    values = {**PRESETS[preset], "validation": VALIDATION, **given}
    known = ("candidates", "epochs", "examples", "validation", "batch_size", "lr", "augment", "resolution")
    unknown = [key for key in values if key not in known]
    if unknown:
        raise RequestError(f"method {method!r} trains no supernet and has no setting {unknown[0]!r}")
    if top is not None and top < 1:
        raise RequestError(f"--top must be at least 1, got {top}")
    where, dataset = load_space(space, **options), load(data, folder=data_folder)
    about = _about(where, space, options, method, data, preset, seed, size, values, threads)
    about["trainfree"]["top"] = top or TOP
    about["data"] = {
        "name": dataset.name,
        "fingerprint": dataset.fingerprint,
        "inputs": list(dataset.inputs),
        "classes": list(dataset.classes),
    }
    folder = RunFolder.create(out, kind="search", about=about, overwrite=overwrite)
    return go_on(str(folder.path), data_folder=data_folder)


def _about(
    where: Any,
    space: str,
    options: dict[str, Any],
    method: str,
    data: str,
    preset: str,
    seed: int,
    size: dict[str, int],
    values: dict[str, Any],
    threads: int | None,
) -> dict[str, Any]:
    """Settings that a `Run` can read, and those of the two stages; wrong ones are refused here."""
    import torch

    from nasight.search._settings import checked
    from nasight.training import settings_for

    keys = ("epochs", "examples", "batch_size", "lr", "augment", "validation")
    train = settings_for(where, "tiny", size=size, **{k: values[k] for k in keys if values.get(k) is not None})
    settings = checked(
        {
            "space": space,
            "space_options": options,
            "size": train.size,
            "method": method,
            "objective": OBJECTIVE,
            "data": data,
            "preset": preset,
            "schedule_epochs": train.epochs,
            "warmup": 0,
            "candidates": values["candidates"],
            "resolution": values.get("resolution"),
            "seed": seed,
            "threads": threads or torch.get_num_threads(),
            **{key: getattr(train, key) for key in ("epochs", "examples", "batch_size", "lr", "lr_min", "augment")},
            "validation": train.validation,
        }
    )
    return {"settings": settings.model_dump(), "trainfree": {"train": train.model_dump()}}


def go_on(path: str, *, data_folder: str | None = None) -> dict[str, Any]:
    """Begin or go on with the search of this folder; its result."""
    try:
        return _go_on(path, data_folder)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; go on with: nasight search --resume {path}") from None


def _go_on(path: str, data_folder: str | None) -> dict[str, Any]:
    from nasight.cli._shared import counting
    from nasight.data import load
    from nasight.kernels import eigen_search
    from nasight.reproducible import torch_threads
    from nasight.runs import RunFolder
    from nasight.spaces import load as load_space
    from nasight.training import train

    folder = RunFolder.open(path, kind="search")
    if folder.result is not None:
        return folder.result
    about = folder.about
    settings, plan = about["settings"], about["trainfree"]
    dataset = load(settings["data"], folder=data_folder)
    if dataset.fingerprint != about["data"]["fingerprint"]:
        raise RequestError(f"{path} was searched on other data than this {settings['data']!r}")
    where = load_space(settings["space"], **settings["space_options"])

    def evaluate(texts: list[str]) -> list[float]:
        found = []
        for i, text in enumerate(texts):
            place = folder.path / "candidates" / f"{i:03d}"
            outcome = train(where, text, dataset, preset="tiny", seed=settings["seed"], out=place, **plan["train"])
            typer.echo(f"{i + 1} of {len(texts)} trained: {outcome.accuracy:.1f} % for {text}", err=True)
            found.append(outcome.accuracy)
        return found

    start = time.monotonic()
    shrunk = {} if settings["resolution"] is None else {"resolution": settings["resolution"]}
    with (
        folder.writing(),
        torch_threads(settings["threads"]),
        counting("scored", "forms scored", transient=True) as report,
    ):
        found = eigen_search(
            settings["space"],
            settings["data"],
            evaluate,
            metric=settings["method"],
            sample=settings["candidates"],
            top=plan["top"],
            seed=settings["seed"],
            out=folder.path / "scores",
            progress=report,
            space_options=settings["space_options"],
            data_folder=data_folder,
            **shrunk,
        )
        folder.write_result(
            {
                "run": str(folder.path),
                "space": settings["space"],
                "method": settings["method"],
                "objective": OBJECTIVE,
                "data": settings["data"],
                "seed": settings["seed"],
                "epochs": settings["epochs"],
                "architecture": found.architecture,
                "accuracy": found.accuracy,
                "unusable": None,
                "entropy": None,
                "seconds": time.monotonic() - start,
                "scored": found.scored,
                "forms": found.forms,
                "candidates": found.to_dict()["candidates"],
            }
        )
    assert folder.result is not None
    return folder.result


def say(result: dict[str, Any], *, as_json: bool) -> None:
    """The result as JSON or in words."""
    if as_json:
        typer.echo(json.dumps(result))
        return
    first = result["candidates"][0]
    lines = [
        f"{result['method']} on {result['space']}, {result['data']}: {result['scored']} architectures scored "
        f"({result['forms']} forms), {len(result['candidates'])} trained for {result['epochs']} epochs, "
        f"{result['seconds']:.0f} s",
        "",
        f"  found        {result['architecture']}",
        f"  accuracy     {result['accuracy']:.2f} % on held-out data after its short training",
        f"  best score   {first['architecture']}  ({first['accuracy']:.2f} %)",
        f"  run          {result['run']}",
        "",
        f"Retrain it from scratch: nasight train {Path(result['run'])} --seeds 3",
    ]
    typer.echo("\n".join(lines))
