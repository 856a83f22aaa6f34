"""`nasight search`: one architecture search, with shared weights or by a score without training."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli import _shared
from nasight.cli._methods import print_methods
from nasight.cli._shared import (
    Cells,
    Channels,
    DataFolder,
    Fit,
    Json,
    Layers,
    NoAugment,
    Overwrite,
    Seed,
    Strict,
    Width,
    choice,
    epochs_text,
    examples,
    interruptible,
    multiplies_line,
    only_with_resume,
    option,
    photo_pixels,
    read_data,
    rows_asked,
    setting,
    size_text,
)
from nasight.options import LENGTH, OUTPUT, WHAT, SearchOptions

if TYPE_CHECKING:
    from nasight.searching import Progress, Run

EXAMPLES = examples(
    "nasight search --data digits --preset tiny --out runs/a",
    "nasight search --space darts --method gaea-pc-darts --data fashion-mnist --epochs 10 --out runs/b",
    "nasight search --method eigen --data digits --preset tiny --out runs/c",
    "nasight search --resume runs/b --epochs 20",
    "torchrun --nproc-per-node 2 -m nasight search --data digits --preset tiny --out runs/d",
    "nasight search --list",
)


def search(
    context: typer.Context,
    space: Annotated[
        str, choice("A space by name, or FILE.py:NAME for your own module with Choices.", group=WHAT)
    ] = "nasbench201",
    method: Annotated[
        str, choice("A row of the method table (see --list), or eigen, knas, naswot, te-nas, nasi.", group=WHAT)
    ] = "gaea-darts",
    objective: Annotated[
        str | None,
        option(
            "erm, bilevel, erm-joint or block (a few methods have others); the default depends on method and space: "
            "--list prints it.",
            group=WHAT,
        ),
    ] = None,
    data: Annotated[str, choice(_shared.DATA, group=WHAT)] = "digits",
    strict: Strict = False,
    label: Annotated[str | None, setting(SearchOptions, "label")] = None,
    task: Annotated[str | None, setting(SearchOptions, "task")] = None,
    none: Annotated[bool | None, setting(SearchOptions, "none", "--none/--no-none")] = None,
    list_methods: Annotated[bool, choice("Print the method table and exit.", "--list", group=WHAT)] = False,
    preset: Annotated[
        str, choice("tiny, small, medium, paper or imagenet: size, amount of data and epochs together.", group=LENGTH)
    ] = "small",
    epochs: Annotated[int | None, setting(SearchOptions, "epochs")] = None,
    schedule_epochs: Annotated[int | None, setting(SearchOptions, "schedule_epochs")] = None,
    warmup: Annotated[int | None, setting(SearchOptions, "warmup")] = None,
    examples: Annotated[str | None, setting(SearchOptions, "examples")] = None,
    share: Annotated[float | None, setting(SearchOptions, "share")] = None,
    validation: Annotated[float | None, setting(SearchOptions, "validation")] = None,
    arch_share: Annotated[float | None, setting(SearchOptions, "arch_share")] = None,
    channels: Channels = None,
    cells: Cells = None,
    width: Width = None,
    layers: Layers = None,
    sums: Annotated[
        bool | None,
        option(
            "Whether inputs of one architecture are summed in the supernet, else averaged (nasbench1shot1).",
            "--sums/--no-sums",
            group=WHAT,
        ),
    ] = None,
    partial: Annotated[int | None, setting(SearchOptions, "partial")] = None,
    resolution: Annotated[int | None, setting(SearchOptions, "resolution")] = None,
    fit: Fit = None,
    batch_size: Annotated[int | None, setting(SearchOptions, "batch_size")] = None,
    lr: Annotated[float | None, setting(SearchOptions, "lr")] = None,
    lr_min: Annotated[float | None, setting(SearchOptions, "lr_min")] = None,
    lr_warmup: Annotated[int | None, setting(SearchOptions, "lr_warmup")] = None,
    arch_lr: Annotated[float | None, setting(SearchOptions, "arch_lr")] = None,
    weight_decay: Annotated[float | None, setting(SearchOptions, "weight_decay")] = None,
    clip: Annotated[float | None, setting(SearchOptions, "clip")] = None,
    arch_clip: Annotated[float | None, setting(SearchOptions, "arch_clip")] = None,
    weights_first: Annotated[
        bool | None, setting(SearchOptions, "weights_first", "--weights-first/--no-weights-first")
    ] = None,
    augment: Annotated[str | None, setting(SearchOptions, "augment")] = None,
    no_augment: NoAugment = False,
    class_weights: Annotated[str | None, setting(SearchOptions, "class_weights")] = None,
    metric: Annotated[str | None, setting(SearchOptions, "metric")] = None,
    candidates: Annotated[int | None, setting(SearchOptions, "candidates")] = None,
    candidate_rows: Annotated[int | None, setting(SearchOptions, "candidate_rows")] = None,
    top: Annotated[int | None, setting(SearchOptions, "top")] = None,
    max_params: Annotated[str | None, setting(SearchOptions, "max_params")] = None,
    max_latency: Annotated[str | None, setting(SearchOptions, "max_latency")] = None,
    seed: Seed = 0,
    path: Annotated[str | None, setting(SearchOptions, "path")] = None,
    threads: Annotated[int | None, setting(SearchOptions, "threads")] = None,
    slices: Annotated[int | None, setting(SearchOptions, "slices")] = None,
    device: Annotated[str | None, setting(SearchOptions, "device")] = None,
    precision: Annotated[str | None, setting(SearchOptions, "precision")] = None,
    data_folder: DataFolder = None,
    out: Annotated[
        str | None, option("The run folder (default: runs/SPACE-METHOD-SEED).", metavar="FOLDER", group=OUTPUT)
    ] = None,
    resume: Annotated[
        str | None,
        option("Resume an interrupted run; with more --epochs, one that has ended.", metavar="FOLDER", group=OUTPUT),
    ] = None,
    overwrite: Overwrite = False,
    track: Annotated[
        str | None,
        option("tensorboard: event files in FOLDER/tensorboard, an epoch at a time.", metavar="TRACKER", group=OUTPUT),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run one architecture search: with shared weights, or by a score without training.

    For a trained network with a baseline beside it, use nasight find.
    """
    if list_methods:
        print_methods(preset, as_json=as_json)
        return
    from nasight import studies
    from nasight.data import holds_photos
    from nasight.runs import is_code

    progress = _progress()
    if resume is not None:
        if (Path(resume) / "run.json").is_file():  # what is no run is said first
            _only_with_resume(context)
        with interruptible():
            run = studies.resume(
                resume,
                space=space if is_code(space) else None,
                data_folder=data_folder,
                progress=progress,
                track=track,
                device=device,
                epochs=epochs,
                lr=lr,
            )
        _report(run, as_json)
        return
    settings: dict[str, Any] = {
        "size": _shared.given(channels=channels, cells=cells, width=width) or None,
        "space_options": _shared.given(layers=layers, sums=sums) or None,
        "label": label,
        "task": task,
        "class_weights": class_weights,
        "metric": metric,
        "none": none,
        "epochs": epochs,
        "examples": rows_asked(examples),
        "share": share,
        "validation": validation,
        "arch_share": arch_share,
        "partial": partial,
        "resolution": resolution,
        "batch_size": batch_size,
        "lr": lr,
        "lr_min": lr_min,
        "schedule_epochs": schedule_epochs,
        "arch_lr": arch_lr,
        "warmup": warmup,
        "lr_warmup": lr_warmup,
        "weight_decay": weight_decay,
        "clip": clip,
        "arch_clip": arch_clip,
        "weights_first": weights_first,
        "augment": False if no_augment else augment,
        "candidates": candidates,
        "candidate_rows": candidate_rows,
        "top": top,
        "max_params": max_params,
        "max_latency": max_latency,
        "params_size": _trained_size(space, preset, layers) if max_params or max_latency else None,
        "path": path,
        "threads": threads,
        "slices": slices,
        "device": device,
        "precision": precision,
        "seed": seed,
    }
    # Photos are decoded at the resolution; of other data the search makes smaller copies.
    photos = (fit is not None or strict) and holds_photos(data)
    reading: dict[str, Any] = {"fit": fit, "strict": strict}
    if photos:
        reading |= {
            "resolution": resolution,
            "pixels": photo_pixels(space, preset, layers),
            "augment": settings["augment"],
        }
    with interruptible():
        run = studies.search(
            space,
            method,
            read_data(data, data_folder, **reading),
            objective=objective,
            out=out or f"runs/{studies.folder_name(space)}-{method}-{seed}",
            preset=preset,
            data_folder=data_folder,
            overwrite=overwrite,
            progress=progress,
            track=track,
            **settings,
        )
    _report(run, as_json)


