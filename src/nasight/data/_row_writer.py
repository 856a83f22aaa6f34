"""An .npy file that is written some rows at a time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class RowWriter:
    """Writes rows to their places in an .npy file, in any order, without holding them.

    A file with the same header that is there already is gone on with: `continued` says so.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: str) -> None:
        self.path, self.shape, self.dtype = path, shape, np.dtype(dtype)
        self.row_bytes = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize
        self.continued = self._fits()
        self._handle: int | None = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        header = _header(shape, self.dtype)
        self._start = len(header)
        if not self.continued:
            os.ftruncate(self._handle, 0)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, header)
            os.ftruncate(self._handle, self._start + shape[0] * self.row_bytes)

    def _fits(self) -> bool:
        header = _header(self.shape, self.dtype)
        if not self.path.is_file() or self.path.stat().st_size != len(header) + self.shape[0] * self.row_bytes:
            return False
        with self.path.open("rb") as file:
            return file.read(len(header)) == header

    def write(self, first: int, rows: NDArray[Any]) -> None:
        """Put rows at their place, from row `first` on."""
        assert self._handle is not None
        if rows.shape[1:] != self.shape[1:] or first + len(rows) > self.shape[0]:
            raise ValueError(f"rows {first} on of shape {rows.shape} do not fit an array of shape {self.shape}")
        content = np.ascontiguousarray(rows, self.dtype).data.cast("B")
        os.lseek(self._handle, self._start + first * self.row_bytes, os.SEEK_SET)
        while content:
            content = content[os.write(self._handle, content) :]

    def flush(self) -> None:
        """Bring what was written to the disk."""
        if self._handle is not None:
            os.fsync(self._handle)

    def close(self) -> None:
        """Nothing more is written."""
        if self._handle is not None:
            os.close(self._handle)
        self._handle = None

    def drop(self, rows: list[int]) -> None:
        """Leave out these rows: the others move together. Ends the writing."""
        self.close()
        if not rows:
            return
        old = np.load(self.path, mmap_mode="r")
        kept = np.setdiff1d(np.arange(self.shape[0]), rows)
        beside = RowWriter(self.path.with_suffix(".new"), (len(kept), *self.shape[1:]), str(self.dtype))
        step = max(1, (32 << 20) // max(1, self.row_bytes))
        for at in range(0, len(kept), step):
            beside.write(at, old[kept[at : at + step]])
        beside.flush()
        beside.close()
        del old
        beside.path.replace(self.path)


def _header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    import io

    file = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()
