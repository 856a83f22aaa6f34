"""Labels as people have them (names, any integers, truth values, one-hot rows, several names, numbers) as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasight.data._task import Kind, Task, task_of
from nasight.errors import RequestError

MOST_CLASSES = 1000
PARTS = ("y", "y_test")


@dataclass(frozen=True)
class Labels:
    """Labels of both parts, the names of the classes, labels or numbers, and the task that they pose."""

    task: Task
    names: tuple[str, ...]
    train: Tensor
    test: Tensor | None


def read_labels(y: Any, y_test: Any = None, *, kind: str | None = None, names: Sequence[str] | None = None) -> Labels:
    """Labels as tensors: class numbers (n,) as int64, or (n, k) as float32 for several labels and for numbers.

    Class numbers follow the sorted labels, as numbers where all are; 0 to k - 1 stay what they are.

    Parameters
    ----------
    y, y_test : of each row: a name, an integer, a truth value, a one-hot row (classes); a row of 0 and 1, or a list of
        names (several labels); a fraction or a row of them (numbers). Arrays, tensors, lists or columns of a frame.
    kind : "classes", "labels" or "numbers"; by default what the values look like.
    names : what the classes 0 to k - 1, the labels or the numbers are called.

    >>> found = read_labels(["no", "yes", "no"])
    >>> found.names, found.train.tolist()
    (('no', 'yes'), [0, 1, 0])
    >>> read_labels([0.5, 1.5, 2.0]).task.kind
    'numbers'
    """
    parts = [_array(y, "y")] + ([] if y_test is None else [_array(y_test, "y_test")])
    if any(isinstance(part, list) for part in parts):
        return _lists_of_names(parts, kind, names)
    arrays = [part for part in parts if not isinstance(part, list)]
    chosen = task_of(kind, _looks_like(arrays[0]))
    if chosen != "classes":
        return _matrices(arrays, chosen, names)
    return _classes([_one_hot(part, what) for part, what in zip(arrays, PARTS, strict=False)], names)


def _array(value: Any, what: str) -> NDArray[Any] | list[list[str]]:
    """An array (n,) or (n, k), or the names that each row has."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, (list, tuple)) and value and all(_is_names(row) for row in value):
        return [list(map(str, row)) for row in value]
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise RequestError(f"{what} must hold one label per row, got rows of different lengths") from error
    if array.dtype.kind == "O":
        array = _of_objects(array, what)
    if array.dtype.kind not in "biufUS":
        raise RequestError(f"{what} must hold names, numbers or truth values, got {array.dtype}")
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise RequestError(f"{what} must hold a label or a row of them for every example, got shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(1))[0])
        raise RequestError(f"the label of row {row} in {what} is missing or infinite")
    return array


def _is_names(row: Any) -> bool:
    return isinstance(row, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in row)


def _of_objects(array: NDArray[Any], what: str) -> NDArray[Any]:
    """A column of Python objects as names, numbers or truth values; what is missing is refused."""
    values = array.ravel().tolist()
    for place, value in enumerate(values):
        if value is None or value != value:
            row = place // max(array[0].size if array.ndim > 1 else 1, 1)
            raise RequestError(f"the label of row {row} in {what} is missing")
    if all(isinstance(value, bool) for value in values):
        return array.astype(bool)
    if all(isinstance(value, (bool, int, float, np.number)) for value in values):
        return np.array(values).reshape(array.shape)
    return np.array([str(value) for value in values]).reshape(array.shape)


def _looks_like(array: NDArray[Any]) -> Kind:
    if array.dtype.kind == "U":
        return "classes"
    if array.ndim == 2:
        if not np.isin(array, (0, 1)).all():
            return "numbers"
        return "classes" if (array.sum(1) == 1).all() else "labels"
    return "numbers" if array.dtype.kind == "f" and (array != np.round(array)).any() else "classes"


def _one_hot(array: NDArray[Any], what: str) -> NDArray[Any]:
    """A label of each row, (n,); that of a one-hot row is the place of its 1."""
    if array.ndim == 2:
        if array.dtype.kind == "U" or not np.isin(array, (0, 1)).all() or (array.sum(1) != 1).any():
            raise RequestError(f"rows of {what} must have one 1 and else 0 to be classes, got shape {array.shape}")
        return np.asarray(array.argmax(1))
    if array.dtype.kind == "f":
        fractions = array[array != np.round(array)]
        if len(fractions):
            raise RequestError(f"{what} must hold whole numbers to be classes, got {fractions[0]:g}")
        return array.astype(np.int64)
    return array


def _classes(parts: list[NDArray[Any]], names: Sequence[str] | None) -> Labels:
    first = parts[0]
    if first.dtype.kind in "iu" and (names is not None or _counts_from_zero(first)):
        tensors = [torch.from_numpy(_whole(part, what)) for part, what in zip(parts, PARTS, strict=False)]
        known = tuple(map(str, range(int(first.max()) + 1 if len(first) else 0))) if names is None else tuple(names)
        return Labels(Task(), known, tensors[0], tensors[1] if len(tensors) > 1 else None)
    values = sorted_labels(first)
    if len(values) > MOST_CLASSES:
        raise RequestError(
            f"y holds {len(values)} different labels; at most {MOST_CLASSES} classes are possible "
            "(numbers to be predicted as such are task 'numbers')"
        )
    if names is not None and len(names) != len(values):
        raise RequestError(f"y holds {len(values)} different labels, but there are {len(names)} names")
    number = {value: place for place, value in enumerate(values)}
    found = []
    for part in parts:
        unknown = next((value for value in part.tolist() if value not in number), None)
        if unknown is not None:
            raise RequestError(f"y_test has the class {str(unknown)!r}, which y lacks")
        found.append(torch.tensor([number[value] for value in part.tolist()], dtype=torch.int64))
    known = tuple(map(str, values)) if names is None else tuple(names)
    return Labels(Task(), known, found[0], found[1] if len(found) > 1 else None)


def _counts_from_zero(y: NDArray[Any]) -> bool:
    """Whether the labels are 0 to k - 1 without gaps, or none at all."""
    distinct = np.unique(y)
    return len(distinct) == 0 or (int(distinct[0]) == 0 and int(distinct[-1]) == len(distinct) - 1)


def _whole(part: NDArray[Any], what: str) -> NDArray[np.int64]:
    if part.dtype.kind not in "iub":
        raise RequestError(f"{what} must hold class numbers as y does, got {part.dtype}")
    return part.astype(np.int64)


def sorted_labels(y: NDArray[Any]) -> list[Any]:
    """The distinct labels: as numbers where all of them are, so that 10 comes after 9."""
    distinct = set(y.tolist())
    try:
        return sorted(distinct, key=float)
    except (TypeError, ValueError):
        return sorted(distinct, key=str)


def _matrices(parts: list[NDArray[Any]], kind: Kind, names: Sequence[str] | None) -> Labels:
    """Several labels, or numbers: (n, k) as float32."""
    found = []
    for part, what in zip(parts, PARTS, strict=False):
        if part.dtype.kind == "U":
            raise RequestError(f"{what} must hold numbers for task {kind!r}, got names such as {str(part.flat[0])!r}")
        matrix = part[:, None] if part.ndim == 1 else part
        if kind == "labels" and not np.isin(matrix, (0, 1)).all():
            raise RequestError(f"{what} must hold rows of 0 and 1 for task 'labels'")
        found.append(torch.from_numpy(np.array(matrix, dtype=np.float32)))
    width = found[0].shape[1]
    if len(found) > 1 and found[1].shape[1] != width:
        raise RequestError(f"y has {width} columns, y_test {found[1].shape[1]}")
    if names is not None and len(names) != width:
        raise RequestError(f"y has {width} columns, but there are {len(names)} names")
    usual = ("y",) if kind == "numbers" and width == 1 else tuple(map(str, range(width)))
    task = Task(kind).fitted(found[0])
    return Labels(task, usual if names is None else tuple(names), found[0], found[1] if len(found) > 1 else None)


def _lists_of_names(parts: list[Any], kind: str | None, names: Sequence[str] | None) -> Labels:
    """Rows that name what they have: any number of labels each."""
    if not all(isinstance(part, list) for part in parts) or task_of(kind, "labels") != "labels":
        raise RequestError("lists of names in y are several labels: y_test must be such lists too, and task 'labels'")
    known = sorted({name for row in parts[0] for name in row}) if names is None else list(names)
    found = []
    for part in parts:
        unknown = next((name for row in part for name in row if name not in known), None)
        if unknown is not None:
            raise RequestError(f"there is a label {unknown!r} that is not one of {', '.join(known[:5])}")
        matrix = torch.zeros(len(part), len(known))
        for row, own in enumerate(part):
            matrix[row, [known.index(name) for name in own]] = 1.0
        found.append(matrix)
    return Labels(Task("labels"), tuple(known), found[0], found[1] if len(found) > 1 else None)
