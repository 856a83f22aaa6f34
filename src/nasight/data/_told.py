"""What is done to the images of a training at random, said before it begins."""

from __future__ import annotations

from nasight.data._augment import augment_text
from nasight.data._dataset import Dataset
from nasight.notes import note


def tell_augmentation(data: Dataset, *, applied: bool, cutout: int = 0) -> None:
    """Say which random changes images get, and how others are asked for; nothing where examples are no images."""
    if len(data.inputs) != 3:
        return
    text = augment_text(data.augmentation) if applied else "none"
    hole = f"; cutout={cutout}" if cutout else ""
    asked = data.changes != "none" or hole
    unknown = "" if asked else "; --augment shift,flip,cutout,crop,jitter says which keep the class"
    note(f"random changes of images: {text}{hole}{unknown}")
