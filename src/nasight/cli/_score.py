"""`nasight score`: rank architectures without training."""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from nasight.cli._shared import (
    DATA,
    Cells,
    Channels,
    Cluster,
    DataFolder,
    Device,
    Json,
    Layers,
    Width,
    Workers,
    counting,
    examples,
    given,
    resumable,
    setting,
    table,
)
from nasight.errors import RequestError
from nasight.options import SearchOptions

if TYPE_CHECKING:
    from nasight.kernels import Scores

EXAMPLES = examples(
    "nasight score --metric eigen,knas,naswot,te-nas,nasi --data cifar-10 --sample 1000 --out runs/s",
    "nasight score --metric eigen --data digits --all --out runs/all",
    "nasight score --resume runs/s",
    "nasight score --metric eigen,mine.py:depth --data digits --sample 50",
)
SAMPLE = 100


def score(
    space: Annotated[
        str, typer.Option(help="A space by name, or FILE.py:NAME for your own module with Choices.")
    ] = "nasbench201",
    metric: Annotated[
        str, typer.Option(help="Rows of the score table (see --list) or FILE.py:FUNCTION, joined by commas.")
    ] = "eigen",
    data: Annotated[str, typer.Option(help=DATA)] = "digits",
    label: Annotated[str | None, setting(SearchOptions, "label")] = None,
    task: Annotated[str | None, setting(SearchOptions, "task")] = None,
    sample: Annotated[
        int | None, typer.Option(help=f"This many different architectures (default: {SAMPLE}).", metavar="N")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="One architecture of each form of the space.")] = False,
    arch: Annotated[
        list[str] | None, typer.Option(help="Score this architecture (may be given several times).", metavar="TEXT")
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the best to print for each metric.", metavar="N")] = 10,
    seed: Annotated[int, typer.Option(help="Initial weights, batch and sample follow from it.")] = 0,
    batch: Annotated[
        int | None, typer.Option(help="Examples for every metric (default: each its own).", metavar="N")
    ] = None,
    resolution: Annotated[
        int, typer.Option(help="Shrink larger images to this many pixels per side; 0: leave them.", metavar="N")
    ] = 16,
    channels: Channels = None,
    cells: Cells = None,
    width: Width = None,
    layers: Layers = None,
    out: Annotated[
        str | None, typer.Option(help="Keep the scores here; resume where a call stopped.", metavar="FOLDER")
    ] = None,
    resume: Annotated[str | None, typer.Option(help="Resume the last call on this folder.", metavar="FOLDER")] = None,
    device: Device = "auto",
    workers: Workers = None,
    cluster: Cluster = None,
    data_folder: DataFolder = None,
    list_scores: Annotated[bool, typer.Option("--list", help="Print the score table and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Rank architectures without training: Eigen-NAS, KNAS, NASWOT, TE-NAS, NASI, or a metric of your own."""
    if list_scores:
        _list(as_json)
        return
    from nasight.compute import cluster as cluster_at
    from nasight.data import with_label
    from nasight.kernels import resume_score
    from nasight.kernels import score as start
    from nasight.runs import is_code

    if top < 1:
        raise RequestError(f"--top must be at least 1, got {top}")
    place = resume or out
    with (
        cluster_at(cluster) as executor,
        counting("scored", "forms scored", transient=True) as report,
        resumable(place, f"nasight score --resume {quote(str(place))}"),
    ):
        if resume is not None:
            found = resume_score(
                resume,
                space=space if is_code(space) else None,
                metrics=metric,
                data_folder=data_folder,
                executor=executor,
                workers=workers,
                progress=report,
                device=device,
            )
        else:
            _one_of(sample, every, arch)
            found = start(
                space,
                metric,
                with_label(data, label, task),
                architectures=arch or None,
                sample=None if every or arch else sample if sample is not None else SAMPLE,
                all_distinct=every,
                seed=seed,
                size=given(channels=channels, cells=cells, width=width),
                batch=batch,
                resolution=resolution or None,
                space_options=None if layers is None else {"layers": layers},
                data_folder=data_folder,
                executor=executor,
                workers=workers,
                out=out,
                progress=report,
                device=device,
            )
    if as_json:
        typer.echo(json.dumps({**found.to_dict(), "run": place}))
    else:
        typer.echo(_text(found, top, place))


def _one_of(sample: int | None, every: bool, arch: list[str] | None) -> None:
    if (sample is not None) + every + bool(arch) > 1:
        raise RequestError("give one of --sample, --all and --arch")


def _text(found: Scores, top: int, out: str | None) -> str:
    lines = [f"{len(found.architectures)} architectures of {found.settings['space']}, {found.forms} forms scored"]
    if found.failed:
        lines[0] += f", {len(found.failed)} without a score of some kind (worst)"
    for metric in found.values:
        better = "highest" if found.directions[metric] == "high" else "lowest"
        lines += ["", f"{metric}: {better} first, {1e3 * found.seconds[metric]:.0f} ms per form"]
        lines += [f"  {value:>14.6g}  {text}" for text, value in found.top(metric, top)]
    if len(found.values) > 1:
        lines += ["", "rank correlation (Spearman; every metric turned so that more is better)"]
        lines += table([("", *found.values), *_correlations(found)], indent="  ", right=True)
    if out is not None:
        lines += ["", f"scores  {out}/scores.jsonl, {out}/result.json"]
    return "\n".join(lines)


def _correlations(found: Scores) -> Iterator[tuple[str, ...]]:
    for metric, others in found.correlations().items():
        yield (metric, *("-" if value is None else f"{value:.2f}" for value in others.values()))


def _list(as_json: bool) -> None:
    from nasight.kernels import SCORES

    rows = [
        {
            "metric": row.name,
            "better": row.direction,
            "batch": row.batch,
            "batch_norm": row.batch_norm,
            "worst": row.failed,
            "cost": row.cost,
            "paper": row.paper,
        }
        for row in SCORES.values()
    ]
    if as_json:
        typer.echo(json.dumps({"scores": rows}))
        return
    typer.echo("\n".join(table([tuple(rows[0]), *(tuple(map(str, row.values())) for row in rows)])))
