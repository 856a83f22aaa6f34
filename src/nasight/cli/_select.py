"""`nasight select`: choose a feature map for a linear model with shared weights."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli._shared import DataFolder, Json, Overwrite, Seed, examples, option, seconds
from nasight.errors import RequestError

if TYPE_CHECKING:
    from nasight.features import SelectedMap
    from nasight.trust.bounds import Bound

EXAMPLES = examples(
    "nasight select --maps fourier --data cifar-10 --configs 256 --dimension 10000 --out runs/f",
    "nasight select --maps ngrams --data imdb --dimension 1048576 --out runs/g",
    "nasight select --data my.csv --target label --bounds",
    "nasight select --resume runs/f",
)


def select(
    maps: Annotated[str, typer.Option(help="fourier (tables, images) or ngrams (texts).")] = "fourier",
    data: Annotated[str, typer.Option(help="A data set by name, or a file of yours.")] = "digits",
    target: Annotated[str | None, option("The column of a file that holds the labels.", metavar="NAME")] = None,
    method: Annotated[str, typer.Option(help="A row of the method table; see --list.")] = "fast-weight-sharing",
    configs: Annotated[int | None, option("Configurations to begin with; the method's own number else.")] = None,
    dimension: Annotated[int, typer.Option(help="Features of the chosen map.", metavar="D")] = 10_000,
    validation: Annotated[
        str | None, option("A share, a number of last rows, or test (half of it); the data's own rule else.")
    ] = None,
    examples: Annotated[int | None, option("At most this many training rows.", metavar="N")] = None,
    score: Annotated[str, typer.Option(help="Compare configurations by accuracy or loss.")] = "accuracy",
    max_calls: Annotated[int | None, option("Stop after this many solver calls.", metavar="N")] = None,
    max_seconds: Annotated[str | None, option("Stop after this time: 90s, 5m, 1h.", metavar="TIME")] = None,
    clock: Annotated[str, typer.Option(help="Which seconds count: wall or cpu.")] = "wall",
    penalty: Annotated[float, typer.Option(help="Ridge's lambda.")] = 0.5,
    memory: Annotated[str | None, option("What a solver call may take: 4G, 500M.", metavar="SIZE")] = None,
    published: Annotated[
        bool, typer.Option("--published", help="N-grams and their SVM as in the authors' released code.")
    ] = False,
    seed: Seed = 0,
    threads: Annotated[int | None, typer.Option(help="How many share the work.")] = None,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="Also train each incumbent alone, outside the clock, and test it.")
    ] = False,
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Say what learning theory promises of this choice, and under what.")
    ] = False,
    delta: Annotated[float, typer.Option(help="The bounds' probability of failure, in each of their steps.")] = 0.05,
    out: Annotated[
        str | None, option("The run folder (default: runs/select-MAPS-DATA-METHOD-SEED).", metavar="FOLDER")
    ] = None,
    resume: Annotated[str | None, option("Resume an interrupted run.", metavar="FOLDER")] = None,
    overwrite: Overwrite = False,
    folder: DataFolder = None,
    listing: Annotated[bool, typer.Option("--list", help="List the methods and leave.")] = False,
    as_json: Json = False,
) -> None:
    """Choose a feature map for a linear model with shared weights."""
    from nasight.features import resume as resume_selection
    from nasight.features import select as start
    from nasight.studies import folder_name

    if listing:
        _list(as_json)
        return
    _check_delta(delta)
    with _progress() as progress:
        if resume is not None:
            selection = resume_selection(resume, data_folder=folder, progress=progress)
        else:
            selection = start(
                maps,
                data,
                target=target,
                method=method,
                configs=configs,
                dimension=dimension,
                validation=_validation(validation),
                examples=examples,
                score=score,
                max_calls=max_calls,
                max_seconds=None if max_seconds is None else seconds(max_seconds),
                clock=clock,
                seed=seed,
                threads=threads,
                oracle=oracle,
                memory=memory,
                penalty=penalty,
                published=published,
                out=out or f"runs/select-{maps}-{folder_name(data)}-{method}-{seed}",
                overwrite=overwrite,
                data_folder=folder,
                progress=progress,
            )
    from nasight.trust.bounds import of_selection

    promised = of_selection(selection.result, delta) if bounds else []
    if as_json:
        shown = {"bounds": [bound.to_dict() for bound in promised]} if bounds else {}
        typer.echo(json.dumps({**selection.result, **shown}))
    else:
        typer.echo("\n".join([*_describe(selection), *(_promises(promised) if bounds else [])]))


def _promises(bounds: list[Bound]) -> list[str]:
    """A line per bound, and what they assume below, each text once."""
    notes = list(dict.fromkeys(bound.assumptions for bound in bounds))
    lines = ["", "excess risk, at most, of losses between 0 and 1:"]
    for bound in bounds:
        order = "" if bound.constant is None else ", up to a constant"
        verdict = "vacuous" if bound.vacuous() else f"with probability {bound.probability:.2f}"
        lines.append(f"  {bound.name:14} {bound.value:8.4f}  {verdict}{order} [{notes.index(bound.assumptions) + 1}]")
    return [
        *lines,
        *(f"  [{number}] assumes: {note}" for number, note in enumerate(notes, 1)),
        "  e* is taken as 0 (over the best configuration as trained here) and ||w*|| as that of the weights found.",
        "  Here training has a penalty; and what shared weights miss of the least validation loss adds to the bound.",
    ]


def _describe(selection: SelectedMap) -> list[str]:
    r = selection.result
    config = ", ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                       for name, value in r["config"].items())  # fmt: skip
    how = "trained alone" if r["validation"] == "alone" else "shared weights: the budget ended before its own solve"
    lines = [f"chosen      {config}", f"validation  {100 * r['validation_accuracy']:.2f} % ({how})"]
    if r["test_accuracy"] is not None:
        lines.append(f"test        {100 * r['test_accuracy']:.2f} %")
    if r["oracle_test_accuracy"] is not None:
        lines.append(f"oracle      {100 * r['oracle_test_accuracy']:.2f} % (test, trained alone at the full dimension)")
    cost = f"{r['calls']} solver calls for {r['configs']} configurations, {r['seconds']:.1f} s"
    return [*lines, f"cost        {cost}, {r['peak_bytes'] / 2**20:,.0f} MiB in the solver", f"run         {r['run']}"]


def _validation(text: str | None) -> float | int | str | None:
    if text is None or text == "test":
        return text
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        raise RequestError(f"--validation is a share like 0.2, a number of rows, or test, got {text!r}") from None


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise RequestError(f"--delta lies between 0 and 1, got {delta}")


def _list(as_json: bool) -> None:
    from nasight.features import SELECTION_METHODS

    if as_json:
        rows = [{"method": m.name, "configs": m.configs, "about": m.about} for m in SELECTION_METHODS.values()]
        typer.echo(json.dumps({"methods": rows}))
        return
    for row in SELECTION_METHODS.values():
        typer.echo(f"{row.name:20} {row.configs:4}  {row.about}")


def call_line(row: dict[str, Any], total: int | None) -> str:
    """A row of history in words."""
    many = f"{row['configs']} configurations" if row["configs"] > 1 else "1 configuration"
    test = "" if row["test_accuracy"] is None else f", test {100 * row['test_accuracy']:.2f} %"
    return (
        f"call {row['calls']}{f'/{total}' if total else ''}: {many} at {row['dimension']:,} features, "
        f"{row['seconds']:.1f} s, leading with validation {100 * row['validation_accuracy']:.2f} % "
        f"({row['validation']}){test}"
    )


@contextmanager
def _progress() -> Iterator[Callable[[dict[str, Any], int | None], None]]:
    """A bar with the time left on a terminal, a line per call otherwise; both on standard error."""
    if not sys.stderr.isatty():
        yield lambda row, total: typer.echo(call_line(row, total), err=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("calls"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("calls", total=None)

        def show(row: dict[str, Any], total: int | None) -> None:
            bars.update(task, completed=row["calls"], total=total)
            bars.console.print(call_line(row, total), highlight=False)

        yield show
