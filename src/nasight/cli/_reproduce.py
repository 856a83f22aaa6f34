"""`nasight reproduce`: claims of the papers, measured again at this machine's scale, with verdicts."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from nasight.cli._shared import Cluster, DataFolder, Json, Workers, choice, counting, examples, option, resumable
from nasight.errors import RequestError
from nasight.options import OUTPUT, WHAT

if TYPE_CHECKING:
    from nasight.studies import Claim, Finding, Reproduction

EXAMPLES = examples(
    "nasight reproduce --list",
    "nasight reproduce gaea-entropy gaea-discretization",
    "nasight reproduce cells-convergence --seeds 20 --workers 2 --out runs/cells",
    "nasight reproduce all --data fashion-mnist --cluster local:4 --json",
)


def reproduce(
    claims: Annotated[
        list[str] | None, typer.Argument(help="Claims by name (see --list), or all.", metavar="CLAIM...|all")
    ] = None,
    seeds: Annotated[
        int | None, option("Seeds for each claim (default: its own number; see --list).", metavar="N", group=WHAT)
    ] = None,
    seed: Annotated[int, choice("The first seed; the others follow it.", metavar="N", group=WHAT)] = 0,
    data: Annotated[
        str, choice("A data set by name, or a file, for the claims that learn from data.", metavar="NAME", group=WHAT)
    ] = "digits",
    workers: Workers = None,
    cluster: Cluster = None,
    data_folder: DataFolder = None,
    out: Annotated[
        str | None,
        option(
            "Keep measurements here; resume what is there (default: runs/reproduce-DATA).",
            metavar="FOLDER",
            group=OUTPUT,
        ),
    ] = None,
    listing: Annotated[bool, choice("Print the claims and exit.", "--list", group=OUTPUT)] = False,
    as_json: Json = False,
) -> None:
    """Measure a claim of the papers again at this machine's scale, and say whether it holds here."""
    if listing:
        _list(as_json)
        return
    if not claims:
        raise RequestError("name one or more claims, or all; nasight reproduce --list has them")
    from nasight.compute import cluster as cluster_at
    from nasight.studies import folder_name
    from nasight.studies import reproduce as start

    folder = out or f"runs/reproduce-{folder_name(data)}"
    with (
        cluster_at(cluster) as executor,
        counting("measured", "measurements finished", transient=True) as progress,
        resumable(folder),
    ):
        found = start(
            claims,
            seeds=seeds,
            seed=seed,
            data=data,
            data_folder=data_folder,
            out=folder,
            executor=executor,
            workers=workers,
            progress=progress,
        )
    typer.echo(json.dumps({**found.to_dict(), "run": folder}) if as_json else _text(found, folder))


def _list(as_json: bool) -> None:
    from nasight.studies import CLAIMS

    rows = list(CLAIMS.values())
    if as_json:
        typer.echo(json.dumps({"claims": [row.to_dict() for row in rows]}))
        return
    typer.echo("\n\n".join(_row(row) for row in rows))


def _row(claim: Claim) -> str:
    amount = f"{claim.seeds} seeds" if claim.chance else "no chance, measured once"
    return "\n".join(
        [
            f"{claim.name} ({claim.paper}): {claim.sentence}",
            f"  measured  {claim.measured}",
            f"  rule      {claim.rule.text}",
            f"  cost      {amount}, about {claim.seconds} s on one core",
        ]
    )


def _text(found: Reproduction, folder: str) -> str:
    counts = Counter(each.verdict for each in found.findings)
    summary = ", ".join(f"{verdict}: {count}" for verdict, count in counts.items())
    parts = [_finding(each) for each in found.findings]
    return "\n\n".join([*parts, f"{summary}; data {found.data}, measurements in {folder}"])


def _finding(found: Finding) -> str:
    claim = found.claim
    lines = [f"{claim.name} ({claim.paper}): {claim.sentence}", f"  verdict   {found.verdict}"]
    lines += [f"  measured  {claim.measured}: {_figure(found)}"]
    if found.beside:
        lines.append("            " + "; ".join(f"{name}: {_number(value)}" for name, value in found.beside.items()))
    lines += [f"  rule      {claim.rule.text}", f"  scale     {claim.scale}"]
    return "\n".join([*lines, *([f"  note      {found.note}"] if found.note else [])])


def _figure(found: Finding) -> str:
    judged, number = found.judgment, len(found.seeds)
    amount = f"{number} seed{'' if number == 1 else 's'}" if found.claim.chance else "no chance"
    if found.cases is not None:
        return f"{_number(judged.value)}, {found.cases:,} cases, {amount}"
    if judged.low is None or judged.high is None:
        return f"{_number(judged.value)}, no interval, {amount}"
    return f"{_number(judged.value)} ({_number(judged.low)} to {_number(judged.high)} at 95 %), {amount}"


def _number(value: float) -> str:
    """Three decimals; whole numbers as they are, and tiny ones by their first digits."""
    if value == round(value) and abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:,.3f}" if 1e-3 <= abs(value) < 1e9 else f"{value:.2g}"
