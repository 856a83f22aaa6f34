"""ImageNet-16-120: the first 120 classes of ImageNet at 16 x 16 pixels (NAS-Bench-201, Section 2.2).

Its owner's files are pickles of {"data": bytes (n, 768), "labels": 1 to 1000}. They are read by an unpickler that can
build arrays of numbers and nothing else, so a file from a stranger runs no code.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError

IMAGENET16_FILES = (*(f"train_data_batch_{i}" for i in range(1, 11)), "val_data")
CLASSES = 120
SIDE = 16
_ARRAYS = {("numpy", "ndarray"), ("numpy", "dtype")} | {
    (f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")
}


def _latin(text: str, encoding: str) -> bytes:
    """What old pickles write bytes as; no other encoding is asked for there."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding!r}")
    return text.encode("latin-1")


class _Arrays(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):
            return _latin
        if (module, name) not in _ARRAYS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no array of numbers")
        return super().find_class(module.replace("numpy.core.", "numpy._core."), name)


def read_imagenet16(paths: list[Path]) -> tuple[NDArray[Any], ...]:
    """Images, labels 0 to 119, test images (the owner's validation part) and test labels."""
    parts = [_batch(path) for path in paths]
    train = [np.concatenate(side) for side in zip(*parts[:-1], strict=True)]
    return (*train, *parts[-1])


def _batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    try:
        with path.open("rb") as file:
            found = _Arrays(file, encoding="latin1").load()
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # a damaged pickle can raise anything
        raise RequestError(f"{path} cannot be read as a batch of ImageNet16: {error}") from error
    try:
        data, labels = np.asarray(found["data"]), np.asarray(found["labels"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RequestError(f"{path} is no batch of ImageNet16: it lacks data or labels ({error!r})") from error
    if data.dtype != np.uint8 or data.shape != (len(labels), 3 * SIDE * SIDE) or labels.dtype.kind not in "iu":
        raise RequestError(
            f"{path} is no batch of ImageNet16: data of shape {data.shape} and type {data.dtype} for "
            f"{labels.shape} labels"
        )
    if len(labels) and not 1 <= labels.min() <= labels.max() <= 1000:
        raise RequestError(f"{path} is damaged: it holds labels {labels.min()} to {labels.max()}, they are 1 to 1000")
    kept = labels <= CLASSES
    return data[kept].reshape(-1, 3, SIDE, SIDE), (labels[kept] - 1).astype(np.uint8)
