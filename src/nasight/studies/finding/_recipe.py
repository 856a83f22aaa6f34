"""The recipe of all trainings, chosen on the reference by a small grid, one setting after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nasight.errors import RunError
from nasight.studies.finding._race import Outcome
from nasight.studies.finding._work import AUGMENTATIONS, Recipe

RATES = (0.05, 0.015, 0.15)
DECAYS = (3e-4, 3e-3, 3e-5)
Row = tuple[Recipe, float | None]


def choose_recipe(
    train: Callable[[Sequence[Recipe]], Sequence[Outcome | None]], *, images: bool, changes: Sequence[str] | None = None
) -> tuple[Recipe, list[Row]]:
    """The best recipe, and all that were tried with their accuracy (None: the training failed).

    First the random changes of images (those in `changes`, where some were asked for), then the learning rate, then the
    decay of the weights; at equal accuracy the one that was there first stays. All trainings share seed, rows and their
    order, so they differ by the recipe alone.
    """
    best, tried = Recipe(), dict[Recipe, Outcome | None]()
    changes = changes or (AUGMENTATIONS if images else AUGMENTATIONS[:1])
    for part in ("augmentation", "lr", "weight_decay"):
        asked = {
            "augmentation": [replace(best, augmentation=name) for name in changes],
            "lr": [replace(best, lr=value) for value in RATES],
            "weight_decay": [replace(best, weight_decay=value) for value in DECAYS],
        }[part]
        new = [recipe for recipe in asked if recipe not in tried]
        tried |= dict(zip(new, train(new), strict=True))
        worked = [recipe for recipe in asked if tried[recipe] is not None]
        if not worked:
            raise RunError("no training of the baseline ended: every learning rate that was tried diverged")
        best = max(worked, key=lambda recipe: accuracy(tried[recipe]))
    return best, [(recipe, None if o is None else o.accuracy) for recipe, o in tried.items()]


def accuracy(outcome: Outcome | None) -> float:
    return float("-inf") if outcome is None else outcome.accuracy
