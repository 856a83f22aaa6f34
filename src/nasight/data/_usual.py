"""How photos are read for a preset that was published for photos of one size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasight.data._dataset import Dataset
from nasight.data._files import holds_photos, load

SEARCH_CHANGES = "crop=0.08,flip"
"""The random changes of published searches on ImageNet."""
TRAINING_CHANGES = "crop=0.08,flip,jitter=0.4"
"""Those of published trainings."""
FIT = "inner"


@dataclass(frozen=True, slots=True)
class PhotoDefaults:
    """What holds for photos where the caller says nothing: pixels per side, random changes in words, and fit.

    None: what `load` does.
    """

    resolution: int | None = None
    augment: str | None = None
    fit: str | None = None


def photo_defaults(source: object, pixels: int | None, *, training: bool = False) -> PhotoDefaults:
    """How a source is read for a preset that was published for photos of `pixels` per side.

    Parameters
    ----------
    source : what `load` takes. Only photos in a folder or a table have defaults; all else is read as it is.
    pixels : None for a preset that was not published for photos.
    training : whether a network is trained, whose colors change at random too; else one is searched for.
    """
    if pixels is None or not holds_photos(source):
        return PhotoDefaults()
    return PhotoDefaults(pixels, TRAINING_CHANGES if training else SEARCH_CHANGES, FIT)


def load_at(
    pixels: int | None,
    source: Any,
    *,
    folder: str | Path | None = None,
    resolution: int | None = None,
    fit: str | None = None,
    strict: bool = False,
    augment: bool | str | None = None,
    training: bool = False,
) -> Dataset:
    """The data set of a source; photos have `pixels` per side and are changed at random as published.

    What the caller says wins. As published: random crops, mirrored, in trainings with other colors too; photos that
    judge show the middle 7/8 of their shorter side.

    Parameters
    ----------
    pixels, source, training : as in `photo_defaults`.
    folder, strict : as in `load`.
    resolution, fit : as in `load`; they win over what was published.
    augment : as in `load`; False: photos are not changed.

    >>> load_at(224, "digits").inputs
    (1, 8, 8)
    """
    usual = photo_defaults(source, pixels, training=training)
    words = augment if isinstance(augment, str) else None if augment is False else usual.augment
    side = usual.resolution if resolution is None else resolution
    return load(source, folder=folder, resolution=side, fit=fit or usual.fit, strict=strict, augment=words)
