"""`nasight train`: train a found (or named) architecture from scratch."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli._shared import DataFolder, Json, option
from nasight.errors import RequestError

if TYPE_CHECKING:
    from nasight.data import Dataset
    from nasight.spaces import Space
    from nasight.training import EpochRow, Summary


@dataclass(frozen=True)
class _Request:
    """What is to be trained, on what, and where it goes."""

    space: Space | str
    arch: str
    data: Dataset
    out: Path


def train(
    run: Annotated[str | None, typer.Argument(help="A finished search: retrain what it found, on its data.")] = None,
    space: Annotated[str | None, option("Without RUN: a space by name, or FILE.py:NAME.")] = None,
    arch: Annotated[str | None, option("Without RUN: the architecture, as its space writes it.")] = None,
    data: Annotated[
        str | None, option("A data set by name, an .npz file or an image folder (default: the run's, else digits).")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Train so often, with seeds from --seed on.", metavar="N")] = 3,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seed_list: Annotated[str | None, option("These seeds instead.", metavar="0,1,2")] = None,
    preset: Annotated[str, typer.Option(help="tiny, small or paper: size, epochs and rates together.")] = "small",
    epochs: Annotated[int | None, option("Epochs of each training.", metavar="N")] = None,
    channels: Annotated[int | None, option("Channels of the first cell.", metavar="N")] = None,
    cells: Annotated[
        int | None, option("Cells (nasbench201, nasbench1shot1: in each of three stages).", metavar="N")
    ] = None,
    width: Annotated[int | None, option("Width of the layers (mlp).", metavar="N")] = None,
    layers: Annotated[int | None, option("Layers (mlp, without RUN).", metavar="N")] = None,
    batch_size: Annotated[int | None, option("Examples a step.", metavar="N")] = None,
    lr: Annotated[float | None, option("Learning rate at the start; it falls along a cosine, epoch by epoch.")] = None,
    lr_min: Annotated[float | None, option("Learning rate where the cosine ends.")] = None,
    weight_decay: Annotated[float | None, option("Weight decay.")] = None,
    clip: Annotated[float | None, option("Largest gradient norm.")] = None,
    augment: Annotated[
        bool | None, option("Random crops and flips, as the data set allows.", "--augment/--no-augment")
    ] = None,
    cutout: Annotated[int | None, option("Side of the hole cut out of images.", metavar="PIXELS")] = None,
    auxiliary: Annotated[
        bool | None, option("A second head that helps training (darts).", "--auxiliary/--no-auxiliary")
    ] = None,
    drop_path: Annotated[float | None, option("Probability of dropping a path at the end (darts).")] = None,
    examples: Annotated[int | None, option("Learn from at most so many examples.", metavar="N")] = None,
    share: Annotated[float | None, option("Learn from a share of the examples instead.", metavar="0..1")] = None,
    validation: Annotated[
        str | None, option("What judges: test, or a share of the training examples.", metavar="test|0..1")
    ] = None,
    out: Annotated[
        str | None, option("Where it goes (default: RUN/train, else runs/SPACE-train-DIGEST).", metavar="FOLDER")
    ] = None,
    workers: Annotated[int | None, option("Seeds trained at once (default: as many as cores).", metavar="N")] = None,
    threads: Annotated[int | None, option("Threads of each training (default: all, divided).", metavar="N")] = None,
    data_folder: DataFolder = None,
    as_json: Json = False,
) -> None:
    """Train a found (or named) architecture from scratch, with several seeds.

    The same command goes on with what a kill left unfinished, and reads what is finished.

    Example: nasight train runs/a --seeds 3 --preset tiny

    Example: nasight train --space darts --arch DARTS_V2 --data cifar-10 --preset paper --out runs/v2
    """
    from nasight.training import settings_for, train_seeds

    request = _request(run, space, arch, data, layers, out, data_folder)
    given = {
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "lr_min": lr_min,
        "weight_decay": weight_decay,
        "clip": clip,
        "augment": augment,
        "cutout": cutout,
        "auxiliary": auxiliary,
        "drop_path": drop_path,
        "examples": examples,
        "share": share,
        "validation": validation,
    }
    size = {"channels": channels, "cells": cells, "width": width}
    settings: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    settings["size"] = {key: value for key, value in size.items() if value is not None}
    numbers = _seeds(seeds, seed, seed_list)
    total = settings_for(request.space, preset, **settings).epochs
    try:
        with _progress(numbers, total) as progress:
            summary = train_seeds(
                request.space,
                request.arch,
                request.data,
                seeds=numbers,
                preset=preset,
                out=request.out,
                workers=workers,
                threads=threads,
                progress=progress,
                **settings,
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped; the same command goes on with what is in {request.out}", err=True)
        raise
    typer.echo(json.dumps(_object(summary)) if as_json else _text(summary))


def _seeds(count: int, first: int, listed: str | None) -> list[int]:
    if listed is None:
        if count < 1:
            raise RequestError(f"--seeds must be at least 1, got {count}")
        return list(range(first, first + count))
    try:
        return [int(part) for part in listed.split(",")]
    except ValueError:
        raise RequestError(f"--seed-list must be whole numbers joined by commas, got {listed!r}") from None


def _request(
    run: str | None,
    space: str | None,
    arch: str | None,
    data: str | None,
    layers: int | None,
    out: str | None,
    data_folder: str | None,
) -> _Request:
    from nasight import spaces
    from nasight.data import load

    if run is not None:
        if space is not None or arch is not None or layers is not None:
            raise RequestError(f"give the run {run} or --space and --arch, not both")
        return _from_run(Path(run), data, out, data_folder)
    if space is None or arch is None:
        missing = "a RUN, or --space and --arch" if space is arch else "--space" if space is None else "--arch"
        raise RequestError(f"there is nothing to train: {missing} is missing")
    dataset = load(data or "digits", folder=data_folder)
    place = Path(out) if out else Path("runs") / _default_name(space, arch, dataset.fingerprint)
    if ".py:" in space:
        return _Request(space, arch, dataset, place)
    options = {} if layers is None else {"layers": layers}
    return _Request(spaces.load(space, **options), arch, dataset, place)


def _from_run(path: Path, data: str | None, out: str | None, data_folder: str | None) -> _Request:
    from nasight import spaces
    from nasight.data import load
    from nasight.runs import RunFolder

    folder = RunFolder.open(path, kind="search")
    about, result = folder.about, folder.result
    if result is None:
        raise RequestError(f"the search in {path} is not finished; go on with: nasight search --resume {path}")
    try:
        name, text, settings = str(result["space"]), str(result["architecture"]), about["settings"]
        words, options, fingerprint = str(settings["data"]), settings["space_options"], about["data"]["fingerprint"]
    except (KeyError, TypeError) as error:
        raise RequestError(f"the search in {path} is damaged: its files lack {error}") from None
    if data is None:
        try:
            dataset = load(words, folder=data_folder)
        except RequestError as error:
            raise RequestError(f"the data of {path} cannot be loaded again ({error}); name it with --data") from error
        if dataset.fingerprint != fingerprint:
            raise RequestError(
                f"{words!r} is not what {path} was searched on: its content has changed; if that is meant, "
                f"say --data {words}"
            )
    else:
        dataset = load(data, folder=data_folder)
    found: Space | str = name if ".py:" in name else spaces.load(name, **options)
    return _Request(found, text, dataset, Path(out) if out else path / "train")


def _default_name(space: str, arch: str, fingerprint: str) -> str:
    digest = hashlib.sha256(f"{space}\n{arch}\n{fingerprint}".encode()).hexdigest()[:8]
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in space.rsplit("/", 1)[-1])
    return f"{name}-train-{digest}"


def _object(summary: Summary) -> dict[str, Any]:
    keys = ("architecture", "space", "data", "judged_by", "seeds", "accuracy", "mean", "spread")
    values = summary.to_dict()
    return {key: values[key] for key in (*keys, "parameters", "epochs", "seconds", "out")}


def _text(summary: Summary) -> str:
    several = len(summary.seeds) > 1
    spread = f" ± {summary.spread:.2f}" if summary.spread is not None else ""
    lines = [f"{summary.architecture} on {summary.data}, {summary.epochs} epochs", ""]
    lines += [f"  seed {seed:<7} {value:.2f} %" for seed, value in zip(summary.seeds, summary.accuracy, strict=True)]
    lines += [
        f"  accuracy     {summary.mean:.2f}{spread} % over {len(summary.seeds)} seed{'s' if several else ''}, "
        f"on {summary.judged_by}",
        f"  parameters   {summary.parameters:,}",
        f"  seconds      {summary.seconds:.1f}" + (", summed over the seeds" if several else ""),
        f"  weights      {summary.out}",
    ]
    return "\n".join(lines)


@contextmanager
def _progress(seeds: list[int], epochs: int) -> Iterator[Callable[[int, EpochRow], None]]:
    """A bar a seed with the time left on a terminal, a line an epoch otherwise; both on standard error."""
    if not sys.stderr.isatty():

        def line(seed: int, row: EpochRow) -> None:
            typer.echo(
                f"seed {seed}, epoch {row.epoch}/{epochs}: train {row.train_accuracy:.1f} %, "
                f"test {row.test_accuracy:.1f} %, {row.seconds:.1f} s",
                err=True,
            )

        yield line
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    accuracy = TextColumn("{task.fields[accuracy]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), accuracy)
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        tasks = {seed: bars.add_task(f"seed {seed}", total=epochs, accuracy="") for seed in seeds}

        def draw(seed: int, row: EpochRow) -> None:
            bars.update(tasks[seed], completed=row.epoch, accuracy=f"{row.test_accuracy:.1f} %")

        yield draw
