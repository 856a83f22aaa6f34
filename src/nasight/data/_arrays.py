"""Arrays from outside (numpy, torch, lists) turned into the tensors of a data set."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nasight.data._augment import Augment, default_augment
from nasight.data._dataset import MOST_CLASSES, Dataset
from nasight.errors import RequestError


def from_arrays(
    name: str,
    arrays: tuple[Any, ...],
    *,
    source: str = "arrays",
    classes: tuple[str, ...] | None = None,
    augmentation: Augment | None = None,
) -> Dataset:
    """The data set of arrays, which are copied.

    Parameters
    ----------
    name : what the data set is called.
    arrays : (x, y) or (x, y, x_test, y_test), as numpy arrays, tensors or lists. x holds images (n, h, w), (n, c, h, w)
        or (n, h, w, 3), or vectors (n, d); y holds class numbers 0 to k - 1, (n,).
    source : where the arrays come from, for messages.
    classes : the names of the classes; their numbers by default.
    augmentation : which random changes keep a label; by default images may be shifted by an eighth and flipped.

    >>> from_arrays("dots", (np.zeros((4, 8, 8), np.uint8), [0, 1, 0, 1])).inputs
    (1, 8, 8)
    """
    if len(arrays) not in (2, 4):
        raise RequestError(f"data must be (x, y) or (x, y, x_test, y_test), got {len(arrays)} arrays")
    tensors: list[Tensor | None] = [examples(arrays[0], "x"), labels(arrays[1], "y"), None, None]
    if len(arrays) == 4:
        tensors[2:] = [examples(arrays[2], "x_test"), labels(arrays[3], "y_test")]
    train_x, train_y, test_x, test_y = tensors
    assert train_x is not None
    assert train_y is not None
    if classes is None:
        # A label beyond the limit is refused by the data set; it must not make that many names first.
        classes = tuple(map(str, range(min(int(train_y.max()) + 1, MOST_CLASSES) if len(train_y) else 0)))
    if augmentation is None:
        augmentation = default_augment(tuple(train_x.shape[1:]))
    return Dataset(name, train_x, train_y, test_x, test_y, classes, source, augmentation)


def examples(value: Any, what: str) -> Tensor:
    """Images (n, c, h, w), uint8 kept and all else float32, or vectors (n, d) as float32; a copy.

    Parameters
    ----------
    value : images (n, h, w), (n, c, h, w) or (n, h, w, 3), or vectors (n, d), as a numpy array, a tensor or lists.
    what : what messages call it.

    >>> examples(np.zeros((4, 8, 8, 3), np.uint8), "x").shape
    torch.Size([4, 3, 8, 8])
    """
    x = _tensor(value, what)
    if x.is_complex():
        raise RequestError(f"{what} must hold real numbers, got {x.dtype}")
    if x.dim() == 3:
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


def labels(value: Any, what: str) -> Tensor:
    """Labels (n,) as int64; fractions, text and one-hot rows are refused."""
    y = _tensor(value, what)
    if y.dim() == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.dim() != 1:
        raise RequestError(f"{what} must hold one class number per row, got shape {tuple(y.shape)}")
    if y.is_complex():
        raise RequestError(f"{what} must hold whole numbers, got {y.dtype}")
    if y.is_floating_point():
        wrong = y[(y != y.round()) | ~y.isfinite()]
        if len(wrong):
            raise RequestError(f"{what} must hold whole numbers 0 to k - 1, got {wrong[0].item():g}")
    return y.to(torch.int64).contiguous()


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
