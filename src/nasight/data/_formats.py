"""Readers of the files that data owners publish: IDX (MNIST, Fashion-MNIST) and the CIFAR-10 binary version."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError

CIFAR_RECORD = 1 + 3 * 32 * 32
CIFAR_ROWS = 10_000


def read_idx(path: Path, dims: int) -> NDArray[np.uint8]:
    """The array of bytes in an IDX file: magic 0, 0, 8, dims; the sizes, big-endian; the bytes."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise RequestError(f"{path} is not a whole gzip file ({error}); get it again") from error
    start = 4 + 4 * dims
    if len(data) < start or data[:4] != bytes((0, 0, 8, dims)):
        expected = bytes((0, 0, 8, dims)).hex(" ")
        raise RequestError(f"{path} is not an IDX file: it starts with {data[:4].hex(' ')}, not with {expected}")
    shape = tuple(np.frombuffer(data, ">u4", dims, offset=4).tolist())
    size = int(np.prod(shape, dtype=object))
    if len(data) - start != size:
        raise RequestError(f"{path} announces {size} bytes for shape {shape} but holds {len(data) - start}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def read_idx_set(paths: list[Path]) -> tuple[NDArray[np.uint8], ...]:
    """Images, labels, test images and test labels of the four files, in this order."""
    arrays = tuple(read_idx(path, dims) for path, dims in zip(paths, (3, 1, 3, 1), strict=True))
    for images, labels, path in ((arrays[0], arrays[1], paths[1]), (arrays[2], arrays[3], paths[3])):
        _check_labels(path, labels)
        if len(images) != len(labels):
            raise RequestError(f"{path} holds {len(labels)} labels for {len(images)} images")
    return arrays


def read_cifar_set(paths: list[Path]) -> tuple[NDArray[np.uint8], ...]:
    """Images, labels, test images and test labels of five training batches and a test batch, in this order."""
    batches = [_read_cifar(path) for path in paths]
    images = np.concatenate([batch[:, 1:] for batch in batches[:-1]]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([batch[:, 0] for batch in batches[:-1]])
    return images, labels, batches[-1][:, 1:].reshape(-1, 3, 32, 32), batches[-1][:, 0]


def _read_cifar(path: Path) -> NDArray[np.uint8]:
    """(10000, 3073): a label, then the red, the green and the blue plane of each image."""
    size = path.stat().st_size
    if size != CIFAR_ROWS * CIFAR_RECORD:
        raise RequestError(f"{path} holds {size} bytes, not the {CIFAR_ROWS * CIFAR_RECORD} of 10000 CIFAR-10 images")
    rows = np.fromfile(path, np.uint8).reshape(CIFAR_ROWS, CIFAR_RECORD)
    _check_labels(path, rows[:, 0])
    return rows


def _check_labels(path: Path, labels: NDArray[np.uint8]) -> None:
    if labels.size and labels.max() > 9:
        raise RequestError(f"{path} is damaged: it holds label {labels.max()}, and labels are 0 to 9")
