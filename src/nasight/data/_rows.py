"""Rows for linear models: numbers or texts with a class each, from a name, a file or arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.data._dataset import Dataset
from nasight.data._files import load
from nasight.data._labels import sorted_labels
from nasight.data._registry import IMAGES, NPZ, PHOTO_TABLE, TABLE, format_of, formats, registered_names
from nasight.data._row_files import CellTable, read_jsonl, read_table, table_suffix
from nasight.data._sources import SOURCES, data_folder
from nasight.errors import RequestError

IMDB = "imdb"
MOST_VALUES = 64
"""A column of texts with no more different values than this becomes one column of 0 and 1 for each."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Examples for a linear model, with a class each; `rows` makes them from a name, a file, a folder or arrays.

    Parameters
    ----------
    name : what the data are called.
    train_x : a float32 matrix (n, columns), or a list of n texts.
    train_y : class numbers 0 to k - 1, (n,).
    test_x, test_y : the test part, or None.
    kind : "numeric" or "text".
    classes : the name of each class.
    """

    name: str
    train_x: Any
    train_y: NDArray[np.int64]
    test_x: Any | None
    test_y: NDArray[np.int64] | None
    kind: str
    classes: list[str]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the rows, their labels and the names of the classes."""
        digest = hashlib.sha256("\0".join(self.classes).encode())
        for x, y in ((self.train_x, self.train_y), (self.test_x, self.test_y)):
            if x is None or y is None:
                digest.update(b"none;")
            elif self.kind == "text":
                for text in x:
                    data = text.encode("utf-8", "surrogatepass")
                    digest.update(f"{len(data)};".encode() + data)
                digest.update(y.tobytes())
            else:
                digest.update(f"{x.shape};".encode() + np.ascontiguousarray(x).tobytes() + y.tobytes())
        return digest.hexdigest()


def rows(
    source: str | Path | Rows | tuple[Any, ...], target: str | None = None, folder: str | Path | None = None
) -> Rows:
    """The rows for a linear model that a name, a path or arrays mean.

    Parameters
    ----------
    source : "imdb", or a name that `load` knows, whose images become rows of numbers in [0, 1]; a .csv or .tsv file
        with column names in its first row; a .jsonl file of objects with a text and a label, or a folder with
        train.jsonl and test.jsonl (each file may be .gz); any path that `load` reads; arrays (x, y) or (x, y, x_test,
        y_test), x a matrix or a list of texts; or `Rows`, which are returned as they are.
    target : the column (the last one by default) or the field ("label" by default) that is the class.
    folder : where the files of named data sets are; $NASIGHT_DATA or the user's cache by default.

    >>> rows("digits").train_x.shape
    (1437, 64)
    """
    if isinstance(source, Rows):
        return source
    if isinstance(source, (tuple, list)):
        return _from_arrays(tuple(source))
    if not isinstance(source, (str, Path)):
        raise RequestError(f"data must be a name, a path or arrays (x, y), got a {type(source).__name__}")
    if source == IMDB:
        return _from_jsonl_folder(IMDB, data_folder(folder) / IMDB, target)
    if isinstance(source, str) and (source in SOURCES or source in registered_names()):
        _no_target(target, source)
        return _from_images(load(source, folder=folder))
    path = Path(source).expanduser()
    if not path.exists():
        if table_suffix(path) or isinstance(source, Path) or len(path.parts) > 1 or path.suffix:
            raise RequestError(f"there is no file or folder {source}")
        known = [*SOURCES, IMDB, *registered_names()]
        raise RequestError(f"there is no data set {source!r}; known names are {', '.join(known)}")
    return _from_path(path, target)


def _from_path(path: Path, target: str | None) -> Rows:
    known, suffix = format_of(path), table_suffix(path)
    # A format that was registered for such files goes before these.
    if known in (None, NPZ, IMAGES, TABLE, PHOTO_TABLE):
        if suffix == ".jsonl":
            return _from_texts(path.name, read_jsonl(path, target))
        if suffix:
            return _from_table(path, read_table(path, "\t" if suffix == ".tsv" else ","), target)
        if path.is_dir() and _jsonl(path, "train") is not None:
            return _from_jsonl_folder(path.resolve().name, path, target)
    if known is None:
        others = [f" or {one.name}" for one in formats() if one not in (NPZ, IMAGES, TABLE, PHOTO_TABLE)]
        raise RequestError(f"{path} is not a .csv, .tsv, .jsonl or .npz file{''.join(others)}")
    _no_target(target, path)
    return _from_images(load(path))


def _no_target(target: str | None, source: Any) -> None:
    if target is not None:
        raise RequestError(f"target is for .csv, .tsv and .jsonl files, got target {target!r} for {source}")


def _from_images(data: Dataset) -> Rows:
    def flat(x: Any) -> NDArray[np.float32]:
        values: NDArray[Any] = x.reshape(len(x), -1).numpy()
        return values.astype(np.float32) / np.float32(255) if values.dtype == np.uint8 else values

    test_x, test_y = (None, None) if data.test_x is None else (flat(data.test_x), data.test_y)
    y = None if test_y is None else test_y.numpy()
    return Rows(data.name, flat(data.train_x), data.train_y.numpy(), test_x, y, "numeric", list(data.classes))


