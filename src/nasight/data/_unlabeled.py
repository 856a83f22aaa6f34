"""Files of examples without classes: what a trained network is asked about."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from nasight.data._row_files import read_table, table_suffix
from nasight.errors import RequestError


def holds_rows(path: str | Path) -> bool:
    """Whether a file is one that `read_rows` reads, by its name: .npz, .csv or .tsv, the last two perhaps .gz."""
    return Path(path).suffix.lower() == ".npz" or table_suffix(Path(path)) in (".csv", ".tsv")


def read_rows(path: str | Path) -> NDArray[Any]:
    """The examples of a file: the array `x` of an .npz file, or the rows of a table of numbers, (n, columns).

    Parameters
    ----------
    path : a file for which `holds_rows` is true; nothing in it is unpickled.

    >>> _ = (tmp / "new.csv").write_text("width,height\\n1,2\\n3,4\\n")
    >>> read_rows(tmp / "new.csv").shape
    (2, 2)
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        return _npz(path)
    table = read_table(path, "\t" if table_suffix(path) == ".tsv" else ",")
    columns = [table.numbers(place) for place in range(len(table.columns))]
    for name, column in zip(table.columns, columns, strict=True):
        if column is None:
            raise RequestError(f"column {name!r} of {path} holds texts, and a network takes numbers")
    return np.stack([column for column in columns if column is not None], 1)


def _npz(path: Path) -> NDArray[Any]:
    try:
        with path.open("rb") as handle:
            file = np.load(handle, allow_pickle=False)
            names = list(file.files) if isinstance(file, NpzFile) else []
            found: NDArray[Any] | None = file["x"] if "x" in names else None
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, MemoryError) as error:
        raise RequestError(f"{path} cannot be read as an .npz file of plain arrays ({_first_line(error)})") from error
    if found is None:
        raise RequestError(f"{path} lacks the array 'x'; it holds {', '.join(names) or 'nothing'}")
    return found


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
