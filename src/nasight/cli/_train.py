"""`nasight train`: train a found (or named) architecture from scratch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli._shared import (
    DATA,
    Cells,
    Channels,
    Cluster,
    DataFolder,
    Device,
    Fit,
    Json,
    Layers,
    NoAugment,
    Strict,
    Width,
    choice,
    epochs_text,
    examples,
    given,
    multiplies_line,
    only_with_resume,
    option,
    read_data,
    resumable,
    rows_asked,
    setting,
)
from nasight.errors import RequestError
from nasight.options import LENGTH, MACHINE, OUTPUT, SIZE, WHAT, SearchOptions, TrainOptions

if TYPE_CHECKING:
    from nasight.data import Units
    from nasight.studies import Trainable
    from nasight.training import EpochRow, Summary

EXAMPLES = examples(
    "nasight train runs/a --seeds 3 --preset tiny",
    "nasight train runs/find --max-params 200k",
    "nasight train --resume runs/a/train/tiny/seed-0 --lr 0.01",
    "nasight train --space darts --arch DARTS_V2 --data cifar-10 --preset paper --out runs/v2",
)


def train(
    context: typer.Context,
    run: Annotated[
        str | None,
        typer.Argument(help="A finished search or find: train what it found, on its data or other --data."),
    ] = None,
    space: Annotated[
        str | None,
        option("Without RUN: a space by name, or FILE.py:NAME; with RUN: the code it was made with.", group=WHAT),
    ] = None,
    arch: Annotated[str | None, option("Without RUN: the architecture, as its space writes it.", group=WHAT)] = None,
    data: Annotated[
        str | None,
        option(f"{DATA[:-1]} (default: the run's, else digits).", group=WHAT),
    ] = None,
    strict: Strict = False,
    label: Annotated[str | None, setting(TrainOptions, "label")] = None,
    task: Annotated[str | None, setting(TrainOptions, "task")] = None,
    preset: Annotated[
        str | None,
        option(
            "tiny, small or paper (darts: imagenet and imagenet-darts too): size, epochs and learning rates together "
            "(default: small; of a find its target, or as the find trained it).",
            group=LENGTH,
        ),
    ] = None,
    seeds: Annotated[int, choice("Train this many times, with seeds from --seed on.", metavar="N", group=LENGTH)] = 3,
    epochs: Annotated[int | None, setting(TrainOptions, "epochs")] = None,
    examples: Annotated[str | None, setting(TrainOptions, "examples")] = None,
    share: Annotated[float | None, setting(TrainOptions, "share")] = None,
    validation: Annotated[str | None, setting(TrainOptions, "validation")] = None,
    channels: Channels = None,
    cells: Cells = None,
    width: Width = None,
    layers: Layers = None,
    resolution: Annotated[
        int | None,
        option(
            "Bring images to this many pixels per side (default: as they are; photos, preset imagenet: 224).",
            metavar="N",
            group=SIZE,
        ),
    ] = None,
    fit: Fit = None,
    batch_size: Annotated[int | None, setting(TrainOptions, "batch_size")] = None,
    lr: Annotated[float | None, setting(TrainOptions, "lr")] = None,
    lr_min: Annotated[float | None, setting(TrainOptions, "lr_min")] = None,
    schedule: Annotated[str | None, setting(TrainOptions, "schedule")] = None,
    lr_warmup: Annotated[int | None, setting(TrainOptions, "lr_warmup")] = None,
    weight_decay: Annotated[float | None, setting(TrainOptions, "weight_decay")] = None,
    label_smoothing: Annotated[float | None, setting(TrainOptions, "label_smoothing")] = None,
    clip: Annotated[float | None, setting(TrainOptions, "clip")] = None,
    augment: Annotated[str | None, setting(TrainOptions, "augment")] = None,
    no_augment: NoAugment = False,
    cutout: Annotated[int | None, setting(TrainOptions, "cutout")] = None,
    class_weights: Annotated[str | None, setting(TrainOptions, "class_weights")] = None,
    metric: Annotated[str | None, setting(TrainOptions, "metric")] = None,
    auxiliary: Annotated[bool | None, setting(TrainOptions, "auxiliary", "--auxiliary/--no-auxiliary")] = None,
    drop_path: Annotated[float | None, setting(TrainOptions, "drop_path")] = None,
    max_params: Annotated[
        str | None,
        option("Of a find: the best of its race with at most this many parameters.", metavar="300k", group=WHAT),
    ] = None,
    max_latency: Annotated[
        str | None,
        option("Of a find: the best of its race within MS milliseconds per example.", metavar="MS", group=WHAT),
    ] = None,
    seed: Annotated[int, choice("The first seed.", group=MACHINE)] = 0,
    seed_list: Annotated[str | None, option("These seeds instead.", metavar="0,1,2", group=MACHINE)] = None,
    workers: Annotated[
        int | None, option("Seeds trained at once (default: as many as cores).", metavar="N", group=MACHINE)
    ] = None,
    device: Device = "auto",
    precision: Annotated[str | None, setting(TrainOptions, "precision")] = None,
    threads: Annotated[
        int | None,
        option(
            "Threads of each training (default: all, divided); 1 is often faster for small networks, or beside other "
            "programs.",
            metavar="N",
            group=MACHINE,
        ),
    ] = None,
    slices: Annotated[int | None, setting(SearchOptions, "slices")] = None,
    cluster: Cluster = None,
    data_folder: DataFolder = None,
    out: Annotated[
        str | None,
        option(
            "Where it goes (default: RUN/train, on other data RUN/train/DATA-DIGEST; else runs/SPACE-train-DIGEST).",
            metavar="FOLDER",
            group=OUTPUT,
        ),
    ] = None,
    resume: Annotated[
        str | None,
        option("Resume one training, a seed-N; with --lr, one that diverged.", metavar="FOLDER", group=OUTPUT),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a found (or named) architecture from scratch, with several seeds.

    Run the same command again to resume an interrupted training; finished seeds are not trained again.
    """
    if resume is not None:
        only_with_resume(context, WITH_RESUME, "a training keeps what it was asked for, except --lr after it diverged")
        _resume(resume, lr, space, data, data_folder, device, as_json=as_json)
        return
    from nasight.compute import cluster as cluster_at
    from nasight.studies import train_found, trainable

    found = trainable(
        run,
        space=space,
        arch=arch,
        data=data or (None if run else "digits"),
        resolution=resolution,
        fit=fit,
        strict=strict,
        out=out,
        data_folder=data_folder,
        preset=preset,
        label=label,
        task=task,
        max_params=max_params,
        max_latency=max_latency,
        **given(layers=layers),
    )
    settings: dict[str, Any] = given(
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        lr_min=lr_min,
        schedule=schedule,
        lr_warmup=lr_warmup,
        label_smoothing=label_smoothing,
        weight_decay=weight_decay,
        clip=clip,
        augment=False if no_augment else augment,
        cutout=cutout,
        class_weights=class_weights,
        metric=metric,
        auxiliary=auxiliary,
        drop_path=drop_path,
        examples=rows_asked(examples),
        share=share,
        validation=validation,
        precision=precision,
        size=given(channels=channels, cells=cells, width=width),
    )
    what, numbers = found.changed(**settings), _seeds(seeds, seed, seed_list)
    with resumable(what.out), cluster_at(cluster) as executor, _progress(numbers, what) as progress:
        summary = train_found(
            what,
            seeds=numbers,
            executor=executor,
            workers=workers,
            threads=threads,
            slices=slices,
            progress=progress,
            device=device,
        )
    typer.echo(json.dumps(_object(summary)) if as_json else _text(summary))