WITH_RESUME = {"resume", "epochs", "device", "data_folder", "track", "as_json"}


def _only_with_resume(context: typer.Context) -> None:
    """Refuse a wish that a resumed search cannot fulfill: it keeps what it was asked for."""
    from nasight.runs import is_code

    run = Path(str(context.params["resume"]))
    kept = set(WITH_RESUME) | (set() if (run / "result.json").exists() else {"lr"})
    kept |= {"space"} if is_code(context.params["space"]) else set()
    only_with_resume(context, kept, "a search keeps what it was asked for, except --epochs, and --lr after it diverged")


def _trained_size(space: str, preset: str, layers: int | None) -> dict[str, int] | None:
    """The size at which `nasight train` of this preset builds a network; None where it has no such preset."""
    from nasight.spaces import load

    return load(space, **_shared.given(layers=layers)).train_size(preset)


def _report(run: Run, as_json: bool) -> None:
    from nasight.compute import world

    if world()[0]:
        # The first rank draws and prints.
        return
    if run.train_free:
        typer.echo(json.dumps(run.result) if as_json else _train_free_summary(run.result))
        return
    _draw(run)
    typer.echo(json.dumps(run.result) if as_json else _summary(run))


def _draw(run: Run) -> None:
    from nasight.report import picture
    from nasight.runs import write_atomic

    drawn = picture(run.history, run.result, run.space.groups())
    write_atomic(run.path / "search.svg", drawn.encode())


