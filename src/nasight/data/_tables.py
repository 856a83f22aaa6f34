"""The rows of a table as a data set: which column is asked for, and how the others become numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nasight.data._dataset import Dataset
from nasight.data._frames import SUFFIXES, Columns, holds_table, is_number, missing, read_columns, rows_of
from nasight.data._labels import Labels, read_labels
from nasight.data._layout import fit_layout
from nasight.data._task import names_text
from nasight.errors import RequestError

MOST_WHOLE = 30
"""More different whole numbers than this in a label column are taken for numbers, not for classes."""


def holds_table_set(path: Path) -> bool:
    """Whether a path is a table, or a folder with train.csv (or .tsv, .jsonl, .parquet) in it."""
    return holds_table(path) if path.is_file() else _part(path, "train") is not None


def _part(folder: Path, part: str) -> Path | None:
    names = [f"{part}{suffix}{gz}" for suffix in SUFFIXES for gz in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_table_set(path: Path, label: str | None = None, task: str | None = None) -> Dataset:
    """The data set of a table in a file, or of train.csv and test.csv (or another kind) in a folder.

    Parameters
    ----------
    path : the file or folder.
    label : the column that is asked for, or several joined by commas; "label" or else the last one by default.
    task : "classes", "labels" or "numbers"; by default what the column looks like.
    """
    if path.is_file():
        return table_set(path.stem.removesuffix(".csv"), str(path), read_columns(path), None, label, task)
    train, test = _part(path, "train"), _part(path, "test")
    if train is None:
        raise RequestError(f"{path} has no train.csv, train.tsv, train.jsonl or train.parquet")
    tested = None if test is None else read_columns(test)
    return table_set(path.resolve().name, str(path), read_columns(train), tested, label, task)


def table_set(
    name: str, source: str, train: Columns, test: Columns | None, label: str | None, task: str | None
) -> Dataset:
    """The data set of columns."""
    asked = _asked(train, label, source)
    train, gone = _labeled(train, asked, source)
    if test is not None:
        _asked(test, ",".join(asked), f"the test part of {source}")
        test, _ = _labeled(test, asked, f"the test part of {source}")
    labels = _labels(train, test, asked, task)
    inputs = {column: cells for column, cells in train.items() if column not in asked}
    layout, left = fit_layout(inputs)
    if not layout.columns:
        raise RequestError(f"{source} has no column to learn {', '.join(asked)} from")
    x = torch.from_numpy(layout.apply(inputs, source))
    test_x = None if test is None else torch.from_numpy(layout.apply(test, f"the test part of {source}"))
    numbers = sum(not column.values for column in layout.columns)
    said = [f"{rows_of(train):,} rows", f"{numbers} columns of numbers, {len(layout.columns) - numbers} of texts"]
    said += [f"left out: {names_text([f'{n} ({why})' for n, why in left.items()])}"] if left else []
    said += [f"{gone} rows without a label left out"] if gone else []
    what = f"{len(labels.names)} classes" if labels.task.kind == "classes" else labels.task.kind
    summary = "; ".join([*said, f"label {', '.join(asked)} ({what})"])
    return Dataset(
        name,
        x,
        labels.train,
        test_x,
        labels.test,
        labels.names,
        source,
        None,
        labels.task,
        table=layout,
        summary=summary,
    )


def _asked(table: Columns, label: str | None, source: str) -> list[str]:
    """The names of the columns that are asked for."""
    if len(table) < 2:
        raise RequestError(f"{source} has the column {next(iter(table), '')!r} only, and nothing to tell it from")
    if label is None:
        return ["label"] if "label" in table else [list(table)[-1]]
    names = [label] if label in table else [name.strip() for name in label.split(",")]
    absent = next((name for name in names if name not in table), None)
    if absent is not None:
        raise RequestError(f"{source} has no column {absent!r}; its columns are {names_text(list(table), 12)}")
    return names


def _labeled(table: Columns, asked: list[str], source: str) -> tuple[Columns, int]:
    """The rows that have their labels, and how many have not."""
    gone = np.zeros(rows_of(table), dtype=bool)
    for name in asked:
        gone |= missing(table[name])
    if gone.all():
        raise RequestError(f"{source} has no row with a value in {', '.join(asked)}")
    return {name: cells[~gone] for name, cells in table.items()}, int(gone.sum())


def _labels(train: Columns, test: Columns | None, asked: list[str], task: str | None) -> Labels:
    parts = [train] if test is None else [train, test]
    if len(asked) > 1:
        found = [np.stack([_truth(part[name]) for name in asked], 1) for part in parts]
        if task is None and found[0].dtype.kind != "O":
            task = "labels" if np.isin(found[0], (0, 1)).all() else "numbers"
        return read_labels(*found, kind=task, names=asked)
    columns = [part[asked[0]] for part in parts]
    if task is None and is_number(columns[0]):
        whole = (columns[0] == np.round(columns[0])).all()
        task = "classes" if whole and len(np.unique(columns[0])) <= MOST_WHOLE else "numbers"
    if task == "classes":
        columns = [_whole(column) for column in columns]
    names = asked if task in ("numbers", "labels") else None
    return read_labels(*columns, kind=task, names=names)


def _truth(column: NDArray[Any]) -> NDArray[Any]:
    """True and false as 1 and 0; other columns as they are."""
    truth = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
    if is_number(column) or any(str(cell).lower() not in truth for cell in column):
        return column
    return np.array([truth[str(cell).lower()] for cell in column])


def _whole(column: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers that were read as fractions, so that a class is called 3 and not 3.0."""
    if is_number(column) and (column == np.round(column)).all() and (np.abs(column) < 2**53).all():
        return column.astype(np.int64)
    return column
