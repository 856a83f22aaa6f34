"""The stage in which the recipe is chosen: the reference is trained with several, and so is the user's own network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nasight.studies.finding._leg import Leg
from nasight.studies.finding._lengths import paced_epochs
from nasight.studies.finding._names import OWN, SPACE
from nasight.studies.finding._race import Outcome
from nasight.studies.finding._recipe import RATES, Tried, choose_recipe
from nasight.studies.finding._work import Recipe

TUNING_SEED = 50
"""The recipe's trainings have a seed of their own: the best of them must not stand for the reference in the race."""


def tuned_recipe(leg: Leg) -> tuple[Recipe, list[Tried]]:
    """The recipe of a leg, and all that were tried for it: none where an earlier leg's is kept."""
    if leg.previous is not None and not leg.tunes:
        return Recipe(**leg.previous.result["recipe"]), []
    if leg.previous is not None:
        text = "trainings are far longer than those that chose the recipe, so it is chosen again"
        leg.context.tell("note", {"text": text})
    reference = leg.reference()

    def train(recipes: Sequence[Recipe], whole: bool) -> list[Outcome | None]:
        return _tuned(leg, SPACE, reference, recipes, whole=whole)

    asked = None if leg.settings.augment is None else (leg.settings.augment,)
    return choose_recipe(train, images=_has_changes(leg), changes=asked, whole=leg.plan.recipe_whole)


def tuned_own_rates(leg: Leg) -> list[tuple[Recipe, float | None]]:
    """What the user's own network comes to with each learning rate: the recipe was tuned on the space's reference."""
    if not leg.has_own:
        return []
    if leg.previous is not None and not leg.tunes:
        return [(Recipe(**row["recipe"]), row["accuracy"]) for row in leg.previous.result.get("own_rates", [])]
    recipes = [replace(leg.recipe, lr=lr) for lr in RATES]
    outcomes = _tuned(leg, OWN, OWN, recipes)
    return [(r, None if o is None else o.accuracy) for r, o in zip(recipes, outcomes, strict=True)]


def chooses_changes(leg: Leg) -> bool:
    """Whether random changes are chosen, and not named by the user."""
    return _has_changes(leg) and leg.settings.augment is None


def _has_changes(leg: Leg) -> bool:
    """Whether there are random changes to choose among; an augmentation of one's own takes their place."""
    return len(leg.data.inputs) == 3 and leg.context.own.augment is None


def _tuned(
    leg: Leg, key: str, architecture: str, recipes: Sequence[Recipe], *, whole: bool = False
) -> list[Outcome | None]:
    """One network trained with several recipes, in short trainings or in those of the race's last rung."""
    name = architecture if key == SPACE else f"{key}:"
    leg.measure_paces([name])
    epochs = paced_epochs(leg.recipe_epochs(whole), leg.pace(name))
    rows, seed = leg.plan.rows(-1) if whole else leg.plan.taught_by_recipe, leg.seed + TUNING_SEED
    requests = [leg.request(key, architecture, epochs, seed, recipe, rows=rows) for recipe in recipes]
    return leg.context.workers.train(requests)
