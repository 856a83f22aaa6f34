"""The rows a search and a training learn from, checked once, at construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nasight.data._augment import Augment
from nasight.data._fingerprint import fingerprint
from nasight.data._jitter import check_channels
from nasight.data._layout import TableLayout
from nasight.data._maps import chunks, extent, map_of, open_map
from nasight.data._split import split_indices
from nasight.data._task import Task
from nasight.errors import RequestError

MOST_CLASSES = 1000


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples and their labels; `load` makes one from a name, a file, a folder or arrays.

    Parameters
    ----------
    name : what the data set is called.
    train_x : images (n, c, h, w) as uint8 or float32, or vectors (n, d) as float32.
    train_y : int64 labels 0 to k - 1, (n,), every class with an example; or float32 (n, k), several labels as 0 and 1,
        or numbers.
    test_x, test_y : the test part, alike, or None.
    classes : the name of each class, label or number.
    source : where the data come from, for messages.
    augmentation : which random changes keep the label; None for none.
    task : what the labels ask for, with the loss and the score that follow.
    table : how the columns of a table became the numbers of its rows; None for data that is no table.
    changes : those random changes in words, where they are not what the data set itself declares; a run keeps them.
    reading : how photos were read (resolution, fit), for a run that reads them again.
    fit : how photos of other sizes become examples: "crop", "inner", "pad", "stretch"; None where it is not known.
    origin : the path that `load` was given, if it was one.
    summary : a line on what was read: how many, which classes, which sizes.
    """

    name: str
    train_x: Tensor
    train_y: Tensor
    test_x: Tensor | None
    test_y: Tensor | None
    classes: tuple[str, ...]
    source: str
    augmentation: Augment | None = None
    task: Task = field(default_factory=Task)
    table: TableLayout | None = None
    changes: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    fit: str | None = None
    origin: str | None = None
    summary: str = ""

    def __post_init__(self) -> None:
        _check_part(self.name, "training", self.train_x, self.train_y, self.task)
        if self.task.kind == "classes":
            _check_classes(self.name, self.train_y, self.classes)
        else:
            _check_columns(self.name, self.train_y, self.classes, self.task)
        if (self.test_x is None) != (self.test_y is None):
            missing = "examples" if self.test_x is None else "labels"
            raise RequestError(f"data set {self.name!r} has half a test part: its {missing} are missing")
        if self.test_x is not None and self.test_y is not None:
            _check_part(self.name, "test", self.test_x, self.test_y, self.task)
            _check_test(self, self.test_x, self.test_y)
        if self.augmentation is not None and len(self.inputs) != 3:
            raise RequestError(f"data set {self.name!r} holds vectors, which cannot be cropped or flipped")
        if self.augmentation is not None and self.augmentation.jitter:
            _check_jitter(self.name, self.train_x)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.train_x.shape[1:])

    @property
    def n_classes(self) -> int:
        """The number of classes, labels or numbers: of the outputs of a network."""
        return len(self.classes)

    @property
    def strata(self) -> Tensor:
        """By what splits of the training rows are stratified: class numbers (n,)."""
        return self.task.strata(self.train_y)

    @property
    def fewest(self) -> int:
        """The rows that every part of a split needs: one of each class."""
        return self.task.fewest(self.n_classes)

    def with_classes(self, what: str) -> Dataset:
        """The data set itself, if its labels are classes, which `what` needs."""
        if self.task.kind != "classes":
            raise RequestError(f"{what} needs classes, and data set {self.name!r} holds {self.task.kind}")
        return self

    @property
    def outputs_text(self) -> str:
        """What a network has to tell, such as "10 classes"."""
        return f"{self.n_classes} {self.task.kind if self.n_classes > 1 else self.task.kind[:-1]}"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the arrays, their shapes and their types: equal data, wherever it came from, has one."""
        return fingerprint((self.train_x, self.train_y, self.test_x, self.test_y))

    def augmented(self, augmentation: Augment | None, changes: str | None = None) -> Dataset:
        """The same rows with other random changes, and the words for them that a run keeps."""
        return self._alike(augmentation=augmentation, changes=changes)

    def _alike(self, **changes: Any) -> Dataset:
        """The data set with other notes on the same rows, whose checksum need not be made again."""
        made = replace(self, **changes)
        if "fingerprint" in self.__dict__:
            made.__dict__["fingerprint"] = self.fingerprint
        return made

    def __getstate__(self) -> dict[str, Any]:
        """For another process: mapped rows go as the path of their file, others as NumPy arrays.

        As tensors they would go through shared memory, which containers keep small.
        """
        return {name: _packed(value) for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: _unpacked(value) for name, value in state.items()})

    def split(self, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The numbers of the training rows in two stratified random parts: a `share` of them, and the rest.

        >>> from nasight.data import load
        >>> first, rest = load("digits").split(0.5, torch.Generator().manual_seed(0))
        >>> len(first), len(rest)
        (718, 719)
        """
        rows = len(self.train_y)
        first = self._rows(share)
        if rows - first < self.fewest:
            raise RequestError(
                f"a share of {share:g} leaves {rows - first} of {rows} rows of {self.name!r}, "
                f"too few for {self.outputs_text}"
            )
        part, rest = split_indices(self.strata, [first, rows - first], generator)
        return part, rest

    def subset(self, share: float, generator: torch.Generator) -> Dataset:
        """The same data set with a stratified random share of its training rows; the test part stays."""
        if share == 1:
            return self
        (rows,) = split_indices(self.strata, [self._rows(share)], generator)
        from nasight.data._derive import select_rows  # which makes data sets, so it comes after this file

        return select_rows(self, rows)

    def _rows(self, share: float) -> int:
        if not 0 < share <= 1:
            raise RequestError(f"a share of the data must be above 0 and at most 1, got {share!r}")
        rows = round(share * len(self.train_y))
        if rows < self.fewest:
            raise RequestError(
                f"a share of {share:g} of {self.name!r} is {rows} of {len(self.train_y)} rows, "
                f"too few for {self.outputs_text}"
            )
        return rows


