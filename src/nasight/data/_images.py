"""A folder of images, one sub-folder per class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
GREY = {"1", "L", "LA"}
COLOR = {"RGB", "RGBA", "P", "PA", "CMYK", "YCbCr"}


def read_image_folder(folder: Path) -> tuple[tuple[NDArray[Any], ...], tuple[str, ...]]:
    """The arrays (x, y) of class/file, or (x, y, x_test, y_test) of train/class/file and test/class/file; the classes.

    Classes are the sub-folders in alphabetical order. Images stay grey when all are; transparency is dropped.
    """
    names = _subfolders(folder)
    parts = [folder]
    if "train" in names and set(names) <= {"train", "test"} and _subfolders(folder / "train"):
        parts = [folder / name for name in ("train", "test") if name in names]
    classes = _subfolders(parts[0])
    if not classes:
        raise RequestError(f"{parts[0]} has no sub-folders; an image folder has one for each class")
    unknown = [name for name in _subfolders(parts[-1]) if name not in classes]
    if unknown:
        raise RequestError(f"{parts[-1] / unknown[0]} is a class that {parts[0]} does not have")
    listed = [_files(part, classes) for part in parts]
    images = [_stack([path for path, _ in files]) for files in listed]
    if len({part.shape[1:] for part in images}) > 1:
        images = _alike(images, listed)
    labels = [np.array([label for _, label in files]) for files in listed]
    return tuple(array for pair in zip(images, labels, strict=True) for array in pair), tuple(classes)


def _subfolders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _files(part: Path, classes: list[str]) -> list[tuple[Path, int]]:
    """The images of a part with their labels."""
    found: list[tuple[Path, int]] = []
    for label, name in enumerate(classes):
        folder = part / name
        inside = sorted(folder.iterdir()) if folder.is_dir() else []
        images = [p for p in inside if p.suffix.lower() in SUFFIXES and not p.name.startswith(".")]
        if folder.is_dir() and not images:
            raise RequestError(f"{folder} holds no images ({', '.join(sorted(SUFFIXES))})")
        found += [(path, label) for path in images]
    if not found:
        raise RequestError(f"{part} holds no images")
    return found


def _stack(paths: list[Path]) -> NDArray[np.uint8]:
    """(n, c, h, w): one channel when all images are grey, else three."""
    images = [_pixels(path) for path in paths]
    for path, image in zip(paths, images, strict=True):
        _check_size(path, image.shape[1:], paths[0], images[0].shape[1:])
    channels = max(image.shape[0] for image in images)
    return np.stack([np.broadcast_to(image, (channels, *image.shape[1:])) for image in images])


def _alike(images: list[NDArray[np.uint8]], listed: list[list[tuple[Path, int]]]) -> list[NDArray[np.uint8]]:
    """Both parts in color, where only one of them is; parts of two sizes are refused."""
    _check_size(listed[1][0][0], images[1].shape[2:], listed[0][0][0], images[0].shape[2:])
    return [np.broadcast_to(part, (len(part), 3, *part.shape[2:])) for part in images]


def _check_size(path: Path, size: tuple[int, ...], first: Path, expected: tuple[int, ...]) -> None:
    if size != expected:
        raise RequestError(
            f"{path} is {size[1]}x{size[0]} pixels, but {first} is {expected[1]}x{expected[0]}; all must have one size"
        )


def _pixels(path: Path) -> NDArray[np.uint8]:
    """(1, h, w) or (3, h, w)."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            if image.mode in GREY:
                return np.array(image.convert("L"))[None]
            if image.mode in COLOR:
                # A palette with transparency loses it without a warning only by way of RGBA.
                picture = image.convert("RGBA") if image.mode in ("P", "PA") else image
                return np.array(picture.convert("RGB")).transpose(2, 0, 1)
            mode = image.mode
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:  # a broken PNG can be a SyntaxError
        raise RequestError(f"{path} cannot be read as an image ({error})") from error
    raise RequestError(f"{path} has pixels of kind {mode!r}; 8-bit grey or color images can be read")
