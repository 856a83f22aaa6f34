"""`nasight export`: the found network as one plain Python file, ONNX or torch.export."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasight.cli._shared import DataFolder, Json, option
from nasight.errors import RequestError

if TYPE_CHECKING:
    from torch import nn

    from nasight.export import Design
    from nasight.runs import RunFolder
    from nasight.spaces import Space

EXAMPLES = (
    "Examples: nasight export runs/a --python net.py | nasight export runs/a --torch-export net.pt2 | "
    "nasight export --space darts --arch DARTS_V2 --python darts_v2.py"
)


@dataclass(frozen=True)
class _Request:
    """What to export, and the trained weights and channel statistics that there are."""

    design: Design
    trained: nn.Module | None = None
    statistics: tuple[Sequence[float], Sequence[float]] | None = None


def export(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A search, or one training: its RUN/train/.../seed-0.")
    ] = None,
    space: Annotated[str | None, option("A space by name, or FILE.py:NAME, with --arch instead of RUN.")] = None,
    arch: Annotated[str | None, option("An architecture of this space.", metavar="TEXT")] = None,
    python: Annotated[str | None, option("One readable file that needs torch alone.", metavar="net.py")] = None,
    onnx: Annotated[str | None, option("An ONNX file.", metavar="net.onnx")] = None,
    torch_export: Annotated[str | None, option("A file for torch.export.load.", metavar="net.pt2")] = None,
    genotype: Annotated[bool, typer.Option("--genotype", help="Print the text that other tools read.")] = False,
    inputs: Annotated[
        str | None, option("Shape of an example (default: the run's, else 3,32,32).", metavar="C,H,W")
    ] = None,
    classes: Annotated[int | None, option("Classes (default: the run's, else 10).", metavar="N")] = None,
    channels: Annotated[int | None, option("Channels of the first cell (default: as trained).", metavar="N")] = None,
    cells: Annotated[int | None, option("Cells.", metavar="N")] = None,
    width: Annotated[int | None, option("Width of the layers (mlp).", metavar="N")] = None,
    layers: Annotated[int | None, option("Layers (mlp, without RUN).", metavar="N")] = None,
    data_folder: DataFolder = None,
    as_json: Json = False,
) -> None:
    """The found network as one plain Python file, ONNX or torch.export."""
    if not (python or onnx or torch_export or genotype):
        raise RequestError("say what to export: --python net.py, --onnx net.onnx, --torch-export net.pt2 or --genotype")
    size = {"channels": channels, "cells": cells, "width": width}
    changes = {key: value for key, value in size.items() if value is not None}
    request = _request(run, space, arch, _shape(inputs), classes, changes, layers, data_folder)
    design = request.design
    said: dict[str, Any] = {
        "space": design.space.name,
        "architecture": design.space.format(design.arch),
        "inputs": list(design.inputs),
        "classes": design.classes,
        "trained": request.trained is not None,
    }
    if python or onnx or torch_export:
        network = (request.trained or _fresh(design)).eval()
        said["parameters"] = sum(
            p.numel() for name, p in network.named_parameters() if not name.startswith("auxiliary.")
        )
        if python:
            said |= _write_python(request, network, _place(python))
        if torch_export:
            from nasight.export import to_torch_export

            apart = to_torch_export(network, design.inputs, _place(torch_export))
            said["difference"] = max(apart, said.get("difference", 0.0))
            said["torch_export"] = torch_export
        if onnx:
            from nasight.export import to_onnx

            apart = to_onnx(network, design.inputs, _place(onnx))
            said["difference"] = max(apart, said.get("difference", 0.0))
            said["onnx"] = onnx
    typer.echo(json.dumps(said) if as_json else _text(said, genotype))


def _write_python(request: _Request, network: nn.Module, path: Path) -> dict[str, Any]:
    """The file and, where there are trained weights, theirs beside it; checked against nasight's network first."""
    import torch

    from nasight.export import fitted, module_from, python_source, same_outputs
    from nasight.runs import write_atomic

    weights = path.with_suffix(".pt") if request.trained is not None else None
    named = None if weights is None else weights.name
    plain = module_from(python_source(request.design))
    state = fitted(network.state_dict(), plain)
    plain.load_state_dict(state)
    apart = same_outputs(network, plain, request.design.inputs)
    if weights is not None:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomic(weights, buffer.getvalue())
    write_atomic(path, python_source(request.design, weights=named, statistics=request.statistics).encode())
    return {"python": str(path), "weights": None if weights is None else str(weights), "difference": apart}


def _text(said: dict[str, Any], genotype: bool) -> str:
    if genotype and "parameters" not in said:
        return str(said["architecture"])
    lines = [f"{said['architecture']}, {said['parameters']:,} parameters", ""]
    names = {"python": "python", "weights": "weights", "torch_export": "torch.export", "onnx": "onnx"}
    lines += [f"  {word:<13} {said[key]}" for key, word in names.items() if said.get(key)]
    if "difference" in said:
        lines.append(f"  {'checked':<13} outputs differ from nasight's network by {said['difference']:.1g} at most")
    if not said["trained"]:
        lines.append(f"  {'weights':<13} not trained: nasight train makes them")
    return "\n".join(lines)