def _packed(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    path = map_of(value)
    return value.numpy() if path is None else _MappedFile(str(path))


def _unpacked(value: Any) -> Any:
    if isinstance(value, _MappedFile):
        return open_map(value.path)
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


@dataclass(frozen=True, slots=True)
class _MappedFile:
    """Stands for the rows of a file while a data set is sent to another process."""

    path: str


def _check_part(name: str, part: str, x: Tensor, y: Tensor, task: Task) -> None:
    where = f"the {part} part of data set {name!r}"
    if x.dim() not in (2, 4):
        raise RequestError(f"{where} must be images (n, c, h, w) or vectors (n, d), got shape {tuple(x.shape)}")
    if x.dtype not in ((torch.float32, torch.uint8) if x.dim() == 4 else (torch.float32,)):
        kind = "images must be uint8 or float32" if x.dim() == 4 else "vectors must be float32"
        raise RequestError(f"{where}: {kind}, got {x.dtype}")
    dtype, dims, shape = (torch.int64, 1, "(n,)") if task.kind == "classes" else (torch.float32, 2, "(n, k)")
    if y.dtype != dtype or y.dim() != dims:
        raise RequestError(
            f"{where}: labels must be {str(dtype).removeprefix('torch.')} of shape {shape}, "
            f"got {y.dtype} of shape {tuple(y.shape)}"
        )
    if len(x) != len(y):
        raise RequestError(f"{where} has {len(x)} examples but {len(y)} labels")
    if x.numel() == 0:
        raise RequestError(f"{where} is empty: its shape is {tuple(x.shape)}")
    row = _first_not_finite(x)
    if row is not None:
        raise RequestError(f"{where} has a NaN or infinite value in row {row}")
    if y.is_floating_point() and not bool(torch.isfinite(y).all()):
        row = int((~torch.isfinite(y)).any(1).nonzero()[0])
        raise RequestError(f"{where} has a NaN or infinite label in row {row}")
    if task.kind == "classes" and int(y.min()) < 0:
        raise RequestError(f"{where} has the negative label {int(y.min())}; labels are 0 to k - 1")


def _check_jitter(name: str, x: Tensor) -> None:
    """Colors can change only where it is known what black and white are."""
    check_channels(x.shape[1])
    if x.is_floating_point():
        low, high = extent(x)
        if low < 0 or high > 1:
            raise RequestError(
                f"jitter needs images of 8 bits (uint8) or values from 0 to 1; those of data set {name!r} go from "
                f"{low:g} to {high:g}"
            )


def _first_not_finite(x: Tensor) -> int | None:
    """The number of the first row that holds a NaN or an infinity."""
    first = 0
    for piece in chunks(x) if x.is_floating_point() else ():
        if not bool(torch.isfinite(piece).all()):
            return first + int((~torch.isfinite(piece)).flatten(1).any(1).nonzero()[0])
        first += len(piece)
    return None


def _check_classes(name: str, y: Tensor, classes: tuple[str, ...]) -> None:
    highest = int(y.max())
    if highest >= MOST_CLASSES:
        raise RequestError(
            f"data set {name!r} has label {highest}; at most {MOST_CLASSES} classes (0 to 999) are possible"
        )
    if highest == 0:
        raise RequestError(f"data set {name!r} has one class only, and there is nothing to tell apart")
    if highest >= len(classes):
        raise RequestError(f"data set {name!r} has label {highest} but names for {len(classes)} classes only")
    empty = (torch.bincount(y, minlength=len(classes)) == 0).nonzero().flatten().tolist()
    if empty:
        label = empty[0] if classes[empty[0]] == str(empty[0]) else f"{empty[0]} ({classes[empty[0]]})"
        raise RequestError(
            f"data set {name!r} has no training example of class {label}; labels must be 0 to k - 1 without gaps"
        )


def _check_columns(name: str, y: Tensor, names: tuple[str, ...], task: Task) -> None:
    """Several labels or numbers: as many columns as names, each with something to tell."""
    if y.shape[1] != len(names):
        raise RequestError(f"data set {name!r} has {y.shape[1]} columns of labels but {len(names)} names")
    if y.shape[1] > MOST_CLASSES:
        raise RequestError(f"data set {name!r} has {y.shape[1]} columns of labels; at most {MOST_CLASSES} are possible")
    same = (y == y[:1]).all(0).nonzero().flatten().tolist()
    if same:
        what = "number" if task.kind == "numbers" else "label"
        raise RequestError(
            f"the {what} {names[same[0]]!r} of data set {name!r} is {float(y[0, same[0]]):g} in all training rows, and "
            "there is nothing to learn"
        )


def _check_test(data: Dataset, x: Tensor, y: Tensor) -> None:
    name, train_x = data.name, data.train_x
    if x.shape[1:] != train_x.shape[1:] or x.dtype != train_x.dtype:
        raise RequestError(
            f"data set {name!r}: test examples are {x.dtype} of shape {tuple(x.shape[1:])}, "
            f"training examples {train_x.dtype} of shape {tuple(train_x.shape[1:])}"
        )
    if data.task.kind != "classes":
        if y.shape[1] != data.n_classes:
            raise RequestError(f"data set {name!r}: test rows have {y.shape[1]} labels, training rows {data.n_classes}")
    elif int(y.max()) >= data.n_classes:
        raise RequestError(
            f"the test part of data set {name!r} has label {int(y.max())}, "
            f"but training knows classes 0 to {data.n_classes - 1} only"
        )
