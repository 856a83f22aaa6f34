"""`nasight explain`: can the arg max of a search be trusted, what to do if not, and one page that shows why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli._explain_options import Epochs, HeldOut, Level, Preset, RunData, RunSpace, Seeds
from nasight.cli._shared import DataFolder, Device, Json, choice, counters, counting, examples, option, table
from nasight.options import OUTPUT, WHAT

if TYPE_CHECKING:
    from nasight.studies import Explanation

EXAMPLES = examples(
    "nasight explain runs/a",
    "nasight explain runs/a runs/b runs/c --json",
    "nasight explain runs/a --resolve",
    "nasight explain runs/a --deep --out report.html",
)


def explain(
    runs: Annotated[list[str], typer.Argument(help="A finished search; others, of other seeds or methods, beside it.")],
    deep: Annotated[
        bool, choice("Compute the costly sections too: landscape, scores; minutes.", "--deep", group=WHAT)
    ] = False,
    resolve: Annotated[
        bool,
        choice(
            "Retrain the candidates briefly, as --preset, --epochs and --seeds say, and say which is best.",
            "--resolve",
            group=WHAT,
        ),
    ] = False,
    data: RunData = None,
    space: RunSpace = None,
    level: Level = 0.95,
    examples: HeldOut = None,
    preset: Preset = "tiny",
    epochs: Epochs = None,
    seeds: Seeds = 1,
    device: Device = "auto",
    data_folder: DataFolder = None,
    out: Annotated[
        str | None, option("The page (default: RUN/report.html).", metavar="report.html", group=OUTPUT)
    ] = None,
    as_json: Json = False,
) -> None:
    """Say of each decision of a search whether it is safe, how sure that is, and what to do if it is not."""
    from nasight.studies import report

    with counters() as begin:
        found = report(
            *runs,
            out=out,
            write=not as_json or out is not None,
            deep=deep,
            note=begin,
            progress=begin("options measured"),
            level=level,
            examples=examples,
            data=data,
            data_folder=data_folder,
            space=space,
            device=device,
        )
    trained = _resolve(found.explanation, preset, epochs, seeds, data, data_folder, space, device) if resolve else None
    if as_json:
        value = found.to_dict() | ({} if trained is None else {"resolved": trained})
        typer.echo(json.dumps(value, allow_nan=False))
        return
    typer.echo(_text(found.explanation, trained))
    for other in found.others:
        counted = ", ".join(f"{number} {verdict}" for verdict, number in other.counts.items())
        typer.echo(f"\nBeside it: {other.about['method']} ({other.about['objective']}), {other.runs[0]}: {counted}")
    if found.unwritten is not None:
        typer.echo(f"nasight: the page could not be kept: {found.unwritten}; name a place with --out", err=True)
    else:
        typer.echo(f"\nThe page: {found.path}")


def _resolve(
    found: Explanation,
    preset: str,
    epochs: int | None,
    seeds: int,
    data: str | None,
    data_folder: str | None,
    space: str | None,
    device: str,
) -> list[dict[str, Any]]:
    """The candidates after a short training, best first; judged by held-out training examples, not by the test part."""
    from nasight.searching import Run
    from nasight.studies import resolved

    run = Run(found.runs[0], space=space)
    dataset = run.load_data(data, data_folder=data_folder, may_differ=True)
    with counting("training", "candidates trained", transient=True) as count:
        how = {"preset": preset, "epochs": epochs, "seeds": seeds, "device": device}
        return resolved(run, found.candidates, dataset, progress=count, **how)


def _text(found: Explanation, trained: list[dict[str, Any]] | None) -> str:
    about, counts = found.about, found.counts
    several = len(found.runs) > 1
    who = f"seeds {', '.join(map(str, about['seed']))}" if several else f"seed {about['seed']}"
    lines = [
        f"{about['method']} ({about['objective']}) on {about['space']}, {about['data']}, {who}",
        f"{counts['safe']} of {len(found.decisions)} decisions safe, {counts['unsafe']} unsafe, "
        f"{counts['unknown']} unknown, each at {100 * found.level:g} % on {about['examples']} held-out examples",
        "",
        *_table(found),
    ]
    open_ = [d for d in found.decisions if d["verdict"] != "safe"]
    if open_:
        lines += ["", "Evidence"]
        lines += [f"  {d['name']}: {d['evidence']}" for d in open_]
    lines += ["", "What to do"]
    for advice in found.advice:
        lines.append(f"  {advice.action}: {advice.why}")
        if advice.command:
            lines.append(f"    {advice.command}")
    lines += [f"  (note: {note})" for note in found.notes]
    if trained is not None:
        from nasight.data import Units

        units = Units.of(about)
        lines += ["", "Candidates after a short training, on held-out training examples"]
        lines += [
            f"  {units.text(row['accuracy'])}  {row['architecture']}{'  (found)' if row['found'] else ''}"
            for row in trained
        ]
    elif any("retrain" in advice.action for advice in found.advice):
        lines += ["", "Candidates", *(f"  {text}" for text in found.candidates)]
    return "\n".join(lines)


def _table(found: Explanation) -> list[str]:
    from nasight.data import Units

    margin = Units.of(found.about).loss_axis.replace("loss", "margin", 1) if Units.of(found.about).loss else "margin"
    rows = [("decision", "choice", "verdict", margin, "confidence", "advice")]
    for d in found.decisions:
        share = f"{100 * min(d['confidence'], 0.9999):.2f} %"
        rows.append((d["name"], d["choice"], d["verdict"], f"{d['margin']:+.4f}", share, d["advice"]))
    return table(rows, indent="  ")