def _request(
    run: str | None,
    space: str | None,
    arch: str | None,
    inputs: tuple[int, ...] | None,
    classes: int | None,
    changes: dict[str, int],
    layers: int | None,
    data_folder: str | None,
) -> _Request:
    from nasight import spaces
    from nasight.export import Design

    if run is not None:
        if space is not None or arch is not None or layers is not None:
            raise RequestError(f"give the run {run} or --space and --arch, not both")
        return _from_run(Path(run), inputs, classes, changes, data_folder)
    if space is None or arch is None:
        missing = "a RUN, or --space and --arch" if space is arch else "--space" if space is None else "--arch"
        raise RequestError(f"there is nothing to export: {missing} is missing")
    where = spaces.load(space, **({} if layers is None else {"layers": layers}))
    return _Request(
        Design(where, where.parse(arch), inputs or (3, 32, 32), classes or 10, where.size(**changes) if changes else {})
    )


def _from_run(
    path: Path, inputs: tuple[int, ...] | None, classes: int | None, changes: dict[str, int], data_folder: str | None
) -> _Request:
    """The trained network where there is one of the size asked for, else a new one of the run's size."""
    from nasight import spaces
    from nasight.export import Design
    from nasight.runs import RunFolder, read_json

    about = read_json(path / "run.json") if (path / "run.json").is_file() else {}
    if about.get("kind") == "train":
        folder = RunFolder.open(path, kind="train")
        where = spaces.load(str(about["space"]))
        return _trained(folder, where, inputs, classes, changes, data_folder)
    folder = RunFolder.open(path, kind="search")
    result, settings = folder.result, about.get("settings", {})
    if result is None:
        raise RequestError(f"the search in {path} is not finished; go on with: nasight search --resume {path}")
    where = spaces.load(str(settings["space"]), **settings.get("space_options", {}))
    trained = _training_of(path, str(result["architecture"]))
    if trained is not None and not changes and inputs is None and classes is None:
        return _trained(trained, where, inputs, classes, changes, data_folder)
    shape = inputs or tuple(about["data"]["inputs"])
    size = {**_size(where, settings), **changes}
    found = where.parse(str(result["architecture"]))
    return _Request(Design(where, found, shape, classes or len(about["data"]["classes"]), where.size(**size)))


def _training_of(path: Path, architecture: str) -> RunFolder | None:
    """The first finished training of this search's architecture, by the name of its settings and its seed."""
    from nasight.runs import RunFolder

    for place in sorted(path.glob("train/*/seed-*/run.json")):
        folder = RunFolder(place.parent)
        if folder.result is not None and folder.about.get("architecture") == architecture:
            return folder
    return None


def _trained(
    folder: RunFolder,
    where: Space,
    inputs: tuple[int, ...] | None,
    classes: int | None,
    changes: dict[str, int],
    data_folder: str | None,
) -> _Request:
    from nasight.export import Design
    from nasight.training import load_trained

    if changes or inputs is not None or classes is not None:
        raise RequestError(f"{folder.path} is trained, so its sizes, inputs and classes are what they are")
    about = folder.about
    network = load_trained(folder.path, space=where)
    shape, number = tuple(about["data"]["inputs"]), len(about["data"]["classes"])
    design = Design(where, where.parse(about["architecture"]), shape, number, about["settings"]["size"])
    return _Request(design, network, _statistics(about, data_folder))


def _statistics(about: dict[str, Any], data_folder: str | None) -> tuple[list[float], list[float]] | None:
    """Mean and deviation of the rows a network was trained on; None where its data is not here."""
    from nasight.data import load, prepare
    from nasight.training import TrainSettings
    from nasight.training._rows import parts

    try:
        data = load(about["data"]["name"], folder=data_folder)
    except RequestError:
        data = None
    if data is None or data.fingerprint != about["data"]["fingerprint"]:
        typer.echo("the data is not here, so the file does not say how inputs are normalised", err=True)
        return None
    prepared = prepare(data, parts(data, TrainSettings(**about["settings"]))[0])
    return prepared.mean.tolist(), prepared.std.tolist()


def _size(where: Space, settings: dict[str, Any]) -> dict[str, int]:
    """The size that a limit was about, else the one `nasight train` of the same preset builds, else the search's."""
    from nasight.training import settings_for

    if settings.get("params_size"):
        return dict(settings["params_size"])
    try:
        return settings_for(where, settings.get("preset", "small")).size
    except RequestError:
        return dict(settings.get("size", {}))


def _fresh(design: Design) -> nn.Module:
    from nasight.reproducible import seeded

    with seeded(0, "export"):
        return design.network()


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        shape = tuple(int(part) for part in text.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise RequestError(f"--inputs is a shape such as 3,32,32, got {text!r}")
    return shape


def _place(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir():
        raise RequestError(f"there is no folder {str(path.parent)!r} to write {path.name} into")
    if path.is_dir():
        raise RequestError(f"{text!r} is a folder; name a file")
    return path
