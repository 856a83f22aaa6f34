"""`nasight predict`: the classes of new files, by what was trained."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from unicodedata import category

import typer

from nasight.cli._shared import DataFolder, Json, counting, examples, option
from nasight.errors import RequestError
from nasight.options import MACHINE, OUTPUT, WHAT

if TYPE_CHECKING:
    from nasight.studies import Model, Prediction

EXAMPLES = examples(
    "nasight predict runs/a new/*.jpg",
    "nasight predict runs/a new --top 3 --csv found.csv",
    "nasight predict runs/a rows.npz --json",
    "nasight predict runs/houses new.csv",
)


def predict(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run that has a model, a model folder, or a finished training.")
    ],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            help="Images, folders of images, .npz files with an array x, tables (.csv, .tsv, .jsonl, .parquet).",
        ),
    ],
    top: Annotated[int | None, option("The likeliest K classes, not just one.", metavar="K", group=OUTPUT)] = None,
    csv_file: Annotated[
        str | None, option("Write the lines into this file.", "--csv", metavar="FILE", group=OUTPUT)
    ] = None,
    as_json: Json = False,
    space: Annotated[
        str | None, option("The code of the network, where it is your own: FILE.py:NAME.", group=WHAT)
    ] = None,
    data: Annotated[
        str | None,
        option("The data of a training that has no model folder (default: found by its name).", group=WHAT),
    ] = None,
    data_folder: DataFolder = None,
    batch_size: Annotated[
        int | None, option("Examples read and computed at once (default: up to 64).", metavar="N", group=MACHINE)
    ] = None,
) -> None:
    """Predict the classes of new files with their probabilities, or their labels or numbers.

    Files that cannot be read are listed and skipped; the exit code is then 2.
    """
    if as_json and csv_file is not None:
        raise RequestError("give --json or --csv, not both")
    if top is not None and top < 1:
        raise RequestError(f"--top must be at least 1, got {top}")
    if csv_file is not None and not Path(csv_file).parent.is_dir():
        raise RequestError(f"there is no folder {str(Path(csv_file).parent)!r} to write {Path(csv_file).name} into")
    listed = _listed(files)
    from nasight.studies import load_model

    model = load_model(run, space=space, data=data, data_folder=data_folder)
    failed = list[dict[str, str]]()

    def note(file: str, why: str) -> None:
        typer.echo(f"nasight: {why}", err=True)
        failed.append({"file": _shown(file), "why": why})

    with _progress(len(listed), shown=as_json or csv_file is not None or not sys.stdout.isatty()) as count:
        found = model.predictions(count(listed), batch_size=batch_size, failed=note)
        if as_json:
            _print_json(run, model, found, failed, top)
        else:
            _write_lines(found, _header(model, listed, top), top or 1, csv_file)
    if failed:
        raise RequestError(f"{len(failed)} of {len(listed)} files cannot be read; the others are done")


def _listed(given: list[str]) -> list[str]:
    """The files that were named, and the images in the folders that were."""
    from nasight.data import image_files

    found = list[str]()
    for each in given:
        path = Path(each)
        if not path.exists():
            raise RequestError(f"there is no file or folder {each!r}")
        inside = [str(file) for file in image_files(path)] if path.is_dir() else [each]
        if not inside:
            raise RequestError(f"there are no images in {each!r}")
        found += inside
    return found


@contextmanager
def _progress(total: int, *, shown: bool) -> Iterator[Callable[[list[str]], Iterator[str]]]:
    """Inside, files that are counted as they are handed out; few, or lines on the same terminal, are not counted."""
    if total < 100 or not shown:
        yield iter
        return
    with counting("files", "files", transient=True) as count:

        def counted(files: list[str]) -> Iterator[str]:
            for done, file in enumerate(files, 1):
                yield file
                count(done, total)

        yield counted


def _header(model: Model, files: list[str], top: int | None) -> list[str]:
    from nasight.data import holds_rows, holds_table

    rows = ["row"] if any(holds_rows(file) or holds_table(Path(file)) for file in files) else []
    if model.kind != "classes":
        return ["file", *rows, *(["labels"] if model.kind == "labels" else []), *map(_shown, model.classes)]
    further = range(2, min(top or 1, len(model.classes)) + 1)
    return [
        "file",
        *rows,
        "class",
        "probability",
        *(f"{name} {n}" for n in further for name in ("class", "probability")),
    ]


def _write_lines(found: Iterator[Prediction], header: list[str], top: int, file: str | None) -> None:
    """CSV on standard output, line by line, or into a file at once."""
    from nasight.runs import write_atomic

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")

    def flush() -> None:
        if file is None:
            typer.echo(text.getvalue(), nl=False)
            text.seek(0)
            text.truncate()

    writer.writerow(header)
    flush()
    for each in found:
        row = [] if "row" not in header else ["" if each.row is None else each.row]
        best = [cell for name, share in each.best(top) for cell in (_shown(name), f"{share:.6f}")]
        if each.kind != "classes":
            best = [
                *([_shown(each.label)] if each.kind == "labels" else []),
                *(f"{v:.6g}" for v in each.named.values()),
            ]
        writer.writerow([_shown(each.file), *row, *best])
        flush()
    if file is not None:
        write_atomic(Path(file), text.getvalue().encode())


def _print_json(
    run: str, model: Model, found: Iterator[Prediction], failed: list[dict[str, str]], top: int | None
) -> None:
    """One object, printed piece by piece, so that it need not be held."""
    head = json.dumps({"run": run, "model": str(model.folder), "predictions": []})
    typer.echo(head.removesuffix("]}"), nl=False)
    for number, each in enumerate(found):
        typer.echo((", " if number else "") + json.dumps(_object(each, top)), nl=False)
    typer.echo(f"], {json.dumps({'failed': failed}).removeprefix('{')}")


def _object(each: Prediction, top: int | None) -> dict[str, Any]:
    row = {} if each.row is None else {"row": each.row}
    if each.kind != "classes":
        named = {_shown(name): float(f"{value:.8g}") for name, value in each.named.items()}
        likely = {"labels": [name for name, share in named.items() if share > 0.5]} if each.kind == "labels" else {}
        return {"file": _shown(each.file), **row, **likely, "probabilities" if likely else "numbers": named}
    best = {_shown(name): float(f"{share:.8g}") for name, share in each.best(top)}
    return {
        "file": _shown(each.file),
        **row,
        "class": _shown(each.label),
        "probability": float(f"{each.probability:.8g}"),
        "probabilities": best,
    }


def _shown(text: str) -> str:
    """A name as a terminal may print it: bytes that are no UTF-8, and signs that would command it, are spelled out."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    return "".join(sign if sign == "\n" or category(sign) != "Cc" else repr(sign)[1:-1] for sign in plain)
