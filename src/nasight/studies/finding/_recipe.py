"""The recipe of all trainings, chosen on the reference by a small grid, one setting after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nasight.errors import RunError
from nasight.studies.finding._race import Outcome
from nasight.studies.finding._work import AUGMENTATIONS, Recipe

RATES = (0.05, 0.015, 0.15)
DECAYS = (3e-4, 3e-3, 3e-5)
NONE = AUGMENTATIONS[0]


@dataclass(frozen=True)
class Tried:
    """A recipe that was tried, and its accuracy; None: the training failed."""

    recipe: Recipe
    accuracy: float | None
    whole: bool = False
    """Whether its training was as long as those of the race's last rung; else it was a short one."""


Train = Callable[[Sequence[Recipe], bool], Sequence[Outcome | None]]
"""Outcomes of the reference with some recipes, in short trainings or in whole ones."""


def choose_recipe(
    train: Train, *, images: bool, changes: Sequence[str] | None = None, whole: bool = True
) -> tuple[Recipe, list[Tried]]:
    """The best recipe, and all that were tried.

    First the random changes of images (those in `changes`, where some were asked for), then the learning rate, then the
    decay of the weights; at equal accuracy the one that was there first stays. All trainings of a length share seed,
    rows and their order, so they differ by the recipe alone.

    Random changes slow a network down at first and help it later, so short trainings are wrong about them: with 8,000
    images of CIFAR-10 they cost a point after 21 epochs and are worth five after 63 (`benchmarks/find_races.py`). With
    `whole`, whole trainings compare them. The rest is chosen by short ones.
    """
    best, tried = Recipe(), list[Tried]()

    def best_of(recipes: Sequence[Recipe], *, whole: bool) -> Recipe | None:
        """The best of some recipes, those of which are trained that were not; None: all failed."""
        known = {row.recipe for row in tried if row.whole == whole}
        new = [recipe for recipe in recipes if recipe not in known]
        outcomes = train(new, whole)
        tried.extend(Tried(r, None if o is None else o.accuracy, whole) for r, o in zip(new, outcomes, strict=True))
        accuracy = {row.recipe: row.accuracy for row in tried if row.whole == whole}
        # Of equal ones the first.
        worked = [
            (value, -place, recipe) for place, recipe in enumerate(recipes) if (value := accuracy[recipe]) is not None
        ]
        return max(worked)[2] if worked else None

    changed = [replace(best, augmentation=name) for name in changes or (AUGMENTATIONS if images else (NONE,))]
    # Where all of them fail, a lower learning rate may not.
    best = best_of(changed, whole=whole and len(changed) > 1) or changed[0]
    found = best_of([replace(best, lr=value) for value in RATES], whole=False)
    if found is None:
        raise RunError("no training of the baseline ended: every learning rate that was tried diverged")
    return best_of([replace(found, weight_decay=value) for value in DECAYS], whole=False) or found, tried