def _summary(run: Run) -> str:
    from nasight.data import Units, majority_warning, telling_lines

    result, last = run.result, run.history[-1]
    figures = result.get("figures") or {}
    warning = majority_warning(figures)
    lines = telling_lines(figures)
    told = lines if len(lines) > 1 or "balanced accuracy" not in figures else []
    units = Units.of(result)
    found = units.bare(result["accuracy"])
    # The published protocols hold nothing out.
    judged = "held-out data" if run.settings.validation else "rows that it learned from"
    lines = [
        f"{result['method']} ({result['objective']}) on {result['space']}, {result['data']}, "
        f"{epochs_text(result['epochs'])}, {result['seconds']:.0f} s",
        "",
        f"  found        {result['architecture']}",
        f"  {units.metric:12} {found} on {judged}, shared weights, this architecture alone",
        *(f"               {line}" for line in told),
        *([f"  warning      {warning}"] if warning else []),
        f"  supernet     {units.text(last['valid_accuracy'])} on the same data, all architectures mixed "
        f"(discretizing cost {units.difference(last['drop'])})"
        if last.get("drop") is not None
        else f"  supernet     {units.text(last['valid_accuracy'])} on the same data",
        f"  entropy      {result['entropy']:.3f} nats per decision, of {_most(run):.3f} at the start",
        *_limit(result),
        f"  run          {result['run']}",
        f"  picture      {run.path / 'search.svg'}",
        "",
        f"Retrain it from scratch: nasight train {quote(str(result['run']))} --seeds 3",
    ]
    return "\n".join(lines)


def _train_free_summary(result: dict[str, Any]) -> str:
    from nasight.data import Units

    first, units = result["candidates"][0], Units.of(result)
    lines = [
        f"{result['method']} on {result['space']}, {result['data']}: {result['scored']} architectures scored "
        f"({result['forms']} forms), {len(result['candidates'])} trained for {epochs_text(result['epochs'])}, "
        f"{result['seconds']:.0f} s",
        "",
        f"  found        {result['architecture']}",
        f"  {units.metric:12} {units.bare(result['accuracy'])} on held-out data after its short training",
        f"  best score   {first['architecture']}  ({units.text(first['accuracy'])})",
        f"  run          {result['run']}",
        "",
        f"Retrain it from scratch: nasight train {quote(str(result['run']))} --seeds 3",
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
    costs = [] if free["params"] is None else [size_text({**free, "parameters": free["params"]})]
    costs += [f"{free['latency']:.3g} ms"] if free.get("latency") is not None else []
    time = "" if slowest is None else f"{limit['latency']:.3g} ms of at most {slowest:g}"
    return [
        f"  parameters   {limit['params']:,}"
        + ("" if most is None else f" of at most {most:,}")
        + (f" (at {size})" if size else ""),
        *multiplies_line(limit.get("multiply_adds")),
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


def _progress() -> Progress:
    """A bar with the time left on a terminal, a line per epoch otherwise; both on standard error."""
    from nasight.cli._progress import Bar, Lines

    return Bar() if sys.stderr.isatty() else Lines()
