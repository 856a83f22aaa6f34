"""What a search leaves out of its data, and what it does to it at random, said before it begins."""

from __future__ import annotations

from nasight.data import Dataset, note, tell_augmentation
from nasight.searching._settings import SearchSettings


def tell_amounts(settings: SearchSettings, data: Dataset, *, asked: bool) -> None:
    """Say how many rows are used, where a preset takes fewer than there are, and which random changes images get."""
    rows = len(data.train_y)
    used = round(settings.share * rows) if settings.share is not None else min(settings.examples or rows, rows)
    if used < rows and not asked:
        note(f"{used:,} of {rows:,} rows (preset {settings.preset}); --examples all")
    tell_augmentation(data, applied=settings.augment)
