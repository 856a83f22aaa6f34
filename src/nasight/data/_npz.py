"""An .npz file of plain arrays; large examples go into the cache a piece at a time, and are mapped from there."""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.lib.npyio import NpzFile

from nasight.data._arrays import examples, from_arrays
from nasight.data._cache import Site, cached, signature
from nasight.data._dataset import Dataset
from nasight.data._maps import CHUNK_BYTES, open_map
from nasight.errors import RequestError
from nasight.memory import bytes_text, check_mapped, check_room
from nasight.notes import progress

KEYS = ("x", "y", "x_test", "y_test")
OTHER_NAMES = {"x": "x_train", "y": "y_train"}
"""Names in the files that Keras distributes; a file has one kind of names or the other."""
MAPPED_BYTES = 16 << 20
"""Examples that take more than this are mapped; smaller ones are read whole, which is as fast."""
BROKEN = (
    zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, MemoryError, NotImplementedError, RuntimeError,
    KeyError, TypeError, SyntaxError, UnicodeError, RecursionError, struct.error, tokenize.TokenError,
)  # fmt: skip
"""What numpy and zipfile raise for files that are no archives of plain arrays."""


def check_members(handle: BinaryIO, path: Path, read: Callable[[Sequence[str]], Collection[str]]) -> None:
    """Refuse arrays that are larger than memory, or larger than what the file holds of them, before they are read.

    Of all names in the file, `read` gives those that will be read.
    """
    if not zipfile.is_zipfile(handle):
        handle.seek(0)
        return
    total = 0
    with zipfile.ZipFile(handle) as archive:
        wanted = read([entry.filename.removesuffix(".npy") for entry in archive.infolist()])
        for entry in archive.infolist():
            if entry.filename.removesuffix(".npy") in wanted:
                with archive.open(entry) as member:
                    version = np.lib.format.read_magic(member)
                    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else _header_2
                    shape, _, kind = header(member)
                size = math.prod(shape) * kind.itemsize
                if size > entry.file_size:
                    name = entry.filename.removesuffix(".npy")
                    raise RequestError(
                        f"{path} is damaged: the array {name!r} of shape {shape} would have {bytes_text(size)}, and "
                        f"the file holds {bytes_text(entry.file_size)}"
                    )
                total += entry.file_size
    # What is larger than this is not read whole but mapped.
    check_room(min(2 * total, 4 * MAPPED_BYTES), f"{path}")
    check_mapped(total, f"{path}")
    handle.seek(0)


def _header_2(member: Any) -> Any:
    return np.lib.format.read_array_header_2_0(member)


def read_npz(path: Path, task: str | None = None) -> Dataset:
    """The data set of the arrays x, y (or x_train, y_train) and optionally x_test, y_test; nothing is unpickled."""
    try:
        # Opened here, because numpy leaves a file that it cannot read open.
        with path.open("rb") as handle:
            check_members(handle, path, lambda names: _members(names).values())
            file = np.load(handle, allow_pickle=False)
            names = list(file.files) if isinstance(file, NpzFile) else []
            members = _members(names)
            large = _large(file, members) if isinstance(file, NpzFile) and "x" in members else {}
            arrays = {key: file[name] for key, name in members.items() if key not in large}
    except RequestError:
        raise
    except BROKEN as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise RequestError(f"{path} cannot be read as an .npz file of plain arrays ({reason})") from error
    if large:
        place, _ = cached(
            {"npz": signature({str(path.resolve()): path}), "arrays": list(large)}, str(path), _filled(path, large)
        )
        arrays |= {key: open_map(place / f"{key}_x.npy") for key in large}
    absent = [key for key in KEYS[: 4 if len(arrays) > 2 else 2] if key not in arrays]
    if absent:
        lacking = _others(names).get(absent[0], absent[0])
        raise RequestError(f"{path} lacks the array {lacking!r}; it holds {', '.join(names) or 'nothing'}")
    return from_arrays(path.stem, tuple(arrays[key] for key in KEYS if key in arrays), source=str(path), task=task)


def _members(names: Sequence[str]) -> dict[str, str]:
    """Which array of a file stands for which of ours."""
    others = _others(names)
    return {key: name for key in KEYS if (name := others.get(key, key)) in names}


def _others(names: Sequence[str]) -> Mapping[str, str]:
    """The other names of arrays, if a file has these."""
    return OTHER_NAMES if set(OTHER_NAMES.values()) & set(names) and not set(OTHER_NAMES) & set(names) else {}


def _large(file: NpzFile, members: Mapping[str, str]) -> dict[str, str]:
    """The arrays of examples, if together they are large and lie row after row."""
    found = {key: name for key, name in members.items() if key.startswith("x")}
    assert file.zip is not None
    heads = {}
    for key, name in found.items():
        with file.zip.open(f"{name}.npy") as member:
            heads[key] = _head(member)
    size = sum(int(np.prod(shape, dtype=object)) * kind.itemsize for shape, _, kind in heads.values())
    plain = all(not by_column and kind.kind in "biuf" and shape for shape, by_column, kind in heads.values())
    return found if size > MAPPED_BYTES and plain else {}


def _head(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, whether columns come first, and the type of an array that begins here."""
    version = npy.read_magic(member)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(member)


def _filled(path: Path, members: Mapping[str, str]) -> Any:
    def fill(site: Site) -> dict[str, Any]:
        try:
            with zipfile.ZipFile(path) as file:
                for key, name in members.items():
                    with file.open(f"{name}.npy") as member:
                        _copy(site, member, key)
        except BROKEN as error:
            if isinstance(error, RequestError):
                raise
            raise RequestError(f"{path} cannot be read as an .npz file of plain arrays ({error})") from error
        return {}

    return fill


def _copy(site: Site, member: IO[bytes], key: str) -> None:
    """Write an array in the layout of a data set, some rows at a time."""
    shape, _, kind = _head(member)
    row = int(np.prod(shape[1:], dtype=np.int64)) * kind.itemsize
    step = max(1, CHUNK_BYTES // max(1, row))
    writer = None
    for start in range(0, shape[0], step):
        count = min(step, shape[0] - start)
        content = member.read(count * row)
        if len(content) < count * row:
            raise EOFError(f"{key} ends after row {start + len(content) // max(1, row)} of {shape[0]}")
        rows = examples(np.frombuffer(content, kind).reshape(count, *shape[1:]), key).numpy()
        if writer is None:
            writer = site.rows(f"{key}_x", (shape[0], *rows.shape[1:]), str(rows.dtype))
        writer.write(start, rows)
        progress(f"reading {key}", start + count, shape[0])
