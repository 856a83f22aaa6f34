"""`nasight export`: the found network as one plain Python file, ONNX or torch.export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from nasight.cli._shared import DataFolder, Json, examples, given, option, size_text
from nasight.errors import RequestError

EXAMPLES = examples(
    "nasight export runs/a --python net.py",
    "nasight export runs/a --torch-export net.pt2",
    "nasight export --space darts --arch DARTS_V2 --python darts_v2.py",
)


def export(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A search, or one training: its RUN/train/.../seed-0.")
    ] = None,
    space: Annotated[
        str | None,
        option("A space by name, or FILE.py:NAME, with --arch; or the code that RUN was made with."),
    ] = None,
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
    from nasight.studies import exportable, write_export

    if not (python or onnx or torch_export or genotype):
        raise RequestError("say what to export: --python net.py, --onnx net.onnx, --torch-export net.pt2 or --genotype")
    what = exportable(
        run,
        space=space,
        arch=arch,
        inputs=_shape(inputs),
        classes=classes,
        size=given(channels=channels, cells=cells, width=width),
        data_folder=data_folder,
        **given(layers=layers),
    )
    design = what.design
    shown: dict[str, Any] = {
        "space": design.space.name,
        "architecture": design.space.format(design.arch),
        "inputs": list(design.inputs),
        "classes": design.classes,
        "trained": what.trained is not None,
    }
    if python or onnx or torch_export:
        files = {"python": python, "torch_export": torch_export, "onnx": onnx}
        shown |= write_export(what, **{name: _place(file) for name, file in files.items() if file is not None})
        if python and what.trained is not None and what.statistics is None:
            typer.echo("the data is not here, so the file does not say how inputs are normalized", err=True)
    typer.echo(json.dumps(shown) if as_json else _text(shown, genotype))


def _text(shown: dict[str, Any], genotype: bool) -> str:
    if genotype and "parameters" not in shown:
        return str(shown["architecture"])
    lines = [f"{shown['architecture']}, {size_text(shown)}", ""]
    names = {"python": "python", "weights": "weights", "torch_export": "torch.export", "onnx": "onnx"}
    lines += [f"  {word:<13} {shown[key]}" for key, word in names.items() if shown.get(key)]
    if "difference" in shown:
        lines.append(f"  {'checked':<13} outputs differ from nasight's network by {shown['difference']:.1g} at most")
    if not shown["trained"]:
        lines.append(f"  {'weights':<13} not trained: nasight train makes them")
    return "\n".join(lines)


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
