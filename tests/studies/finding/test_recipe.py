"""The recipe: whole trainings compare random changes, about which short ones are wrong; these choose the rest."""

from collections.abc import Mapping, Sequence

import pytest

from nasight.errors import RunError
from nasight.studies.finding import Recipe
from nasight.studies.finding._plan import CHANGES, GRID, SHORT_STEPS
from nasight.studies.finding._race import Outcome
from nasight.studies.finding._recipe import choose_recipe


class Network:
    """A network with an accuracy for every kind of random changes, in short trainings and in whole ones."""

    def __init__(self, short: Mapping[str, float | None], whole: Mapping[str, float | None]) -> None:
        self.accuracies = {False: short, True: whole}
        self.trained = list[tuple[Recipe, bool]]()

    def __call__(self, recipes: Sequence[Recipe], whole: bool) -> list[Outcome | None]:
        self.trained += [(recipe, whole) for recipe in recipes]
        found = (self.accuracies[whole].get(recipe.augmentation) for recipe in recipes)
        # A learning rate of 0.015 is a point better than others.
        return [
            None if value is None else Outcome(value + (recipe.lr == 0.015))
            for value, recipe in zip(found, recipes, strict=True)
        ]

    def whole(self) -> list[str]:
        return [recipe.augmentation for recipe, whole in self.trained if whole]


# Measured on 8,000 images of CIFAR-10, after 7 and 63 epochs of the plain network (benchmarks/find_races.py).
SHORT = {"none": 57.4, "shift": 53.55, "shift and flip": 52.8}
WHOLE = {"none": 59.95, "shift": 64.35, "shift and flip": 64.7}


def test_random_changes_that_help_after_the_whole_training_are_chosen_though_short_ones_put_them_last() -> None:
    network = Network(SHORT, WHOLE)
    best, tried = choose_recipe(network, images=True)
    assert best == Recipe(lr=0.015, augmentation="shift and flip")
    assert network.whole() == ["none", "shift", "shift and flip"]
    assert len(tried) == len(network.trained) == len(set(network.trained)) == CHANGES + sum(SHORT_STEPS)
    short = {recipe.augmentation for recipe, whole in network.trained if not whole}
    assert short == {"shift and flip"}  # the learning rate is chosen for what will be used


def test_short_trainings_alone_would_take_none() -> None:
    network = Network(SHORT, WHOLE)
    best, tried = choose_recipe(network, images=True, whole=False)
    assert (best.augmentation, len(tried), network.whole()) == ("none", GRID, [])


def test_at_equal_accuracy_there_are_no_random_changes() -> None:
    for value in (60.0, 55.0):
        network = Network(SHORT, {"none": 60.0, "shift": value, "shift and flip": value})
        assert choose_recipe(network, images=True)[0].augmentation == "none"


def test_nothing_is_compared_where_there_is_no_choice() -> None:
    named, vectors = Network(SHORT, WHOLE), Network(SHORT, WHOLE)
    assert choose_recipe(named, images=True, changes=("shift",))[0].augmentation == "shift"
    assert choose_recipe(vectors, images=False)[0].augmentation == "none"
    assert named.whole() == vectors.whole() == []


def test_failed_trainings_are_not_chosen_and_where_all_fail_that_is_said() -> None:
    network = Network(SHORT, {"none": 60.0, "shift": None, "shift and flip": None})
    assert choose_recipe(network, images=True)[0].augmentation == "none"
    # Where all whole ones fail, short ones with a lower learning rate may not.
    assert choose_recipe(Network(SHORT, {}), images=True)[0] == Recipe(lr=0.015, augmentation="none")
    # Scores below zero, as a bad fit of numbers has, are scores too.
    network = Network({"shift": -15.0}, {"none": -20.0, "shift": -10.0})
    assert choose_recipe(network, images=True)[0].augmentation == "shift"
    with pytest.raises(RunError, match="every learning rate"):
        choose_recipe(Network({}, {}), images=True)
