"""Arrays that stay in files: rows are read when they are asked for, and their memory is given back."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasight.errors import RunError
from nasight.memory import check_mapped

CHUNK_BYTES = 32 << 20
"""What is read at once where a whole array is looked through."""
HELD_BYTES = 256 << 20
"""A file up to this size may be in the memory of this process as a whole; of larger ones rows are read."""
TRIM_BYTES = 64 << 20
"""After so much was read from a large file, free memory goes back to the system."""


@dataclass(eq=False)
class _Map:
    """A mapped file, and the same file open to read rows from it.

    To read a row costs the memory of that row; to touch it in the map can cost megabytes, for the system maps what lies
    around it too.
    """

    path: Path
    array: weakref.ref[NDArray[np.generic]]
    file: int
    start: int
    """Where in the file the first row begins."""
    since: int = 0
    """Bytes read since free memory was last given back."""

    def release(self) -> None:
        """Give the pages back to the system."""
        array = self.array()
        pages: mmap.mmap | None = getattr(array, "_mmap", None)
        # The pages stay in the system's own cache: to touch them again costs no reading while memory is free.
        if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)

    def read(self, x: Tensor, rows: Tensor) -> Tensor:
        """Rows of the array, or of a part of it that lies in one piece, from the file; neighbors at once."""
        found = torch.empty((len(rows), *x.shape[1:]), dtype=x.dtype)
        size = x[0].numel() * x.element_size()
        content = found.numpy().reshape(-1).view(np.uint8).data
        first = self.start + int(x.storage_offset()) * x.element_size()
        numbers = rows.numpy()
        ends = [*(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)]
        begin = 0
        for end in ends:
            place, part = first + int(numbers[begin]) * size, content[begin * size : end * size]
            while part:
                count = os.preadv(self.file, [part], place)
                if not count:
                    raise RunError(f"{self.path} became shorter while it was read")
                place, part = place + count, part[count:]
            begin = end
        self.since += found.numel() * found.element_size()
        if self.since >= TRIM_BYTES:
            # Batches of megabytes leave holes in glibc's heap, which then grows with all that was ever read.
            self.since = 0
            _trim()(0)
        return found


@cache
def _trim() -> Callable[[int], object]:
    """What gives free memory back to the system; nothing where the C library has no such function."""
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return lambda _: None
    return found


_MAPS: dict[int, _Map] = {}
"""Every file that is mapped, by the address of its first element."""


def open_map(path: str | Path) -> Tensor:
    """The array of an .npy file without reading it; a change of the tensor does not reach the file.

    Parameters
    ----------
    path : the file; an array of objects is refused.

    >>> np.save(tmp / "rows.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    >>> take(open_map(tmp / "rows.npy"), torch.tensor([2, 0]))
    tensor([[4., 5.],
            [0., 1.]])
    """
    check_mapped(Path(path).stat().st_size, f"{path}")
    array = np.load(path, mmap_mode="c", allow_pickle=False)
    tensor = torch.from_numpy(array)
    address = tensor.untyped_storage().data_ptr()
    # The tensor keeps the array alive, and this entry goes with it.
    file = os.open(path, os.O_RDONLY)

    def forget(_: object) -> None:
        _MAPS.pop(address, None)
        os.close(file)

    _MAPS[address] = _Map(Path(path).resolve(), weakref.ref(array, forget), file, int(getattr(array, "offset", 0)))
    return tensor


def map_of(x: Tensor) -> Path | None:
    """The file whose whole array this tensor is, or None."""
    found = _of(x)
    array = None if found is None else found.array()
    whole = array is not None and x.shape == array.shape and x.storage_offset() == 0 and x.is_contiguous()
    return found.path if found is not None and whole else None


def is_mapped(x: Tensor) -> bool:
    """Whether the rows of a tensor lie in a file."""
    return _of(x) is not None


def take(x: Tensor, rows: Tensor | slice) -> Tensor:
    """A copy of some rows; of a file no more than these rows is read.

    Parameters
    ----------
    x : any tensor of rows.
    rows : their numbers, or a slice.
    """
    found = _of(x)
    if found is None:
        return x[rows]
    if x.untyped_storage().nbytes() <= HELD_BYTES:
        return x[rows].clone() if isinstance(rows, slice) else x[rows]
    numbers = torch.arange(len(x))[rows] if isinstance(rows, slice) else rows
    inside = len(numbers) > 0 and int(numbers.min()) >= 0 and int(numbers.max()) < len(x)
    if inside and x.is_contiguous() and hasattr(os, "preadv"):
        return found.read(x, numbers)
    taken = x[numbers]
    found.release()
    return taken


def chunks(x: Tensor, rows: Tensor | None = None, *, most: int | None = None) -> Iterator[Tensor]:
    """All rows, or those named, in order, some at a time, so that a file never has to be in memory as a whole.

    Parameters
    ----------
    x : any tensor of rows.
    rows : their numbers; all by default.
    most : rows per piece; by default as many as are 32 MB.
    """
    size = max(1, x[0].numel() * x.element_size()) if len(x) else 1
    step = min(most or len(x) or 1, max(1, CHUNK_BYTES // size) if most is None else max(1, 8 * CHUNK_BYTES // size))
    if rows is None:
        for start in range(0, len(x), step):
            yield take(x, slice(start, start + step)) if is_mapped(x) else x[start : start + step]
    else:
        for piece in torch.split(rows, step):
            yield take(x, piece)


def extent(x: Tensor) -> tuple[float, float]:
    """The least and the greatest number."""
    found = [(float(piece.min()), float(piece.max())) for piece in chunks(x)]
    return min(low for low, _ in found), max(high for _, high in found)


def _of(x: Tensor) -> _Map | None:
    return _MAPS.get(x.untyped_storage().data_ptr()) if _MAPS and x.device.type == "cpu" else None
