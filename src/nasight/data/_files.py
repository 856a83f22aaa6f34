"""A data set from its name, a file, a folder or arrays, and what is on this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nasight.data._arrays import examples, from_arrays
from nasight.data._augment import EARLIER, assumed_earlier, augment_text, read_augment
from nasight.data._cache import Site, cached, signature
from nasight.data._dataset import Dataset
from nasight.data._derive import resized
from nasight.data._formats import read_cifar_set, read_idx_set
from nasight.data._maps import open_map
from nasight.data._photos import Reading
from nasight.data._registry import (
    IMAGES,
    PHOTO_TABLE,
    PHOTOS,
    format_of,
    formats,
    load_registered,
    made,
    registered_names,
)
from nasight.data._sources import CIFAR_FILES, SOURCES, DataSource, data_folder, unknown_name
from nasight.data._split import split_indices
from nasight.errors import RequestError
from nasight.notes import note
from nasight.reproducible import generator_for

PARTS = ("train_x", "train_y", "test_x", "test_y")


@dataclass(frozen=True, slots=True)
class Available:
    """Whether a named data set is on this machine: where, or how to get it; its bytes here, or to download."""

    name: str
    here: bool
    where: str
    size: int
    get: str


def load(
    source: str | Path | Dataset | tuple[Any, ...],
    *,
    folder: str | Path | None = None,
    resolution: int | None = None,
    fit: str | None = None,
    strict: bool = False,
    augment: str | None = None,
) -> Dataset:
    """The data set that a name, a path or arrays mean.

    Parameters
    ----------
    source : a name (digits, fashion-mnist, mnist, cifar-10, or one that was registered); a path to an .npz file (x, y
        and optionally x_test, y_test), to a folder of photos (class/file, or train/class/file with val/class/file and
        test/class/file), to a .csv or .tsv file of paths and labels, or to anything in a registered format; arrays
        (x, y) or (x, y, x_test, y_test); or a data set, which is returned as it is. A name wins over a path of the
        same spelling: write ./mnist for the folder.
    folder : where the files of named data sets are; $NASIGHT_DATA or the user's cache by default.
    resolution : pixels per side of all images; by default the size they have, and at most 64 where photos differ.
    fit : how photos of other proportions are brought to it: "crop" (the middle, the default), "pad" or "stretch".
    strict : refuse a photo that cannot be read, where otherwise a few such are named and left out.
    augment : random changes of images that keep their class, such as "shift,flip"; see `read_augment`. By default those
        that a named data set declares, and none for others.

    Large arrays and photos are decoded once, into a cache (`cache_folder`), and mapped from there.

    >>> load("digits").inputs
    (1, 8, 8)
    """
    reading = Reading(resolution, fit, strict)
    found = _load(source, folder, reading)
    if not found.reading and resolution is not None:
        found = replace(resized(found, resolution), reading={"resolution": resolution})
    if isinstance(source, str | Path) and found.name not in SOURCES and Path(source).expanduser().exists():
        found = found._alike(origin=str(source))
    if found.summary and not isinstance(source, Dataset):
        note(f"{found.source}: {found.summary}")
    return _augmented(found, augment)


def holds_photos(source: object) -> bool:
    """Whether a source is a folder or a table of photos, which `load` decodes at any resolution."""
    if not isinstance(source, str | Path) or (isinstance(source, str) and source in (*SOURCES, *registered_names())):
        return False
    path = Path(source).expanduser()
    return path.exists() and format_of(path) in (IMAGES, PHOTO_TABLE)


def _augmented(data: Dataset, text: str | None) -> Dataset:
    """The data set with the random changes that words ask for."""
    if text is None:
        return data
    unknown, before = data.changes is not None, assumed_earlier(data.inputs)
    if text == EARLIER:
        return data.augmented(before) if unknown else data
    asked = read_augment(text, data.inputs)
    # A run that keeps no words means what was meant before there were any.
    usual = before if unknown else data.augmentation
    return data.augmented(asked, None if asked == usual else augment_text(asked))


def _load(source: str | Path | Dataset | tuple[Any, ...], folder: str | Path | None, reading: Reading) -> Dataset:
    if isinstance(source, Dataset):
        return source
    if isinstance(source, (tuple, list)):
        return from_arrays("arrays", tuple(source), source="arrays")
    if not isinstance(source, (str, Path)):
        raise RequestError(f"data must be a name, a path or arrays (x, y), got a {type(source).__name__}")
    if isinstance(source, str) and source in SOURCES:
        return _load_named(SOURCES[source], data_folder(folder), folder)
    if isinstance(source, str) and source in registered_names():
        return load_registered(source, data_folder(folder))
    path = Path(source).expanduser()
    if path.exists():
        return _load_path(path, reading)
    if isinstance(source, Path) or path.suffix or len(path.parts) > 1:
        raise RequestError(f"there is no file or folder {source}")
    raise unknown_name(source, registered_names())


def _load_path(path: Path, reading: Reading) -> Dataset:
    known = format_of(path)
    if known is None:
        raise RequestError(f"{path} is not {' or '.join(one.name for one in reversed(formats()))}")
    if known in (IMAGES, PHOTO_TABLE):
        return PHOTOS[known.name](path, reading)
    return made(known.read(path), str(path))


def available(folder: str | Path | None = None) -> list[Available]:
    """Every data set known by name, and whether it is on this machine.

    Parameters
    ----------
    folder : the data folder; $NASIGHT_DATA or the user's cache by default.

    >>> available()[0].name, available()[0].here
    ('digits', True)
    """
    root = data_folder(folder)
    rows = [Available("digits", True, "scikit-learn", 0, "")]
    for source in SOURCES.values():
        if source.files:
            place = find(source, root)
            paths = source.paths(place).values() if place else ()
            size = sum(path.stat().st_size for path in paths if path) or source.size
            rows.append(Available(source.name, place is not None, str(place or ""), size, _command(source, folder)))
    return rows + [Available(name, True, "registered", 0, "") for name in registered_names()]


def find(source: DataSource, root: Path) -> Path | None:
    """The first place that holds all files of a data set."""
    return next((place for place in source.places(root) if all(source.paths(place).values())), None)


def read_named(source: DataSource, place: Path) -> Dataset:
    """The data set whose files are in `place`."""
    paths = [path for path in source.paths(place).values() if path]
    read = read_cifar_set if source.files == CIFAR_FILES else read_idx_set

    def fill(site: Site) -> dict[str, Any]:
        for name, array in zip(PARTS, read(paths), strict=True):
            shown = examples(array, name).numpy() if name.endswith("_x") else array
            np.save(site.folder / f"{name}.npy", shown)
        return {}

    files = signature({str(path.resolve()): path for path in paths})
    kept, _ = cached({"named": source.name, "files": files}, source.name, fill)
    stored = [kept / f"{name}.npy" for name in PARTS]
    arrays = tuple(open_map(file) if file.stem.endswith("_x") else np.load(file) for file in stored)
    return from_arrays(source.name, arrays, source=str(place), classes=source.classes, augmentation=source.augmentation)


def _load_named(source: DataSource, root: Path, folder: str | Path | None) -> Dataset:
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


def _command(source: DataSource, folder: str | Path | None) -> str:
    return f"nasight data get {source.name}" + (f" --folder {folder}" if folder is not None else "")


def _digits(source: DataSource) -> Dataset:
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
