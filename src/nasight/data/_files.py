"""A data set from its name, a file, a folder or arrays, and what is on this machine."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.npyio import NpzFile

from nasight.data._arrays import from_arrays
from nasight.data._dataset import Dataset
from nasight.data._formats import read_cifar_set, read_idx_set
from nasight.data._sources import CIFAR_FILES, SOURCES, Source, data_folder, unknown_name
from nasight.data._split import generator_for, split_indices
from nasight.errors import RequestError


@dataclass(frozen=True, slots=True)
class Available:
    """Whether a named data set is on this machine: where, or how to get it; its bytes here, or to download."""

    name: str
    here: bool
    where: str
    size: int
    get: str


def load(source: str | Path | Dataset | tuple[Any, ...], *, folder: str | Path | None = None) -> Dataset:
    """The data set that `source` means.

    A name (digits, fashion-mnist, mnist, cifar-10; looked for in `folder`, else $NASIGHT_DATA, else the
    user's cache), a path to an .npz file (x, y and optionally x_test, y_test), a path to a folder of images
    (class/file, or train/class/file and test/class/file), arrays (x, y) or (x, y, x_test, y_test), or a
    data set. A name wins over a path of the same spelling: write ./mnist for the folder.

    >>> load("digits").inputs
    (1, 8, 8)
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, (tuple, list)):
        return from_arrays("arrays", tuple(source), source="arrays")
    if not isinstance(source, (str, Path)):
        raise RequestError(f"data must be a name, a path or arrays (x, y), got a {type(source).__name__}")
    if isinstance(source, str) and source in SOURCES:
        return _load_named(SOURCES[source], data_folder(folder), folder)
    path = Path(source).expanduser()
    if path.is_dir():
        from nasight.data._images import read_image_folder

        arrays, classes = read_image_folder(path)
        return from_arrays(path.resolve().name, arrays, source=str(path), classes=classes)
    if path.is_file():
        return _load_npz(path)
    if isinstance(source, Path) or path.suffix or len(path.parts) > 1:
        raise RequestError(f"there is no file or folder {source}")
    raise unknown_name(source)


def available(folder: str | Path | None = None) -> list[Available]:
    """Every data set known by name, and whether it is here."""
    root = data_folder(folder)
    rows = [Available("digits", True, "scikit-learn", 0, "")]
    for source in SOURCES.values():
        if source.files:
            place = find(source, root)
            paths = source.paths(place).values() if place else ()
            size = sum(path.stat().st_size for path in paths if path) or source.size
            rows.append(Available(source.name, place is not None, str(place or ""), size, _command(source, folder)))
    return rows


def find(source: Source, root: Path) -> Path | None:
    """The first place that holds all files of a data set."""
    return next((place for place in source.places(root) if all(source.paths(place).values())), None)


def read_named(source: Source, place: Path) -> Dataset:
    """The data set whose files are in `place`."""
    paths = [path for path in source.paths(place).values() if path]
    arrays = read_cifar_set(paths) if source.files == CIFAR_FILES else read_idx_set(paths)
    return from_arrays(source.name, arrays, source=str(place), classes=source.classes, augmentation=source.augmentation)


def _load_named(source: Source, root: Path, folder: str | Path | None) -> Dataset:
    if source.name == "digits":
        return _digits(source)
    place = find(source, root)
    if place is not None:
        return read_named(source, place)
    for candidate in source.places(root):
        absent = [file for file, path in source.paths(candidate).items() if path is None]
        if len(absent) < len(source.files):
            raise RequestError(
                f"data set {source.name!r} in {candidate} lacks {absent[0]}; get it with `{_command(source, folder)}`"
            )
    looked = " or ".join(map(str, source.places(root)))
    raise RequestError(f"data set {source.name!r} is not in {looked}; get it with `{_command(source, folder)}`")


def _command(source: Source, folder: str | Path | None) -> str:
    return f"nasight data get {source.name}" + (f" --folder {folder}" if folder is not None else "")


def _digits(source: Source) -> Dataset:
    """The 1797 digits of scikit-learn, four fifths of each class to train on, the same for everyone."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x = torch.from_numpy(bunch.images).float()[:, None] / 16
    y = torch.from_numpy(bunch.target).long()
    first = len(y) * 4 // 5
    train, test = split_indices(y, [first, len(y) - first], generator_for("digits", "test"))
    return Dataset(
        source.name, x[train], y[train], x[test], y[test], source.classes, "scikit-learn", source.augmentation
    )


def _load_npz(path: Path) -> Dataset:
    if path.suffix.lower() != ".npz":
        raise RequestError(f"{path} is not an .npz file or a folder of images")
    keys = ("x", "y", "x_test", "y_test")
    try:
        # Opened here, because numpy leaves a file that it cannot read open.
        with path.open("rb") as handle:
            file = np.load(handle, allow_pickle=False)
            names = list(file.files) if isinstance(file, NpzFile) else []
            arrays = {key: file[key] for key in keys if key in names}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError) as error:
        raise RequestError(f"{path} cannot be read as an .npz file of plain arrays ({error})") from error
    absent = [key for key in keys[: 4 if len(arrays) > 2 else 2] if key not in arrays]
    if absent:
        raise RequestError(f"{path} lacks the array {absent[0]!r}; it holds {', '.join(names) or 'nothing'}")
    return from_arrays(path.stem, tuple(arrays.values()), source=str(path))
