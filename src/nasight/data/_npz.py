"""An .npz file of plain arrays."""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib.npyio import NpzFile

from nasight.data._arrays import from_arrays
from nasight.data._dataset import Dataset
from nasight.errors import RequestError
from nasight.memory import bytes_text, check_room

KEYS = ("x", "y", "x_test", "y_test")
BROKEN = (
    zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, MemoryError, NotImplementedError, RuntimeError,
    KeyError, TypeError, SyntaxError, UnicodeError, RecursionError, struct.error, tokenize.TokenError,
)  # fmt: skip
"""What numpy and zipfile raise for files that are no archives of plain arrays."""


def check_members(handle: BinaryIO, path: Path, keys: Sequence[str]) -> None:
    """Refuse arrays that are larger than memory, or larger than what the file holds of them, before they are read."""
    if not zipfile.is_zipfile(handle):
        handle.seek(0)
        return
    total = 0
    with zipfile.ZipFile(handle) as archive:
        for entry in archive.infolist():
            if entry.filename.removesuffix(".npy") in keys:
                with archive.open(entry) as member:
                    version = np.lib.format.read_magic(member)
                    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _header_2
                    shape, _, kind = read(member)
                size = math.prod(shape) * kind.itemsize
                if size > entry.file_size:
                    name = entry.filename.removesuffix(".npy")
                    raise RequestError(
                        f"{path} is damaged: the array {name!r} of shape {shape} would have {bytes_text(size)}, and "
                        f"the file holds {bytes_text(entry.file_size)}"
                    )
                total += entry.file_size
    # Read once, and copied once into the data set.
    check_room(2 * total, f"{path}")
    handle.seek(0)


def _header_2(member: Any) -> Any:
    return np.lib.format.read_array_header_2_0(member)


def read_npz(path: Path, task: str | None = None) -> Dataset:
    """The data set of the arrays x, y and optionally x_test, y_test in a file; nothing in it is unpickled."""
    try:
        # Opened here, because numpy leaves a file that it cannot read open.
        with path.open("rb") as handle:
            check_members(handle, path, KEYS)
            file = np.load(handle, allow_pickle=False)
            names = list(file.files) if isinstance(file, NpzFile) else []
            arrays = {key: file[key] for key in KEYS if key in names}
    except RequestError:
        raise
    except BROKEN as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise RequestError(f"{path} cannot be read as an .npz file of plain arrays ({reason})") from error
    absent = [key for key in KEYS[: 4 if len(arrays) > 2 else 2] if key not in arrays]
    if absent:
        raise RequestError(f"{path} lacks the array {absent[0]!r}; it holds {', '.join(names) or 'nothing'}")
    return from_arrays(path.stem, tuple(arrays.values()), source=str(path), task=task)
