"""`nasight find`: an architecture for my data within the time I have, trained, compared with a baseline."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli import _shared
from nasight.cli._find_progress import FindProgress
from nasight.cli._shared import (
    Cluster,
    DataFolder,
    Fit,
    Json,
    Overwrite,
    Resolution,
    Seed,
    Strict,
    Workers,
    choice,
    examples,
    interruptible,
    only_with_resume,
    option,
    photo_pixels,
    read_data,
    setting,
    size_text,
)
from nasight.options import AUGMENT, LEARNING, LENGTH, OUTPUT, WHAT, SearchOptions

if TYPE_CHECKING:
    from nasight.studies import Answer

EXAMPLES = examples(
    "nasight find --data photos/ --budget 30m --out runs/a",
    "nasight find --data cifar-10 --space darts --budget 8h --max-params 1M --max-latency 20 --out runs/b",
    "nasight find --space my.py:build --data my.npz --budget 10m --out runs/c",
    "nasight find --resume runs/a --budget +20m",
    "nasight find --data cifar-10 --budget 8h --cluster tcp://head:8786 --out runs/d",
    "nasight find --data photos/ --budget 30m --plan-only",
)


def find(
    context: typer.Context,
    data: Annotated[str, choice(_shared.DATA, group=WHAT)] = "digits",
    label: Annotated[str | None, setting(SearchOptions, "label")] = None,
    task: Annotated[str | None, setting(SearchOptions, "task")] = None,
    strict: Strict = False,
    space: Annotated[
        str | None,
        option("A space by name, or FILE.py:NAME (default: convnet for images, mlp for vectors).", group=WHAT),
    ] = None,
    baseline: Annotated[
        str | None,
        option("A model of your own to compare with: FILE.py:NAME, a function that makes it.", group=WHAT),
    ] = None,
    method: Annotated[
        str | None,
        option(
            "The method of the proposing searches (default: gaea-pc-darts, where the space has it, else gaea-darts).",
            group=WHAT,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        option(
            "How long it may take: 90s, 30m, 8h; +20m with --resume. This or --trainings is needed for a new find.",
            metavar="TIME",
            group=LENGTH,
        ),
    ] = None,
    trainings: Annotated[
        int | None,
        option("A budget in trainings in place of time; further ones with --resume.", metavar="N", group=LENGTH),
    ] = None,
    epochs: Annotated[
        int | None, option("Epochs of the longest trainings, with --trainings (default 6).", metavar="N", group=LENGTH)
    ] = None,
    target: Annotated[
        str | None,
        option("The preset you will train the result with later; limits are counted at its size.", group=LENGTH),
    ] = None,
    shares: Annotated[
        str | None,
        option(
            "Share of the budget per part (defaults: recipe 0.2, propose 0.1, race 0.4, answer 0.3; with a --target "
            "out of reach 0.12, 0.13, 0.6, 0.15). Parts you leave out divide the rest.",
            metavar="race=0.5,recipe=0.05",
            group=LENGTH,
        ),
    ] = None,
    plan_only: Annotated[
        bool, choice("Measure speeds, print the plan and stop; nothing is kept.", "--plan-only", group=LENGTH)
    ] = False,
    resolution: Resolution = None,
    fit: Fit = None,
    augment: Annotated[
        str | None,
        option(
            f"{AUGMENT} (default: the best of none, shift, and shift,flip on your data).",
            metavar="WORDS",
            group=LEARNING,
        ),
    ] = None,
    class_weights: Annotated[str | None, setting(SearchOptions, "class_weights")] = None,
    metric: Annotated[str | None, setting(SearchOptions, "metric")] = None,
    max_params: Annotated[str | None, setting(SearchOptions, "max_params")] = None,
    max_latency: Annotated[str | None, setting(SearchOptions, "max_latency")] = None,
    seed: Seed = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Annotated[str | None, setting(SearchOptions, "device")] = None,
    precision: Annotated[str | None, setting(SearchOptions, "precision")] = None,
    data_folder: DataFolder = None,
    out: Annotated[
        str | None, option("The folder of the find (default: runs/find-DATA-SEED).", metavar="FOLDER", group=OUTPUT)
    ] = None,
    resume: Annotated[str | None, option("Resume the find in this folder.", metavar="FOLDER", group=OUTPUT)] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find an architecture for your data within a budget: trained, compared with a baseline, explained.

    Candidates are trained in a race. Winner and baseline are then trained again, with new seeds, and compared on
    test rows that no earlier step has used. The answer may be: not better, take the baseline.
    """
    from nasight import studies
    from nasight.compute import cluster as cluster_at
    from nasight.runs import is_code

    if resume is not None:
        code = {name for name, value in (("space", space), ("baseline", baseline)) if is_code(value)}
        only_with_resume(context, WITH_RESUME | code, "a find keeps what it was asked for")
    tell = FindProgress(quiet=as_json)
    with interruptible(), cluster_at(cluster) as executor:
        machine: dict[str, Any] = {"workers": workers, "executor": executor, "data_folder": data_folder}
        if resume is not None:
            again: dict[str, Any] = {
                "budget": budget,
                "trainings": trainings,
                "space": space,
                "baseline": baseline,
                "device": device,
            }
            answer = studies.resume_find(resume, progress=tell, **machine, **again)
        else:
            began = time.monotonic()
            pixels = photo_pixels(space, target)
            rows = read_data(data, data_folder, resolution=resolution, fit=fit, strict=strict, pixels=pixels)
            asked: dict[str, Any] = {
                "label": label, "task": task, "class_weights": class_weights, "metric": metric, "budget": budget,
                "space": space, "baseline": baseline, "target": target, "shares": shares, "max_params": max_params,
                "max_latency": max_latency, "trainings": trainings, "epochs": epochs, "method": method,
                "augment": augment, "seed": seed, "device": device or "auto", "precision": precision or "32",
                **machine,
            }  # fmt: skip
            if plan_only:
                planned = studies.find_plan(rows, **asked)
                typer.echo(json.dumps(planned.to_dict()) if as_json else "\n".join(planned.lines()))
                return
            answer = studies.find(rows, out=out, overwrite=overwrite, progress=tell, began=began, **asked)
    typer.echo(json.dumps(answer.result) if as_json else summary(answer))