WITH_RESUME = frozenset({"resume", "lr", "space", "data", "data_folder", "device", "as_json"})


def _resume(
    folder: str,
    lr: float | None,
    space: str | None,
    data: str | None,
    data_folder: str | None,
    device: str,
    *,
    as_json: bool,
) -> None:
    from nasight.training import Summary, resume_train

    def tell(row: EpochRow) -> None:
        judged = "" if row.test_accuracy is None else f", judged {row.test_accuracy:.2f}"
        typer.echo(f"epoch {row.epoch}: loss {row.train_loss:.4f}{judged}", err=True)

    source = read_data(data, data_folder)
    found = resume_train(folder, lr=lr, space=space, data=source, data_folder=data_folder, progress=tell, device=device)
    summary = Summary.of([found], found.out)
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


def _object(summary: Summary) -> dict[str, Any]:
    keys = ("architecture", "space", "data", "judged_by", "seeds", "metric", "accuracy", "mean", "spread", "figures")
    values = summary.to_dict()
    return {key: values[key] for key in (*keys, "parameters", "multiply_adds", "epochs", "seconds", "out")}


def _text(summary: Summary) -> str:
    from nasight.data import Units, majority_warning, telling_lines

    several, units = len(summary.seeds) > 1, Units(summary.metric)
    spread = f" ± {units.number(summary.spread)}" if summary.spread is not None else ""
    unit = " %" if units.percent else ""
    warning = majority_warning(summary.figures) if summary.figures else None
    lines = [f"{summary.architecture} on {summary.data}, {epochs_text(summary.epochs)}", ""]
    pairs = zip(summary.seeds, summary.accuracy, strict=True)
    lines += [f"  seed {seed:<7} {units.number(value)}{unit}" for seed, value in pairs]
    lines += [
        f"  {summary.metric:12} {units.number(summary.mean)}{spread}{unit} over {len(summary.seeds)} "
        f"seed{'s' if several else ''}, "
        f"on {summary.judged_by}",
        *(f"    {line}" for line in telling_lines(summary.figures)),
        *([f"  warning      {warning}"] if warning else []),
        f"  parameters   {summary.parameters:,}",
        *multiplies_line(summary.multiply_adds),
        f"  seconds      {summary.seconds:.1f}" + (", summed over the seeds" if several else ""),
        f"  weights      {summary.out}",
        "",
        f"Use it: nasight predict {quote(str(summary.out))} FILES",
    ]
    return "\n".join(lines)


@contextmanager
def _progress(seeds: list[int], what: Trainable) -> Iterator[Callable[[int, EpochRow], None]]:
    """A bar per seed with the time left on a terminal, a line per epoch otherwise; both on standard error."""
    settings, units = what.resolved, what.data.task.with_own(None, what.settings.get("metric")).units
    epochs = settings.epochs
    judge = "test" if settings.validation == "test" and what.data.test_y is not None else "held out"
    if not sys.stderr.isatty():

        def line(seed: int, row: EpochRow) -> None:
            typer.echo(
                f"seed {seed}, epoch {row.epoch}/{epochs}: train {units.text(row.train_accuracy, digits=1)}, "
                f"{judge} {_score(row, units)}, {row.seconds:.1f} s",
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
            bars.update(tasks[seed], completed=row.epoch, accuracy=_score(row, units))

        yield draw


def _score(row: EpochRow, units: Units) -> str:
    return "" if row.test_accuracy is None else units.text(row.test_accuracy, digits=1)
