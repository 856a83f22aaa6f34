"""What a search leaves out of its data, what it does to it at random and what it follows, said before it begins."""

from __future__ import annotations

from nasight.data import Dataset, note, tell_augmentation
from nasight.searching._published import why_usual
from nasight.searching._settings import SearchSettings
from nasight.spaces import Space


def tell_amounts(settings: SearchSettings, data: Dataset, *, asked: bool) -> None:
    """Say how many rows are used, where a preset takes fewer than there are, and which random changes images get."""
    rows = len(data.train_y)
    used = round(settings.share * rows) if settings.share is not None else min(settings.examples or rows, rows)
    if used < rows and not asked:
        note(f"{used:,} of {rows:,} rows (preset {settings.preset}); --examples all")
    tell_augmentation(data, applied=settings.augment)


def tell_protocol(settings: SearchSettings, space: Space) -> None:
    """Say so where a preset that follows publications has none to follow."""
    why = why_usual(settings.method, space.family, settings.preset)
    if why is not None:
        note(
            f"preset {settings.preset} follows no published protocol of {settings.method} on {space.name}: {why}; the "
            "usual settings of the method are taken"
        )