def _from_arrays(arrays: tuple[Any, ...]) -> Rows:
    if len(arrays) not in (2, 4):
        raise RequestError(f"data must be (x, y) or (x, y, x_test, y_test), got {len(arrays)} arrays")
    texts = isinstance(arrays[0], (list, tuple)) and all(isinstance(text, str) for text in arrays[0])
    texts = (texts and len(arrays[0]) > 0) or (isinstance(arrays[0], np.ndarray) and arrays[0].dtype.kind in "UO")
    read = _texts if texts else _numbers
    parts = [
        (read(arrays[i], name), np.asarray(arrays[i + 1])) for i, name in ((0, "x"), (2, "x_test"))[: len(arrays) // 2]
    ]
    for (x, y), name in zip(parts, ("x", "x_test"), strict=False):
        if y.ndim != 1 or len(y) != len(x):
            raise RequestError(f"{name} has {len(x)} rows, but its labels have shape {y.shape}")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise RequestError(f"the label of row {int(np.flatnonzero(~np.isfinite(y))[0])} is not a number")
    return _checked("arrays", "text" if texts else "numeric", parts)


def _texts(x: Any, name: str) -> list[str]:
    found = list(x)
    wrong = next((row for row, text in enumerate(found) if not isinstance(text, str)), None)
    if wrong is not None:
        raise RequestError(f"{name} must hold texts, got a {type(found[wrong]).__name__} in row {wrong}")
    return [str(text) for text in found]


def _numbers(x: Any, name: str) -> NDArray[np.float32]:
    try:
        matrix = np.asarray(x)
    except ValueError as error:
        raise RequestError(
            f"{name} must be a matrix of numbers or a list of texts, got rows of different lengths"
        ) from error
    if matrix.dtype.kind not in "biuf" or matrix.ndim != 2:
        raise RequestError(
            f"{name} must be a matrix (n, columns) of numbers or a list of texts, "
            f"got shape {matrix.shape} of {matrix.dtype}"
        )
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        raise RequestError(f"{name} has a NaN or infinite value in row {wrong[0][0]}, column {wrong[0][1]}")
    return matrix.astype(np.float32)


def _jsonl(folder: Path, part: str) -> Path | None:
    candidates = (folder / f"{part}.jsonl", folder / f"{part}.jsonl.gz")
    return next((path for path in candidates if path.is_file()), None)


def _from_jsonl_folder(name: str, folder: Path, target: str | None) -> Rows:
    train, test = _jsonl(folder, "train"), _jsonl(folder, "test")
    if train is None:
        raise RequestError(
            f"data set {name!r} is not in {folder}; put train.jsonl and test.jsonl (or .jsonl.gz) there, "
            'one object {"text": ..., "label": ...} per line'
        )
    return _from_texts(name, read_jsonl(train, target), None if test is None else read_jsonl(test, target))


def _from_texts(name: str, train: tuple[list[str], list[str]], test: tuple[list[str], list[str]] | None = None) -> Rows:
    parts = [(x, np.asarray(y, dtype=object)) for x, y in (train, *([test] if test else []))]
    return _checked(name, "text", parts)


def _from_table(path: Path, table: CellTable, target: str | None) -> Rows:
    if target is not None and target not in table.columns:
        raise RequestError(f"{path} has no column {target!r}; its columns are {', '.join(table.columns)}")
    at = table.columns.index(target) if target is not None else len(table.columns) - 1
    if len(table.columns) < 2:
        raise RequestError(f"{path} has the column {table.columns[0]!r} only, and nothing to tell it from")
    labels = np.asarray(table.column(at), dtype=object)
    inputs = [i for i in range(len(table.columns)) if i != at]
    if len(inputs) == 1 and table.numbers(inputs[0]) is None:
        return _checked(path.name, "text", [(table.column(inputs[0]), labels)])
    columns: list[NDArray[np.float32]] = []
    for i in inputs:
        numbers = table.numbers(i)
        if numbers is not None:
            columns.append(numbers)
            continue
        cells = np.asarray(table.column(i))
        values = np.unique(cells)
        if len(values) > MOST_VALUES:
            raise RequestError(
                f"column {table.columns[i]!r} of {path} holds {len(values)} different texts; columns of up to "
                f"{MOST_VALUES} can be used, and texts if they are the only column beside the target"
            )
        columns.extend((cells == value).astype(np.float32) for value in values)
    return _checked(path.name, "numeric", [(np.stack(columns, 1), labels)])


def _checked(name: str, kind: str, parts: Sequence[tuple[Any, NDArray[Any]]]) -> Rows:
    """Labels as numbers, in the order of the sorted names; one class, no rows and unknown classes are refused."""
    for (x, y), part in zip(parts, ("training", "test"), strict=False):
        if len(y) == 0 or (kind == "numeric" and x.shape[1] == 0):
            raise RequestError(f"the {part} part of {name} has no rows" if len(y) == 0 else f"{name} has no columns")
    names = sorted_labels(parts[0][1])
    if len(names) < 2:
        raise RequestError(f"{name} has the class {names[0]!r} only, and there is nothing to tell apart")
    numbers = {label: number for number, label in enumerate(names)}
    labels = []
    for _, y in parts:
        unknown = next((str(label) for label in y.tolist() if label not in numbers), None)
        if unknown is not None:
            raise RequestError(f"the test part of {name} has the class {unknown!r}, which training lacks")
        labels.append(np.fromiter((numbers[label] for label in y.tolist()), np.int64, len(y)))
    test_x, test_y = (parts[1][0], labels[1]) if len(parts) > 1 else (None, None)
    return Rows(name, parts[0][0], labels[0], test_x, test_y, kind, [str(label) for label in names])
