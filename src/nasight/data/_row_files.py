"""Readers of tables and of lines of JSON, with a sentence for each way they can be wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError
from nasight.memory import check_room

SUFFIXES = (".csv", ".tsv", ".jsonl")
MOST_COLUMNS = 100_000
GROWN = 4
"""Memory that a table takes while it is read, as a multiple of its file, at the least."""
CHUNK = 2**24


def table_suffix(path: Path) -> str:
    """.csv, .tsv or .jsonl, compressed or not, and nothing for other files."""
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


@dataclass(frozen=True, slots=True)
class CellTable:
    """Cells of a file, row by row, with the file's line of each row."""

    path: Path
    columns: list[str]
    cells: list[list[str]]
    lines: list[int]

    def column(self, place: int) -> list[str]:
        """The texts of a column, none of them empty."""
        cells = [row[place] for row in self.cells]
        for line, cell in zip(self.lines, cells, strict=True):
            if not cell.strip():
                raise RequestError(f"{self.path} has an empty cell in line {line}, column {self.columns[place]!r}")
        return cells

    def numbers(self, place: int) -> NDArray[np.float32] | None:
        """A column as numbers, if all of its cells are; NaN and infinity are refused."""
        cells = self.column(place)
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            return None
        with np.errstate(over="ignore"):
            values32 = values.astype(np.float32)
        wrong = np.flatnonzero(~np.isfinite(values32))
        if len(wrong):
            raise RequestError(
                f"{self.path} has {cells[wrong[0]]!r} in line {self.lines[wrong[0]]}, "
                f"column {self.columns[place]!r}, where a finite number is needed"
            )
        return values32


def read_table(path: Path, delimiter: str) -> CellTable:
    """A table whose first row names the columns."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
    found: list[tuple[int, list[str]]] = []
    try:
        found.extend((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise RequestError(f"{path} cannot be read as a table: line {reader.line_num}: {error}") from error
    if not found:
        raise RequestError(f"{path} is empty")
    columns = [name.strip() for name in found[0][1]]
    if all(_is_number(name) for name in columns):
        raise RequestError(f"the first row of {path} must name the columns, got {', '.join(columns[:5])}")
    if len(columns) > MOST_COLUMNS:
        raise RequestError(f"{path} has {len(columns):,} columns; at most {MOST_COLUMNS:,} are read")
    twice = next((name for name, number in Counter(columns).items() if number > 1), None)
    if twice is not None:
        raise RequestError(f"{path} has two columns {twice!r}")
    for line, row in found[1:]:
        if len(row) != len(columns):
            raise RequestError(f"{path} has {len(row)} cells in line {line}, where {len(columns)} columns are named")
    if len(found) == 1:
        raise RequestError(f"{path} has column names but no rows")
    return CellTable(path, columns, [row for _, row in found[1:]], [line for line, _ in found[1:]])


def read_jsonl(path: Path, target: str | None) -> tuple[list[str], list[Any]]:
    """The texts and the labels of a file with one object {"text": ..., "label": ...} per line."""
    label = "label" if target is None else target
    texts: list[str] = []
    labels: list[Any] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"line {number} of {path} is not JSON ({error})") from error
        if not isinstance(item, dict):
            raise RequestError(f"line {number} of {path} must be an object, got {line.strip()[:40]}")
        for field in ("text", label):
            if field not in item:
                raise RequestError(f"line {number} of {path} has no field {field!r}; it has {', '.join(item)}")
        if not isinstance(item["text"], str):
            raise RequestError(f"the text in line {number} of {path} must be a string, got {item['text']!r}")
        if item[label] is None or isinstance(item[label], (dict, list)) or item[label] != item[label]:
            raise RequestError(f"the {label!r} in line {number} of {path} must be a class, got {item[label]!r}")
        texts.append(item["text"])
        labels.append(item[label])
    if not texts:
        raise RequestError(f"{path} has no rows")
    return texts, labels


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _decompressed(data: bytes, path: Path) -> bytes:
    """What is in a gzip file, as long as there is room for it: a small file can hold gigabytes."""
    parts, size = [], 0
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while part := file.read(CHUNK):
            size += len(part)
            check_room(GROWN * size, f"{path}, unpacked,")
            parts.append(part)
    return b"".join(parts)


def read_text(path: Path) -> str:
    try:
        check_room(GROWN * path.stat().st_size, f"{path}")
        data = path.read_bytes()
        if path.name.lower().endswith(".gz"):
            data = _decompressed(data, path)
        return data.decode("utf-8-sig")
    except RequestError:
        raise
    except MemoryError:
        raise RequestError(f"{path} needs more memory than there is") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise RequestError(f"{path} is not a whole gzip file ({error})") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8 text ({error})") from error
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({error.strerror or error})") from error
