"""`nasight search`: find an architecture with one shared-weights network."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli._shared import DataFolder, Json, option
from nasight.errors import RequestError

if TYPE_CHECKING:
    from nasight.search import Progress, Run

EXAMPLES = (
    "Examples: nasight search --data digits --preset tiny --out runs/a | "
    "nasight search --space nasbench201 --method gaea-darts --objective erm --data fashion-mnist --epochs 10 "
    "--seed 0 --out runs/b | "
    "nasight search --resume runs/b"
)


def search(
    space: Annotated[
        str, typer.Option(help="A space by name, or FILE.py:NAME for your own module with Choices.")
    ] = "nasbench201",
    method: Annotated[
        str, typer.Option(help="A row of the method table (see --list), or eigen, knas, naswot, te-nas, nasi.")
    ] = "gaea-darts",
    objective: Annotated[
        str | None, option("erm, bilevel, erm-alternating or block; the method's own by default.")
    ] = None,
    data: Annotated[str, typer.Option(help="A data set by name, an .npz file or an image folder.")] = "digits",
    preset: Annotated[
        str, typer.Option(help="tiny, small or paper: size, amount of data and epochs together.")
    ] = "small",
    epochs: Annotated[int | None, option("Epochs of the search.", metavar="N")] = None,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    out: Annotated[str | None, option("The run folder (default: runs/SPACE-METHOD-SEED).", metavar="FOLDER")] = None,
    resume: Annotated[str | None, option("Go on with an interrupted run.", metavar="FOLDER")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is in --out.")] = False,
    channels: Annotated[int | None, option("Channels of the first cell.", metavar="N")] = None,
    cells: Annotated[
        int | None, option("Cells (nasbench201, nasbench1shot1: in each of three stages).", metavar="N")
    ] = None,
    width: Annotated[int | None, option("Width of the layers (mlp).", metavar="N")] = None,
    layers: Annotated[int | None, option("Layers (mlp).", metavar="N")] = None,
    none: Annotated[
        bool | None, option("Whether `none` is an operation (nasbench201: not by default).", "--none/--no-none")
    ] = None,
    examples: Annotated[int | None, option("At most so many training examples.", metavar="N")] = None,
    share: Annotated[float | None, option("A share of the training examples instead.", metavar="0..1")] = None,
    validation: Annotated[float | None, option("The share of them held out to measure with.", metavar="0..1")] = None,
    resolution: Annotated[int | None, option("Shrink images to so many pixels a side.", metavar="N")] = None,
    batch_size: Annotated[int | None, option("Examples a step.", metavar="N")] = None,
    lr: Annotated[float | None, option("Rate of the shared weights at the start.")] = None,
    lr_min: Annotated[float | None, option("Rate where the cosine ends.")] = None,
    schedule_epochs: Annotated[int | None, option("Epochs the cosine is laid over.", metavar="N")] = None,
    arch_lr: Annotated[
        float | None, option("Rate of the architecture (default: the published one, scaled by 1/sqrt(steps)).")
    ] = None,
    warmup: Annotated[int | None, option("Epochs before the first architecture step.", metavar="N")] = None,
    weight_decay: Annotated[float | None, option("Of the shared weights.")] = None,
    clip: Annotated[float | None, option("Largest gradient norm of the shared weights.")] = None,
    augment: Annotated[
        bool | None, option("Random crops and flips, as the data set allows.", "--augment/--no-augment")
    ] = None,
    candidates: Annotated[
        int | None, option("Random architectures that compete at the end (rs-ws), or are scored (eigen, knas, ...).")
    ] = None,
    top: Annotated[
        int | None, option("Of these the best so many are trained and compared (eigen, ...).", metavar="K")
    ] = None,
    max_params: Annotated[
        str | None,
        option(
            "The best architecture with at most so many parameters, as `nasight train` of the same preset builds it.",
            metavar="300k",
        ),
    ] = None,
    max_latency: Annotated[
        str | None,
        option("The best whose network answers one example within so many ms, one thread, this machine.", metavar="MS"),
    ] = None,
    path: Annotated[
        str | None,
        option("fast, plain or compiled: ways to the same supernet; compiling takes minutes before the first step."),
    ] = None,
    threads: Annotated[int | None, option("Threads of this process.", metavar="N")] = None,
    track: Annotated[
        str | None, option("tensorboard: event files in FOLDER/tensorboard, an epoch at a time.", metavar="TRACKER")
    ] = None,
    data_folder: DataFolder = None,
    as_json: Json = False,
    list_methods: Annotated[bool, typer.Option("--list", help="Print the method table and exit.")] = False,
) -> None:
    """Find an architecture with one shared-weights network."""
    if list_methods:
        _list(as_json)
        return
    from nasight.cli import _trainfree
    from nasight.search import resume as resume_search
    from nasight.search import search as start_search

    progress = _progress()
    if resume is not None and _trainfree.resumes(resume):
        _not_tracked(track)
        with _said():
            found = _trainfree.go_on(resume, data_folder=data_folder)
        _trainfree.say(found, as_json=as_json)
        return
    if resume is not None:
        with _said():
            run = resume_search(resume, data_folder=data_folder, progress=progress, track=track)
    else:
        size = {"channels": channels, "cells": cells, "width": width}
        settings = {
            "size": {key: value for key, value in size.items() if value is not None} or None,
            "space_options": None if layers is None else {"layers": layers},
            "none": none,
            "epochs": epochs,
            "examples": examples,
            "share": share,
            "validation": validation,
            "resolution": resolution,
            "batch_size": batch_size,
            "lr": lr,
            "lr_min": lr_min,
            "schedule_epochs": schedule_epochs,
            "arch_lr": arch_lr,
            "warmup": warmup,
            "weight_decay": weight_decay,
            "clip": clip,
            "augment": augment,
            "candidates": candidates,
            "max_params": max_params,
            "max_latency": max_latency,
            "params_size": _trained_size(space, preset, layers) if max_params or max_latency else None,
            "path": path,
            "threads": threads,
        }
        place = out or f"runs/{_slug(space)}-{method}-{seed}"
        if method in _trainfree.METHODS:
            _not_tracked(track)
            with _said():
                found = _trainfree.begin(
                    space,
                    method,
                    data,
                    out=place,
                    preset=preset,
                    seed=seed,
                    top=top,
                    overwrite=overwrite,
                    data_folder=data_folder,
                    settings=settings,
                )
            _trainfree.say(found, as_json=as_json)
            return
        if top is not None:
            raise RequestError(
                f"--top is for methods without training ({', '.join(_trainfree.METHODS)}), not {method!r}"
            )
        with _said():
            run = start_search(
                space,
                method,
                data,
                objective=objective,
                out=place,
                preset=preset,
                data_folder=data_folder,
                overwrite=overwrite,
                progress=progress,
                track=track,
                seed=seed,
                **settings,
            )
    _draw(run)
    typer.echo(json.dumps(run.result) if as_json else _summary(run))


def _not_tracked(track: str | None) -> None:
    if track is not None:
        raise RequestError(f"--track {track} is for methods that train a supernet; a train-free search has no epochs")


@contextmanager
def _said() -> Iterator[None]:
    """What an interrupted search has to say is said here: the parser keeps only the exit code of an interrupt."""
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo(f"nasight: {stop or 'interrupted'}", err=True)
        raise typer.Exit(130) from None


def _trained_size(space: str, preset: str, layers: int | None) -> dict[str, int] | None:
    """The size at which `nasight train` of this preset builds a network; None where it has no such preset."""
    from nasight.spaces import load
    from nasight.training import settings_for

    where = load(space, **({} if layers is None else {"layers": layers}))
    try:
        return settings_for(where, preset).size
    except RequestError:
        return None


def _draw(run: Run) -> None:
    from nasight.report import picture
    from nasight.runs import write_atomic

    write_atomic(run.path / "search.svg", picture(run).encode())


def _slug(space: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in space.rsplit("/", 1)[-1])


def _summary(run: Run) -> str:
    result, last = run.result, run.history[-1]
    lines = [
        f"{result['method']} ({result['objective']}) on {result['space']}, {result['data']}, "
        f"{result['epochs']} epochs, {result['seconds']:.0f} s",
        "",
        f"  found        {result['architecture']}",
        f"  accuracy     {result['accuracy']:.2f} % on held-out data, shared weights, this architecture alone",
        f"  supernet     {last['valid_accuracy']:.2f} % on the same data, all architectures mixed "
        f"(discretising cost {last['drop']:.2f} points)"
        if last["drop"] is not None
        else f"  supernet     {last['valid_accuracy']:.2f} % on the same data",
        f"  entropy      {result['entropy']:.3f} nats a decision, of {_most(run):.3f} at the start",
        *_limit(result),
        f"  run          {result['run']}",
        f"  picture      {run.path / 'search.svg'}",
        "",
        f"Retrain it from scratch: nasight train {result['run']} --seeds 3",
    ]
    return "\n".join(lines)


def _limit(result: dict[str, Any]) -> list[str]:
    """What limits led to, and how sure the choice is."""
    limit = result.get("constraint")
    if limit is None:
        return []
    size = ", ".join(f"{name} {value}" for name, value in limit["size"].items())
    free = limit["unconstrained"]
    same = free["architecture"] == result["architecture"]
    most, slowest = limit["max_params"], limit.get("max_latency")
    costs = [f"{free['params']:,} parameters"] if free["params"] is not None else []
    costs += [f"{free['latency']:.3g} ms"] if free.get("latency") is not None else []
    time = "" if slowest is None else f"{limit['latency']:.3g} ms of at most {slowest:g}"
    return [
        f"  parameters   {limit['params']:,}"
        + ("" if most is None else f" of at most {most:,}")
        + (f" (at {size})" if size else ""),
        *([f"  latency      {time} (one example, one thread, this machine)"] if time else []),
        f"  sure         {limit['sure']:.0%} that it is the best of {len(limit['candidates'])} candidates within the "
        "limit, under the shared weights",
        "  without it   the same architecture"
        if same
        else f"  without it   {free['architecture']}" + (f" ({', '.join(costs)})" if costs else ""),
    ]


def _most(run: Run) -> float:
    from math import log

    sizes = [size for group in run.space.groups() if group.exclusive for size in group.sizes]
    return sum(log(size) for size in sizes) / len(sizes)


def _list(as_json: bool) -> None:
    from dataclasses import asdict

    from nasight.search import METHODS

    rows = [
        {
            "method": m.name,
            "relaxation": type(m.relaxation).__name__,
            "geometry": _geometry(m.geometry),
            "objectives": [o.name for o in m.objectives],
            "schedule": asdict(m.schedule),
            "paper": m.paper,
        }
        for m in METHODS.values()
    ]
    if as_json:
        typer.echo(json.dumps({"methods": rows}))
        return
    cells = [
        (str(r["method"]), str(r["relaxation"]), str(r["geometry"]), ", ".join(r["objectives"]), str(r["paper"]))
        for r in rows
    ]
    table = [("method", "relaxation", "geometry", "objectives", "paper"), *cells]
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    for row in table:
        typer.echo("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())


def _geometry(geometry: Any) -> str:
    kind = type(geometry).__name__
    detail = getattr(geometry, "potential", getattr(geometry, "rule", None))
    return f"{kind} ({detail})" if detail else kind


def _progress() -> Progress:
    """A bar with the time left on a terminal, a line an epoch otherwise; both on standard error."""
    from nasight.cli._progress import Bar, Lines

    return Bar() if sys.stderr.isatty() else Lines()


def whole_numbers(text: str) -> list[int]:
    """'0,1,2' -> [0, 1, 2]."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise RequestError(f"expected whole numbers joined by commas, got {text!r}") from None
