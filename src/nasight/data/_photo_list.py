"""Which photos there are, and of which class: folders of classes, in parts or not, or a table of paths."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nasight.data._row_files import read_table, table_suffix
from nasight.errors import RequestError

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
PARTS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "testing": "test",
}
"""What folders and cells are called that say which part a photo belongs to."""
PATH_COLUMNS = ("path", "file", "filename", "file_name", "image", "photo")
LABEL_COLUMNS = ("label", "class", "target", "category")
PART_COLUMNS = ("split", "part", "set")


@dataclass(frozen=True)
class PhotoList:
    """Photos with the numbers of their classes: those to learn from, and those that judge, if any."""

    root: Path
    classes: tuple[str, ...]
    train: list[tuple[Path, int]]
    test: list[tuple[Path, int]]
    notes: tuple[str, ...] = ()

    def names(self) -> dict[str, Path]:
        """Every photo by part, class and path, for a digest that says whether any of them changed."""
        parts = (("train", self.train), ("test", self.test))
        return {f"{part} {label} {path}": path for part, files in parts for path, label in files}


def is_photo_table(path: Path) -> bool:
    """Whether a .csv or .tsv file lists images: a cell of its first row is the name of one."""
    if not path.is_file() or table_suffix(path) not in (".csv", ".tsv"):
        return False
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t" if table_suffix(path) == ".tsv" else ",")
            next(reader)
            return any(_is_image(cell.strip()) for cell in next(reader))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, StopIteration, ValueError):
        return False


def list_folder(folder: Path) -> PhotoList:
    """The photos of class/file, or of train/class/file with val/class/file and test/class/file.

    Classes are the sub-folders in alphabetical order. Where there is no test folder, val judges; where there is one,
    the photos of val are learned from, and searches hold out rows of their own.
    """
    names = _subfolders(folder)
    parts = {"train": folder}
    if "train" in {PARTS.get(name) for name in names} and all(name in PARTS for name in names):
        parts = {PARTS[name]: folder / name for name in names}
        if not _subfolders(parts["train"]):
            parts = {"train": folder}
    classes = _subfolders(parts["train"])
    if not classes:
        raise RequestError(f"{parts['train']} has no sub-folders; an image folder has one for each class")
    for part in parts.values():
        unknown = [name for name in _subfolders(part) if name not in classes]
        if unknown:
            raise RequestError(f"{part / unknown[0]} is a class that {parts['train']} does not have")
    files = {name: _labeled(part, classes) for name, part in parts.items()}
    return _parted(folder, tuple(classes), files)


def list_table(path: Path) -> PhotoList:
    """The photos that a .csv or .tsv file names: a column of paths, one of classes, perhaps one of parts."""
    table = read_table(path, "\t" if table_suffix(path) == ".tsv" else ",")
    lower = [name.lower() for name in table.columns]
    images = [at for at, _ in enumerate(lower) if _is_image(table.cells[0][at].strip())]
    at = next((lower.index(name) for name in PATH_COLUMNS if name in lower and lower.index(name) in images), images[0])
    part = next((lower.index(name) for name in PART_COLUMNS if name in lower and lower.index(name) != at), None)
    left = [place for place in range(len(lower)) if place not in (at, part)]
    label = next((lower.index(name) for name in LABEL_COLUMNS if name in lower), left[0] if len(left) == 1 else None)
    if label is None:
        raise RequestError(
            f"{path} must have a column 'label' with the class of each photo; its columns are "
            f"{', '.join(table.columns)}"
        )
    labels, paths = table.column(label), table.column(at)
    classes = _sorted(set(labels))
    numbers = {name: number for number, name in enumerate(classes)}
    kinds = ["train"] * len(labels) if part is None else [cell.strip().lower() for cell in table.column(part)]
    files: dict[str, list[tuple[Path, int]]] = {}
    for row, (name, where) in enumerate(zip(labels, paths, strict=True)):
        kind = kinds[row]
        if kind not in PARTS:
            raise RequestError(
                f"{path} has the part {kind!r} in line {table.lines[row]}; parts are train, val and test"
            )
        files.setdefault(PARTS[kind], []).append((path.parent / where.strip(), numbers[name]))
    if "train" not in files:
        raise RequestError(f"{path} has no photo of the part train")
    return _parted(path, tuple(classes), files)


def _parted(root: Path, classes: tuple[str, ...], files: dict[str, list[tuple[Path, int]]]) -> PhotoList:
    train, val, test = (files.get(name, []) for name in ("train", "val", "test"))
    if val and test:
        joined = f"the {len(val):,} photos of val are learned from: a search holds out rows of its own, and test judges"
        return PhotoList(root, classes, train + val, test, (joined,))
    if val:
        return PhotoList(root, classes, train, val, (f"val judges, with {len(val):,} photos",))
    return PhotoList(root, classes, train, test)


def _sorted(names: set[str]) -> list[str]:
    """As numbers where all of them are, so that 10 comes after 9."""
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)


def _subfolders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _labeled(part: Path, classes: list[str]) -> list[tuple[Path, int]]:
    """The images of a part with their labels; those in deeper folders where a class has none of its own."""
    found: list[tuple[Path, int]] = []
    for label, name in enumerate(classes):
        folder = part / name
        inside = sorted(folder.iterdir()) if folder.is_dir() else []
        images = [path for path in inside if _is_image(path.name) and path.is_file()]
        if folder.is_dir() and not images:
            images = list(image_files(folder))
        if folder.is_dir() and not images:
            raise RequestError(f"{folder} holds no images ({', '.join(sorted(SUFFIXES))})")
        found += [(path, label) for path in images]
    if not found:
        raise RequestError(f"{part} holds no images")
    return found


def image_files(folder: str | Path) -> Iterator[Path]:
    """The image files in a folder and in its sub-folders, in the order of their names; hidden ones are left out."""
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(names) if _is_image(name))


def _is_image(name: str) -> bool:
    path = Path(name)
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
