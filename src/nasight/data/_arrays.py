"""Arrays from outside (numpy, torch, lists) turned into the tensors of a data set."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nasight.data._augment import NOTHING, Augment
from nasight.data._dataset import Dataset
from nasight.data._labels import read_labels
from nasight.data._maps import map_of
from nasight.errors import RequestError

STRIP = 3
"""An array (n, h, w) with one side so many times the other is not taken for gray images."""


def from_arrays(
    name: str,
    arrays: tuple[Any, ...],
    *,
    source: str = "arrays",
    classes: tuple[str, ...] | None = None,
    augmentation: Augment | None = None,
    task: str | None = None,
) -> Dataset:
    """The data set of arrays, which are copied, unless they are mapped files.

    Parameters
    ----------
    name : what the data set is called.
    arrays : (x, y) or (x, y, x_test, y_test), as numpy arrays, tensors or lists. x holds images (n, h, w), (n, c, h, w)
        or (n, h, w, 3), or vectors (n, d); y holds a class (a name, an integer, a truth value, a one-hot row), several
        labels (a row of 0 and 1, or a list of names) or numbers (a fraction, or a row of them) for each row.
    source : where the arrays come from, for messages.
    classes : the names of the classes 0 to k - 1, of the labels or of the numbers; by default the labels themselves.
    task : "classes", "labels" or "numbers"; by default what y looks like.
    augmentation : which random changes keep a label; none by default.

    >>> from_arrays("dots", (np.zeros((4, 8, 8), np.uint8), [0, 1, 0, 1])).inputs
    (1, 8, 8)
    """
    if len(arrays) not in (2, 4):
        raise RequestError(f"data must be (x, y) or (x, y, x_test, y_test), got {len(arrays)} arrays")
    train_x, test_x = examples(arrays[0], "x"), examples(arrays[2], "x_test") if len(arrays) == 4 else None
    labels = read_labels(arrays[1], arrays[3] if len(arrays) == 4 else None, kind=task, names=classes)
    # Of images whose origin is not known nobody can say which random changes keep a label.
    changes = NOTHING if augmentation is None and train_x.dim() == 4 else None
    rest = (labels.names, source, augmentation, labels.task)
    return Dataset(name, train_x, labels.train, test_x, labels.test, *rest, changes=changes)


def examples(value: Any, what: str) -> Tensor:
    """Images (n, c, h, w), uint8 kept and all else float32, or vectors (n, d) as float32; a copy.

    Parameters
    ----------
    value : images (n, h, w), (n, c, h, w) or (n, h, w, 3), or vectors (n, d), as a numpy array, a tensor or lists.
    what : what messages call it.

    >>> examples(np.zeros((4, 8, 8, 3), np.uint8), "x").shape
    torch.Size([4, 3, 8, 8])
    """
    if isinstance(value, Tensor) and map_of(value) is not None:
        return value  # decoded by us, in the layout of a data set
    x = _tensor(value, what)
    if x.is_complex():
        raise RequestError(f"{what} must hold real numbers, got {x.dtype}")
    if x.dim() == 3:
        _check_picture(tuple(x.shape), what)
        x = x[:, None]
    elif x.dim() == 4 and x.shape[3] in (1, 3) and min(x.shape[1:3]) > 3:
        x = x.permute(0, 3, 1, 2)
    elif x.dim() not in (2, 4):
        raise RequestError(
            f"{what} must be images (n, h, w), (n, c, h, w) or (n, h, w, 3), or vectors (n, d), "
            f"got shape {tuple(x.shape)}"
        )
    kind = torch.uint8 if x.dtype == torch.uint8 and x.dim() == 4 else torch.float32
    return x.to(kind).contiguous()


def _check_picture(shape: tuple[int, ...], what: str) -> None:
    """Whether (n, h, w) can be gray images: a long strip is more likely a series, and no guess is made."""
    if max(shape[1:]) >= STRIP * max(min(shape[1:]), 1):
        n, channels, length = shape
        raise RequestError(
            f"{what} of shape {shape} looks like series of {channels} channels and {length} times, for which there are "
            f"no spaces: give vectors ({n}, {channels * length}) to the space mlp, or gray images as ({n}, 1, "
            f"{channels}, {length})"
        )


def _tensor(value: Any, what: str) -> Tensor:
    """A copy of the value on the CPU, so that no later change of the caller's array reaches a data set."""
    if isinstance(value, Tensor):
        return value.detach().cpu().clone(memory_format=torch.contiguous_format)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise RequestError(f"{what} must be an array of numbers, got rows of different lengths") from error
    if array.dtype.kind not in "biufc":
        raise RequestError(f"{what} must be an array of numbers, got {array.dtype}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))
