"""A data set from its name, a file, a folder or arrays, and what is on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import numpy as np
import torch
from numpy.typing import NDArray

from nasight.arguments import typed
from nasight.data._arrays import examples, from_arrays
from nasight.data._augment import EARLIER, assumed_earlier, augment_text, read_augment
from nasight.data._cache import Site, cached, signature
from nasight.data._cifar100 import CIFAR_100_FILES, read_cifar_100
from nasight.data._dataset import Dataset
from nasight.data._derive import resized
from nasight.data._formats import read_cifar_set, read_idx_set
from nasight.data._imagenet16 import IMAGENET16_FILES, read_imagenet16
from nasight.data._maps import open_map
from nasight.data._npz import read_npz
from nasight.data._objects import load_object
from nasight.data._photos import Reading
from nasight.data._registry import (
    IMAGES,
    NPZ,
    PHOTO_TABLE,
    PHOTOS,
    TABLE,
    format_of,
    formats,
    load_registered,
    made,
    registered_names,
)
from nasight.data._sources import CIFAR_FILES, SOURCES, DataSource, data_folder, unknown_name
from nasight.data._split import split_indices
from nasight.data._tables import read_table_set
from nasight.errors import RequestError
from nasight.notes import note
from nasight.reproducible import generator_for

Reader = Callable[[list[Path]], tuple[NDArray[Any], ...]]
"""From the files of a set to images, labels, test images and test labels."""
READERS: dict[tuple[str, ...], Reader] = {
    CIFAR_FILES: read_cifar_set,
    CIFAR_100_FILES: read_cifar_100,
    IMAGENET16_FILES: read_imagenet16,
}
"""By the files of a set; the others are IDX files."""
PARTS = ("train_x", "train_y", "test_x", "test_y")


@dataclass(frozen=True, slots=True)
class Available:
    """Whether a named data set is on this machine: where, or how to get it; its bytes here, or to download."""

    name: str
    here: bool
    where: str
    size: int
    get: str


@typed
def load(
    source: Any,
    *,
    folder: str | Path | None = None,
    label: str | None = None,
    task: str | None = None,
    resolution: int | None = None,
    fit: str | None = None,
    strict: bool = False,
    augment: str | None = None,
) -> Dataset:
    """The data set that a name, a path or arrays mean.

    Parameters
    ----------
    source : a name (digits, fashion-mnist, mnist, cifar-10, cifar-100, imagenet16-120, or one that was registered); a
        path to an .npz file (x, y, or x_train, y_train, and optionally x_test, y_test), to a folder of photos
        (class/file, or train/class/file with val/class/file and test/class/file), to a .csv or .tsv file of paths and
        labels, to a table (.csv, .tsv, .jsonl, .parquet; or a folder with train and test ones) or to anything in a
        registered format; arrays (x, y) or (x, y, x_test, y_test); a frame of pandas or polars, or two, the second to
        test with; a `torch.utils.data.Dataset` or `DataLoader` of (x, y), or two; a `datasets.Dataset`; or a data set,
        which is returned as it is. A name wins over a path of the same spelling: write ./mnist for the folder. The
        label and the task can be part of a path: rows.csv#label=price&task=numbers.
    folder : where the files of named data sets are; $NASIGHT_DATA or the user's cache by default.
    resolution : pixels per side of all images; by default the size they have, and at most 64 where photos differ.
    fit : how photos of other proportions are brought to it: "crop" (the middle, the default), "pad" or "stretch"; or
        "inner": the middle, and of photos that judge 7/8 of it (224 of 256 pixels, as in tests on ImageNet).
    strict : refuse a photo that cannot be read, where otherwise a few such are named and left out.
    augment : random changes of images that keep their class, such as "shift,flip"; see `read_augment`. By default those
        that a named data set declares, and none for others.

    Large arrays and photos are decoded once, into a cache (`cache_folder`), and mapped from there.

    label : of a table, the column that is asked for, or several joined by commas; "label" or else the last by default.
    task : "classes", "labels" (several of them) or "numbers"; by default what the labels look like.

    >>> load("digits").inputs
    (1, 8, 8)
    """
    reading = Reading(resolution, fit, strict)
    found = _load(source, folder, reading, label, task)
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
    path = Path(_named_in(source, None, None)[0]).expanduser()
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


def _load(source: Any, folder: str | Path | None, reading: Reading, label: str | None, task: str | None) -> Dataset:
    if isinstance(source, Dataset):
        return source
    if not isinstance(source, (str, Path)):
        return load_object(source, label, task)
    source, label, task = _named_in(source, label, task)
    if isinstance(source, str) and source in SOURCES:
        return _load_named(SOURCES[source], data_folder(folder), folder)
    if isinstance(source, str) and source in registered_names():
        return load_registered(source, data_folder(folder))
    path = Path(source).expanduser()
    if path.exists():
        return _load_path(path, reading, label, task)
    if isinstance(source, Path) or path.suffix or len(path.parts) > 1:
        raise RequestError(f"there is no file or folder {source}")
    raise unknown_name(source, registered_names())


def with_label(source: Any, label: str | None = None, task: str | None = None) -> Any:
    """A source that carries the label and the task that are asked of it: a path as a run keeps it, or the data set.

    >>> with_label("houses.csv", "price", "numbers")
    'houses.csv#label=price&task=numbers'
    """
    if label is None and task is None:
        return source
    if not isinstance(source, (str, Path)):
        return load(source, label=label, task=task)
    given = {"label": label, "task": task}
    return f"{source}#{urlencode({key: value for key, value in given.items() if value is not None})}"


def _named_in(source: str | Path, label: str | None, task: str | None) -> tuple[str | Path, str | None, str | None]:
    """The path, and the label and the task that it may name behind a #."""
    path, sign, rest = str(source).rpartition("#")
    if not sign or Path(source).expanduser().exists():
        return source, label, task
    named = parse_qs(rest)
    unknown = next((key for key in named if key not in ("label", "task")), None)
    if unknown is not None or not named:
        raise RequestError(f"behind the # of {source} only label=NAME and task=KIND are known")
    return path, label or named.get("label", [None])[0], task or named.get("task", [None])[0]


def _load_path(path: Path, reading: Reading, label: str | None = None, task: str | None = None) -> Dataset:
    known = format_of(path)
    if known is TABLE:
        return read_table_set(path, label, task)
    if label is not None:
        raise RequestError(f"label {label!r} names a column of a table, and {path} is none")
    if known is NPZ:
        return read_npz(path, task)
    if task not in (None, "classes"):
        raise RequestError(f"task {task!r} is for tables, .npz files and arrays, and {path} is none")
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
    read = READERS.get(source.files, read_idx_set)

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
            raise RequestError(f"data set {source.name!r} in {candidate} lacks {absent[0]}; {_how(source, folder)}")
    looked = " or ".join(map(str, source.places(root)))
    raise RequestError(f"data set {source.name!r} is not in {looked}; {_how(source, folder)}")


def _how(source: DataSource, folder: str | Path | None) -> str:
    if source.downloads is None:
        return f"its owner has it at {source.address}: put {', '.join(source.files[:1])} to {source.files[-1]} there"
    return f"get it with `{_command(source, folder)}`"


def _command(source: DataSource, folder: str | Path | None) -> str:
    if source.downloads is None:
        return f"an account at {source.address}"
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
