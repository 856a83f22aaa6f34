"""How photos are read for a preset that was published for photos of one size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasight.data._dataset import Dataset
from nasight.data._files import holds_photos, load

MIRRORED = "flip"


@dataclass(frozen=True, slots=True)
class PhotoDefaults:
    """What holds for photos where the caller says nothing: pixels per side, and random changes in words.

    None: what `load` does.
    """

    resolution: int | None = None
    augment: str | None = None


def photo_defaults(source: object, pixels: int | None) -> PhotoDefaults:
    """How a source is read for a preset that was published for photos of `pixels` per side.

    Parameters
    ----------
    source : what `load` takes. Only photos in a folder or a table have defaults; all else is read as it is.
    pixels : None for a preset that was not published for photos.
    """
    if pixels is None or not holds_photos(source):
        return PhotoDefaults()
    return PhotoDefaults(pixels, MIRRORED)


def load_at(
    pixels: int | None,
    source: Any,
    *,
    folder: str | Path | None = None,
    resolution: int | None = None,
    fit: str | None = None,
    strict: bool = False,
    augment: bool | str | None = None,
) -> Dataset:
    """The data set of a source; photos have `pixels` per side and are mirrored at random, unless the caller says else.

    Parameters
    ----------
    pixels, source : as in `photo_defaults`.
    folder, fit, strict : as in `load`.
    resolution : as in `load`; it wins over `pixels`.
    augment : as in `load`; False: photos are not mirrored.

    >>> load_at(224, "digits").inputs
    (1, 8, 8)
    """
    usual = photo_defaults(source, pixels)
    words = augment if isinstance(augment, str) else None if augment is False else usual.augment
    side = usual.resolution if resolution is None else resolution
    return load(source, folder=folder, resolution=side, fit=fit, strict=strict, augment=words)