FAST_AT_FIRST = "it may be ahead only because it learns fast at first"
WITH_RESUME = frozenset({"resume", "budget", "trainings", "workers", "cluster", "device", "data_folder", "as_json"})


def summary(answer: Answer) -> str:
    """The answer as a person reads it."""
    from nasight.data import majority_warning, telling_lines
    from nasight.report.finding import proposer_words
    from nasight.studies import time_text

    r, base = answer.result, answer.baseline
    reached = r["target"]["reached"]
    figures, recipe = r.get("figures") or {}, r["recipe"]
    warning = majority_warning(figures)
    told = telling_lines(figures)
    _, model = answer.figures_network.split(", ", 1)
    rows = f"{r['examples']:,} of {r['rows']:,} rows" if r["examples"] < r["rows"] else f"all {r['rows']:,} rows"
    scores = _accuracies(r, r, named=True)
    lines = [
        r["sentence"],
        "",
        f"  found        {r['architecture']}  (proposed by: {proposer_words(r['proposed_by'])})",
        f"  {r.get('metric', 'accuracy'):12} {scores} on the test part, {size_text(r)}",
        f"  baseline     {base['architecture']}",
        f"               {_accuracies(base, r)}, {size_text(base)}",
        *([f"  model/       {model}", *(f"               {line}" for line in told)] if told else []),
        *([f"  warning      {warning}"] if warning else []),
        f"  recipe       learning rate {recipe['lr']:g}, weight decay {recipe['weight_decay']:g}"
        + (f", random changes of images: {recipe['augmentation']}" if _images(answer) else ""),
        f"  cost         {time_text(r['seconds'])}, {r['trainings']} trainings (the last each: {_lengths(r)}, {rows})",
        f"  front        {sum(p['best'] for p in r['front'])} of {len(r['front'])} raced networks (no smaller one "
        "is as good)",
        f"  run          {r['run']}",
        *([f"  page         {r['page']}"] if r.get("page") else []),
        *([f"  warning      {FAST_AT_FIRST}: {r['shallow']}"] if r.get("shallow") else []),
        *([f"  target       {r['target']['says']}"] if r["target"].get("says") else []),
        *(f"  note         {text}" for text in answer.cautions),
        "",
        f"Use it: {answer.command}",
        *([] if reached else [f"Train it as meant: nasight train {quote(str(r['run']))}"]),
    ]
    return "\n".join(lines)


def _lengths(result: Mapping[str, Any]) -> str:
    """The length of the trainings that answer, in words."""
    epochs, base = result["epochs"], result["baseline"]
    if result.get("equal") != "seconds":
        return f"{epochs} epoch{'' if epochs == 1 else 's'}"
    took = result["training_seconds"]
    alike = result["architecture"] == base["architecture"] or base["kind"] == "boosting"
    return f"{took['winner']:.3g} s, {epochs} epochs" + (
        "" if alike else f"; the baseline {took['baseline']:.3g} s, {base['epochs']} epochs"
    )


def _images(answer: Answer) -> bool:
    return len(answer.folder.about["data"]["inputs"]) == 3


def _accuracies(side: Mapping[str, Any], result: Mapping[str, Any], *, named: bool = False) -> str:
    """The score of a side and those of its seeds; `named` where the name of the metric stands before it."""
    from nasight.data import Units

    units = Units.of(result)
    each = ", ".join(units.number(value) for value in side["accuracies"])
    return f"{units.bare(side['accuracy']) if named else units.text(side['accuracy'])} ({each})"
