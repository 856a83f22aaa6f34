"""Tables from files and from frames: columns of numbers or of texts, with what is missing marked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.data._row_files import read_table, read_text, table_suffix
from nasight.errors import RequestError

MISSING = {"", "?", "na", "n/a", "nan", "nat", "none", "null", "<na>"}
"""Cells of a text file that mean that there is no value, in any case."""
SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")

Columns = dict[str, NDArray[Any]]
"""Name -> float64 with NaN where a number is missing, or texts (object) with None where one is."""


def holds_table(path: Path) -> bool:
    """Whether a file is a table by its name: .csv, .tsv or .jsonl, perhaps .gz, or .parquet."""
    return bool(table_suffix(path)) or path.suffix.lower() == ".parquet"


def is_frame(value: Any) -> bool:
    """Whether a value is a frame of pandas or of polars, or a table of pyarrow."""
    kind = type(value)
    return kind.__module__.split(".")[0] in ("pandas", "polars", "pyarrow") and hasattr(value, "columns")


def read_columns(source: Any) -> Columns:
    """The columns of a table in a file, or of a frame.

    Parameters
    ----------
    source : a path for which `holds_table` is true, or a value for which `is_frame` is.
    """
    if not isinstance(source, (str, Path)):
        return _of_frame(source)
    path = Path(source)
    if path.suffix.lower() == ".parquet":
        return _of_parquet(path)
    if table_suffix(path) == ".jsonl":
        return _of_jsonl(path)
    table = read_table(path, "\t" if table_suffix(path) == ".tsv" else ",")
    return {name: _of_cells([row[i] for row in table.cells]) for i, name in enumerate(table.columns)}


def _of_cells(cells: Sequence[str]) -> NDArray[Any]:
    """Numbers where all cells that are there are numbers, else texts."""
    values = [None if cell.strip().lower() in MISSING else cell.strip() for cell in cells]
    try:
        numbers = [np.nan if value is None else float(value) for value in values]
    except ValueError:
        return _objects(values)
    return np.array(numbers, dtype=np.float64)


def _of_frame(frame: Any) -> Columns:
    names = frame.column_names if hasattr(frame, "column_names") else list(frame.columns)
    columns: Columns = {}
    for name in names:
        column = frame.column(name) if hasattr(frame, "column_names") else frame[name]
        for how in ("to_pylist", "to_list", "tolist"):
            if hasattr(column, how):
                columns[str(name)] = of_values(getattr(column, how)(), str(name))
                break
    if len(columns) < len(names):
        raise RequestError("the frame has two columns of one name")
    return columns


def _of_parquet(path: Path) -> Columns:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_table as read_parquet
    except ModuleNotFoundError:
        raise RequestError(f"{path} is a Parquet file, which needs pyarrow: pip install 'nasight[frames]'") from None
    try:
        # Plain columns only: what a file says of pandas, or of types from elsewhere, is not followed.
        table = read_parquet(path, use_pandas_metadata=False)
    except (ArrowException, OSError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise RequestError(f"{path} cannot be read as a Parquet file ({first})") from error
    return _of_frame(table)


def _of_jsonl(path: Path) -> Columns:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"line {number} of {path} is not JSON ({str(error)[:80]})") from error
        if not isinstance(row, dict):
            raise RequestError(f"line {number} of {path} must be an object, got {line.strip()[:40]}")
        rows.append(row)
    if not rows:
        raise RequestError(f"{path} has no rows")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: of_values([row.get(name) for row in rows], name) for name in names}


def of_values(values: Sequence[Any], name: str) -> NDArray[Any]:
    """A column of Python values: numbers and times as float64, all else as texts."""
    found = [None if _is_missing(value) else value for value in values]
    there = [value for value in found if value is not None]
    if all(isinstance(v, (int, float, Decimal, np.number)) and not isinstance(v, (bool, np.bool_)) for v in there):
        return np.array([np.nan if v is None else _float(v) for v in found], dtype=np.float64)
    if all(isinstance(v, (date, datetime)) for v in there):
        return np.array([np.nan if v is None else _seconds(v) for v in found], dtype=np.float64)
    if all(isinstance(v, timedelta) for v in there):
        return np.array([np.nan if v is None else v.total_seconds() for v in found], dtype=np.float64)
    nested = next((v for v in there if isinstance(v, (dict, list, tuple, set, bytes, np.ndarray))), None)
    if nested is not None:
        raise RequestError(f"column {name!r} holds a {type(nested).__name__}, and a table takes numbers and texts")
    return _objects([None if v is None else str(v) for v in found])


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and not np.isfinite(value)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return 1e308 if value > 0 else -1e308


def _seconds(value: date | datetime) -> float:
    """Seconds since the day 0001-01-01, in the clock of the table."""
    time = value.replace(tzinfo=None) if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (time - datetime.min).total_seconds()


def _objects(values: Sequence[str | None]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = list(values)
    return found


def is_number(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "f"


def missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a column has no value."""
    if is_number(column):
        return np.asarray(~np.isfinite(column))
    return np.array([value is None for value in column], dtype=bool)


def rows_of(columns: Mapping[str, NDArray[Any]]) -> int:
    return len(next(iter(columns.values()))) if columns else 0
