"""`nasight cell`: the anatomy of a cell - its drawing, width and depth, its variants, how they train."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli._cell_adapted import adapted_cells, adapted_text, default_folder, first_of
from nasight.cli._cell_text import comparison_table, design_object, design_text
from nasight.cli._shared import (
    Cluster,
    DataFolder,
    Device,
    Fit,
    Json,
    Resolution,
    Workers,
    counting,
    examples,
    option,
    plain,
    read_data,
    resumable,
)
from nasight.errors import RequestError

if TYPE_CHECKING:
    from nasight.anatomy import Design
    from nasight.studies import Comparison, Protocol

EXAMPLES = examples(
    "nasight cell DARTS_V2 --json",
    "nasight cell runs/a --out cell.svg",
    "nasight cell DARTS_V2 --widest",
    "nasight cell DARTS_V2 --landscape --data digits --out runs/l",
    "nasight cell DARTS_V2 --variants 13 --kind connections --data cifar-10 --examples 5000 --out runs/v",
    "nasight cell --adapted all --data cifar-10 --regularize --epochs 600 --channels 36 --cells 20 --seeds 8",
)


def cell(
    what: Annotated[
        str | None,
        typer.Argument(
            help=plain(
                "A published cell by name, a Genotype(...), a NAS-Bench-201 string, a JSON file of [node, input, "
                "operation] lists (FILE.json:NAME where it holds several), or a run folder."
            ),
            metavar="NAME|TEXT|FILE|RUN",
        ),
    ] = None,
    adapted: Annotated[
        str | None,
        option(
            "Train these cells and their widest forms alike, and --variants of each (names joined by commas, or all: "
            "the five of the paper's Table 1).",
            metavar="NAMES",
        ),
    ] = None,
    widest: Annotated[
        bool, typer.Option("--widest", help="The widest, shallowest cell with the same operations.")
    ] = False,
    variants: Annotated[int | None, option("Train it and this many random variants alike.", metavar="N")] = None,
    kind: Annotated[str, typer.Option(help="What varies: connections or operations.")] = "connections",
    which: Annotated[str | None, option("Which cell varies: normal (default), reduce or both.", metavar="CELL")] = None,
    distinct_inputs: Annotated[
        bool, typer.Option("--distinct-inputs", help="A variant's node reads different nodes, as in DARTS's space.")
    ] = False,
    data: Annotated[
        str, typer.Option(help="A data set by name, an .npz file, or photos in a folder or .csv.")
    ] = "digits",
    resolution: Resolution = None,
    fit: Fit = None,
    epochs: Annotated[int, typer.Option(help="Epochs of each training.", metavar="N")] = 10,
    batch_size: Annotated[int, typer.Option(help="Examples per step.", metavar="N")] = 80,
    lr: Annotated[str, typer.Option(help="Learning rates, joined by commas.", metavar="A,B")] = "0.025",
    seeds: Annotated[int, typer.Option(help="Trainings of each cell at each learning rate.", metavar="N")] = 3,
    channels: Annotated[int, typer.Option(help="Channels of the first cell.", metavar="N")] = 8,
    cells: Annotated[
        int | None, option("Cells of a network (default: 5; NAS-Bench-201: 1 in each stage).", metavar="N")
    ] = None,
    examples: Annotated[int | None, option("At most this many training examples.", metavar="N")] = None,
    test_examples: Annotated[int | None, option("At most this many test examples.", metavar="N")] = None,
    evaluations: Annotated[int, typer.Option(help="Points of a curve per epoch.", metavar="N")] = 1,
    augment: Annotated[bool, typer.Option("--augment", help="Augment images as their data set declares.")] = False,
    regularize: Annotated[
        bool, typer.Option("--regularize", help="Augment with cutout 16, auxiliary head, drop path to 0.2 (Table 1).")
    ] = False,
    target_loss: Annotated[
        float | None, option("Count steps to this test loss (default: one that all reach).", metavar="LOSS")
    ] = None,
    landscape: Annotated[
        bool, typer.Option("--landscape", help="Train it once; map loss and gradient variance around its weights.")
    ] = False,
    points: Annotated[int, typer.Option(help="Points per side of the landscape.", metavar="N")] = 21,
    seed: Annotated[
        int, typer.Option(help="The choice of variants follows from it, or the network and plane of a landscape.")
    ] = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Device = "auto",
    out: Annotated[
        str | None,
        option(
            "Draw it there (a folder or FILE.svg), or the run of --variants, --landscape.",
            metavar="PATH",
        ),
    ] = None,
    data_folder: DataFolder = None,
    as_json: Json = False,
) -> None:
    """Draw a cell, say how wide and deep it is among all cells of its space, and train its variants alike."""
    from nasight.anatomy import read_cells
    from nasight.anatomy import widest as widened
    from nasight.spaces import load
    from nasight.studies import Protocol

    if (what is None) == (adapted is None):
        raise RequestError("give one cell, or several with --adapted; nasight cell --help has examples")
    design = read_cells(what or first_of(adapted or ""))
    if variants is None and not landscape and adapted is None:
        shown = widened(design) if widest else design
        drawn = None if out is None else _draw(shown, _drawing_path(shown, out))
        found = {**design_object(shown), "svg": drawn}
        typer.echo(json.dumps(found) if as_json else design_text(found))
        return
    protocol = Protocol(
        epochs=epochs,
        batch_size=batch_size,
        channels=channels,
        cells=load(design.space).study_cells if cells is None else cells,
        examples=examples,
        test_examples=test_examples,
        evaluations=evaluations,
        augment=augment,
        regularize=regularize,
    )
    if seeds < 1:
        raise RequestError(f"--seeds must be at least 1, got {seeds}")
    source = read_data(data, data_folder, resolution=resolution, fit=fit)
    if adapted is not None:
        if landscape or widest or kind != "connections" or which is not None or distinct_inputs:
            raise RequestError("--adapted trains cells, their widest forms and, with --variants, random connections")
        found = adapted_cells(
            adapted,
            source,
            protocol,
            _rates(lr),
            random=variants or 0,
            seeds=seeds,
            variant_seed=seed,
            out=out or default_folder(data),
            data_folder=data_folder,
            workers=workers,
            cluster=cluster,
            device=device,
        )
        typer.echo(json.dumps(found) if as_json else adapted_text(found))
        return
    if variants is None:
        shown = widened(design) if widest else design
        found = _landscape(
            shown, source, protocol, _rates(lr)[0], points, seed, out, data_folder, workers, cluster, device
        )
        typer.echo(json.dumps(found) if as_json else _landscape_text(found))
        return
    if landscape:
        raise RequestError("give one of --variants and --landscape")
    chosen = _variants(design, variants, kind, which, distinct_inputs, seed)
    designs = [design, *([replace(widened(design), name=f"{design.name} widest")] if widest else []), *chosen]
    folder = out or f"runs/{_file_name(design.name)}-{kind}"
    compared = _train(
        designs, source, protocol, _rates(lr), range(seeds), folder, data_folder, workers, cluster, device
    )
    found = {
        **design_object(design),
        "svg": _draw(design, Path(folder) / "cell.svg"),
        "kind": kind,
        "variants": [design_object(d) for d in designs[1:]],
        "run": folder,
        **compared.to_dict(target_loss),
        "curves": _draw_curves(compared, Path(folder) / "curves.svg"),
    }
    typer.echo(json.dumps(found) if as_json else f"{design_text(found)}\n\n{comparison_table(found)}")


def _variants(design: Design, count: int, kind: str, which: str | None, distinct: bool, seed: int) -> list[Design]:
    from nasight.anatomy import variants
    from nasight.spaces import load

    repeats = None if load(design.space).repeated_inputs and not distinct else False
    return variants(design, count, kind=kind, which=which, repeats=repeats, seed=seed)


def _train(
    designs: Sequence[Design],
    data: Any,
    protocol: Protocol,
    lrs: Sequence[float],
    seeds: Sequence[int],
    folder: str,
    data_folder: str | None,
    workers: int | None,
    cluster: str | None,
    device: str,
) -> Comparison:
    from nasight.compute import cluster as cluster_at
    from nasight.studies import compare_cells

    with (
        cluster_at(cluster) as executor,
        counting("trained", "trainings finished", transient=True) as report,
        resumable(folder),
    ):
        return compare_cells(
            designs,
            data,
            protocol=protocol,
            lrs=lrs,
            seeds=seeds,
            out=folder,
            data_folder=data_folder,
            executor=executor,
            workers=workers,
            progress=report,
            device=device,
        )


def _landscape(
    design: Design,
    data: Any,
    protocol: Protocol,
    lr: float,
    points: int,
    seed: int,
    out: str | None,
    data_folder: str | None,
    workers: int | None,
    cluster: str | None,
    device: str,
) -> dict[str, Any]:
    from nasight.anatomy import landscape_run
    from nasight.compute import cluster as cluster_at
    from nasight.report import landscape_pictures
    from nasight.studies import trained_cell

    folder = Path(out or f"runs/{_file_name(design.name)}-landscape")
    with resumable(folder):
        training, network, dataset = trained_cell(
            design, data, out=folder, protocol=protocol, lr=lr, seed=seed, data_folder=data_folder, device=device
        )
        with (
            cluster_at(cluster) as executor,
            counting("rows", "rows of the landscape finished", transient=True) as report,
        ):
            measured = landscape_run(
                network,
                dataset,
                out=folder / "landscape",
                seed=seed,
                points=points,
                executor=executor,
                workers=workers,
                progress=report,
                device=device,
            )
    texts = landscape_pictures(measured.landscape)
    pictures = [_write(folder / "landscape" / name, text) for name, text in texts.items()]
    return {
        **design_object(design),
        "svg": _draw(design, folder / "cell.svg"),
        "accuracy": training.accuracy,
        "landscape": measured.summary(),
        "pictures": pictures,
        "run": str(folder),
    }


def _landscape_text(found: dict[str, Any]) -> str:
    lines = [design_text(found), "", f"  accuracy         {found['accuracy']:.2f} %"]
    for name, value in found["landscape"].items():
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        lines.append(f"  {name.replace('_', ' '):<16} {shown}")
    return "\n".join([*lines, *(f"  picture          {path}" for path in found["pictures"])])


def _rates(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise RequestError(f"--lr must be numbers joined by commas, got {text!r}") from None


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:60] or "cell"


def _drawing_path(design: Design, out: str | None) -> Path:
    if out is not None and out.endswith(".svg"):
        return Path(out)
    return Path(out or ".") / f"{_file_name(design.name)}.svg"


def _draw(design: Design, path: Path) -> str:
    from nasight.report import design_svg

    return _write(path, design_svg(design))


def _draw_curves(compared: Comparison, path: Path) -> str:
    """Test loss and accuracy against the steps, at each learning rate; cells in the order of their widths."""
    from nasight.report import curves_svg

    return _write(path, curves_svg(compared))


def _write(path: Path, text: str) -> str:
    from nasight.runs import write_atomic

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot make the folder {path.parent}: {error.strerror}; choose another --out") from error
    if path.is_dir():
        raise RequestError(f"{path} is a folder; choose another --out")
    write_atomic(path, text.encode())
    return str(path)
