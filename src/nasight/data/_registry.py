"""Formats of files and names of data sets: the built-in formats, and what programs and packages add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nasight.data._dataset import Dataset
from nasight.data._npz import read_npz
from nasight.data._photo_list import is_photo_table, list_folder, list_table
from nasight.data._photos import Reading, read_photos
from nasight.data._sources import SOURCES
from nasight.data._tables import holds_table_set, read_table_set
from nasight.errors import RequestError
from nasight.registry import Registry


@dataclass(frozen=True)
class DataFormat:
    """A way to read a data set from a file or a folder.

    Parameters
    ----------
    name : what messages call it, with its article, such as "a Parquet file".
    matches : whether a path that exists is in this format; looks at its name or its first bytes, reads no data.
    read : the data set in a path that matches; `nasight.data.from_arrays` makes one from arrays.
    """

    name: str
    matches: Callable[[Path], bool]
    read: Callable[[Path], Dataset]


LoadData = Callable[[Path], Dataset]
"""From the data folder to a data set."""


def _checked(name: str, thing: object) -> DataFormat | LoadData:
    if isinstance(thing, Dataset):
        return lambda folder: thing
    if not isinstance(thing, DataFormat) and not callable(thing):
        raise RequestError(
            f"{name!r} must be a DataFormat, a Dataset or a function from the data folder to one, got {thing!r}"
        )
    return thing


def _read_images(path: Path, reading: Reading | None = None) -> Dataset:
    return read_photos(list_folder(path), str(path), reading or Reading())


def _read_photo_table(path: Path, reading: Reading | None = None) -> Dataset:
    return read_photos(list_table(path), str(path), reading or Reading())


TABLE = DataFormat("a table (.csv, .tsv, .jsonl, .parquet)", holds_table_set, read_table_set)
NPZ = DataFormat("an .npz file", lambda path: path.is_file() and path.suffix.lower() == ".npz", read_npz)
IMAGES = DataFormat("a folder of images", Path.is_dir, _read_images)
PHOTO_TABLE = DataFormat("a table of photos", is_photo_table, _read_photo_table)
PHOTOS = {IMAGES.name: _read_images, PHOTO_TABLE.name: _read_photo_table}
"""Formats whose files are photos, and how they are read with settings."""
REGISTERED: Registry[DataFormat | LoadData] = Registry(
    "data set or format",
    "nasight.data",
    {known.name: known for known in (NPZ, IMAGES, TABLE, PHOTO_TABLE)},
    check=_checked,
)


def register(data: DataFormat | Dataset | LoadData, name: str | None = None) -> None:
    """Let `load` read a format, or let a name stand for a data set, in this process.

    An installed package does the same by an entry point in the group "nasight.data".

    Parameters
    ----------
    data : a `DataFormat`, which is asked before the built-in ones; or what a name stands for: a `Dataset`, or a
        function that takes the data folder and gives one, called whenever the name is loaded.
    name : what the data set is called; by default the name that a format or a data set has.

    >>> import numpy as np
    >>> from nasight.data import from_arrays, load
    >>> def read(path):
    ...     table = np.loadtxt(path)
    ...     return from_arrays(path.stem, (table[:, :-1], table[:, -1]), source=str(path))
    >>> register(DataFormat("a text table", lambda path: path.suffix == ".txt", read))
    >>> _ = (tmp / "flowers.txt").write_text("0.1 0.2 0\\n0.3 0.1 1\\n")
    >>> load(tmp / "flowers.txt").inputs
    (2,)
    >>> REGISTERED.remove("a text table")
    """
    own = name if name is not None else getattr(data, "name", None)
    if own is None:
        raise RequestError("a data set that is made by a function needs a name, got none")
    if own in SOURCES:
        raise RequestError(f"there is a data set {own!r} already; choose another name")
    REGISTERED.add(own, data)  # type: ignore[arg-type]


def formats() -> list[DataFormat]:
    """All formats in the order in which they are asked: the last one that was registered first, the built-in ones last.

    >>> [known.name for known in formats()][-2:]
    ['a folder of images', 'an .npz file']
    """
    return [thing for thing in reversed(list(REGISTERED.values())) if isinstance(thing, DataFormat)]


def format_of(path: Path) -> DataFormat | None:
    """The format in which a path is, or None."""
    return next((known for known in formats() if known.matches(path)), None)


def registered_names() -> tuple[str, ...]:
    """The names that were given to data sets from outside."""
    return tuple(name for name, thing in REGISTERED.items() if not isinstance(thing, DataFormat))


def load_registered(name: str, folder: Path) -> Dataset:
    """The data set of a name in `registered_names`."""
    thing = REGISTERED[name]
    assert not isinstance(thing, DataFormat)
    return made(thing(folder), f"the data set {name!r}")


def made(data: object, what: str) -> Dataset:
    """What a function from outside has made, if it is a data set."""
    if not isinstance(data, Dataset):
        raise RequestError(f"what reads {what} must give a Dataset, it gave {type(data).__name__}")
    return data
