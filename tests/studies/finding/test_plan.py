from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasight.errors import RequestError
from nasight.studies.finding import Outcome, Plan, Recipe, Speed, find, plan, read_budget, time_text
from nasight.studies.finding._lengths import CHEAPER, FEWEST_EPOCHS, PER_TRAINING, taught_rows
from nasight.studies.finding._plan import SEEDS
from nasight.studies.finding._planning import FEWEST_RACED, JUDGING, SHARES, TARGET_SHARES, plan_of_trainings
from nasight.studies.finding._recipe import choose_recipe

SPEED = Speed(train=3e-4, search=6e-4, score=0.1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("8h", 28800), ("1h30m", 5400), ("2d", 172800), (45, 45), ("0.5m", 30)],
)
def test_a_budget_is_read_as_it_is_said(text: str | float, seconds: float) -> None:
    assert read_budget(text).seconds == seconds


@pytest.mark.parametrize("text", ["", "soon", "30", "-5m", "0s", "5 parsecs", "m", "++5m", float("nan"), True, [3]])
def test_what_is_no_budget_is_refused_in_a_sentence(text: object) -> None:
    with pytest.raises(RequestError, match="budget"):
        read_budget(text)  # type: ignore[arg-type]


@given(
    seconds=st.floats(30, 5e5),
    workers=st.integers(1, 64),
    rows=st.integers(200, 200_000),
    tests=st.integers(40, 50_000),
    train=st.floats(1e-5, 1e-2),
    classes=st.integers(2, 100),
    share=st.floats(0.02, 0.9),
    part=st.sampled_from(sorted(SHARES)),
)
def test_a_plan_keeps_to_its_budget(
    seconds: float, workers: int, rows: int, tests: int, train: float, classes: int, share: float, part: str
) -> None:
    speed = Speed(train, 2 * train, 0.1)
    shares = {
        name: share if name == part else value * (1 - share) / (1 - SHARES[part]) for name, value in SHARES.items()
    }
    try:
        found = plan(speed, seconds, workers=workers, rows=rows, classes=classes, tests=tests, shares=shares)
    except RequestError as error:
        least = named_seconds(error)
        assert seconds < least < 10 * 86_400
        again = plan(speed, least, workers=workers, rows=rows, classes=classes, tests=tests, shares=shares)
        assert again.epochs >= FEWEST_EPOCHS
        return
    assert found.epochs >= FEWEST_EPOCHS
    assert list(found.rungs) == sorted(found.rungs)
    assert found.rungs[-1] <= found.epochs
    costs = [found.rungs[i] * found.rows(i) for i in range(len(found.rungs))]
    assert all(short <= CHEAPER * long for short, long in pairwise(costs))
    assert min(found.rung_rows) >= min(taught_rows(rows, found.examples), 400, 20 * classes)
    assert all(places >= 2 for places in found.places)
    assert all(many > few for many, few in pairwise(found.places))
    assert found.examples <= rows
    assert sum(found.seconds.values()) <= seconds
    assert found.judge_share * rows <= min(max(2_000, found.examples), 5_000) + 1
    assert Plan.from_dict(found.to_dict()) == found


def test_where_there_is_time_for_few_epochs_short_rungs_have_fewer_rows_and_many_are_raced() -> None:
    # 30 minutes for 60,000 images: in the end six epochs of 28,029 rows, which no shorter rung can have fewer of. A
    # rung of a third of the rows would have two places, as many as the last one: it is left out.
    found = plan(Speed(1e-3, 3e-3, 0.12), 1_800, workers=2, rows=60_000, classes=10)
    assert found.epochs == FEWEST_EPOCHS
    assert found.rungs == (6, 6)
    assert [rows / found.rung_rows[-1] for rows in found.rung_rows] == pytest.approx([1 / 9, 1], abs=0.01)
    assert found.places == (28, 2)


def test_where_longer_trainings_are_meant_all_are_as_long_as_those_of_the_answer() -> None:
    # Twenty minutes for CIFAR-10: with rungs, two candidates of the longest schedule would say little about 200 epochs.
    speed = Speed(1e-3, 2.5e-3, 0.08, slower=1.5)
    how: dict[str, Any] = {"workers": 2, "rows": 50_000, "classes": 10, "tests": 10_000}
    usual, meant = plan(speed, 1_190, **how), plan(speed, 1_190, whole=True, shares=TARGET_SHARES, **how)
    assert usual.places == (20, 2)
    assert len(meant.places) == 1
    assert meant.places[0] >= 16
    assert meant.rung_rows[0] > usual.rung_rows[0]
    # The answer's are as long: they also learn from the rows that judged.
    assert meant.rungs == (meant.epochs,)
    # All who are proposed are trained, not the leaders alone: the mean of a usual and of a large one.
    alike = plan(replace(speed, slower=1.0), 1_190, whole=True, shares=TARGET_SHARES, **how)
    assert meant.seconds["race"] <= 0.6 * 0.93 * 1_190
    assert 0.5 < meant.examples / alike.examples < 0.9


def test_a_slow_control_takes_the_time_of_candidates_and_one_worker_searches_twice() -> None:
    usual, slow = (
        plan(Speed(3e-4, 6e-4, 0.1, controls), 600, workers=1, rows=1_437, classes=10) for controls in (2.0, 6.0)
    )
    assert (len(slow.rungs), slow.places) < (len(usual.rungs), usual.places)
    assert sum(slow.seconds.values()) <= 600
    assert usual.searches == 2


def test_a_budget_that_is_more_than_is_of_use_is_said() -> None:
    hours, minutes = (plan(SPEED, seconds, workers=2, rows=1_437, classes=10) for seconds in (28_800, 600))
    assert any("not planned" in line for line in hours.lines(28_800))
    assert not any("not planned" in line for line in minutes.lines(600))
    # All that is planned, and the reserve, are the budget.
    (reserve,) = (line for line in minutes.lines(600) if "reserve" in line)
    assert time_text(600 - sum(minutes.seconds.values())) in reserve


def test_where_there_is_time_for_many_epochs_all_rungs_have_all_rows() -> None:
    found = plan(SPEED, 3_600, workers=2, rows=5_000, classes=10)
    assert set(found.rung_rows) == {3_750}  # all but the quarter that judges
    assert found.rungs == (round(found.epochs / 9), round(found.epochs / 3), found.epochs)


def named_seconds(error: RequestError) -> float:
    """The least budget that a sentence names."""
    words = str(error).rsplit("about ", 1)[1].split()
    units = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}
    return sum(float(n) * units[u] for n, u in zip(words[::2], words[1::2], strict=True))


def test_the_least_budget_that_is_named_is_enough() -> None:
    with pytest.raises(RequestError) as caught:
        plan(SPEED, 1.0, workers=2, rows=5_000, classes=10)
    assert plan(SPEED, named_seconds(caught.value), workers=2, rows=5_000, classes=10).epochs >= FEWEST_EPOCHS


def test_more_time_means_longer_trainings_first_and_more_candidates_then() -> None:
    plans = [plan(SPEED, seconds, workers=2, rows=5_000, classes=10) for seconds in (60, 600, 3_600, 36_000)]
    assert [p.examples for p in plans] == sorted(p.examples for p in plans)
    assert [p.epochs for p in plans] == sorted(p.epochs for p in plans)
    assert plans[-1].places[0] > plans[0].places[0]


@pytest.mark.parametrize(("trainings", "epochs"), [(60, 8), (40, 3), (25, 1), (400, 30)])
@pytest.mark.parametrize("changes", [False, True])
def test_a_plan_of_trainings_takes_no_more_than_it_has(trainings: int, epochs: int, changes: bool) -> None:
    found = plan_of_trainings(trainings, rows=1_000, epochs=epochs, changes=changes)
    recipe, whole = asked_for(found)
    assert found.recipe_whole == (whole > 0) == (changes and epochs > 1)
    assert recipe + 2 * SEEDS + int(SPEED.controls) * (len(found.rungs) + 1) + sum(found.places) <= trainings
    with pytest.raises(RequestError, match="the least is"):
        plan_of_trainings(12, rows=1_000, epochs=epochs, changes=changes)


def asked_for(found: Plan) -> tuple[int, int]:
    """All trainings of a recipe that is chosen by this plan, and the whole ones among them."""
    asked = list[bool]()

    def train(recipes: Sequence[Recipe], whole: bool) -> list[Outcome | None]:
        asked.extend(whole for _ in recipes)
        return [Outcome(50.0) for _ in recipes]

    choose_recipe(train, images=True, whole=found.recipe_whole)
    return len(asked), sum(asked)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seconds", [60.0, 300.0, 3_000.0])
def test_a_plan_counts_the_trainings_that_choose_the_recipe(seconds: float, whole: bool) -> None:
    found = plan(SPEED, seconds, workers=1, rows=5_000, classes=10, whole=whole)
    all_of_them, long = asked_for(found)
    judging = JUDGING * found.judge_share * 5_000

    def took(epochs: int, rows: int) -> float:
        return (epochs * rows + judging) * SPEED.train + PER_TRAINING

    expected = long * took(found.rungs[-1], found.rows(-1))
    expected += (all_of_them - long) * took(found.recipe_epochs, found.taught_by_recipe)
    assert found.seconds["recipe"] == pytest.approx(expected)
    # Whole ones are as long as those of the answer, or there are none.
    assert not long or found.rungs[-1] == found.epochs


def test_the_least_budget_counts_what_measuring_took() -> None:
    slow = Speed(1.0, 2.0, 1.0)
    with pytest.raises(RequestError) as plain:
        plan(slow, 53.0, workers=2, rows=1_000, classes=10)
    with pytest.raises(RequestError) as told:
        plan(slow, 53.0, workers=2, rows=1_000, classes=10, spent=37.0)
    assert "a budget of 53 s is too small" in str(plain.value)
    taken = "(to read it and to measure its speed took 37 s)"
    assert f"a budget of 1 min 30 s is too small for this data on this machine {taken}" in str(told.value)
    with pytest.raises(RequestError, match="too small"):
        plan(slow, 25_000.0, workers=2, rows=1_000, classes=10)
    assert plan(slow, 28_000.0, workers=2, rows=1_000, classes=10).epochs == 6


def test_times_are_said_as_people_say_them() -> None:
    assert [time_text(s) for s in (0, 59.6, 61, 3_599, 7_260, 90_000)] == [
        "0 s", "1 min", "1 min 1 s", "59 min 59 s", "2 h 1 min", "1 d 1 h",
    ]  # fmt: skip


def test_the_share_of_the_recipe_decides_how_long_its_trainings_are() -> None:
    def divided(share: float, **how: bool) -> Plan:
        left = {name: value * (1 - share) / (1 - SHARES["recipe"]) for name, value in SHARES.items()}
        return plan(SPEED, 600, workers=2, rows=5_000, classes=10, shares={**left, "recipe": share}, **how)

    few, usual = divided(0.01), divided(SHARES["recipe"])
    assert few.seconds["recipe"] < usual.seconds["recipe"]
    assert (few.recipe_whole, usual.recipe_whole) == (False, True)
    # Short trainings have a third of the epochs of the whole ones beside them; a ninth where there is no time.
    assert usual.recipe_epochs == round(usual.epochs / 3)
    assert few.recipe_epochs * (few.recipe_rows or 0) < usual.recipe_epochs * (usual.recipe_rows or 0)
    # Where there are no changes to compare, and time for it, all trainings of the recipe are whole.
    assert not divided(0.5, changes=False).recipe_whole
    assert divided(0.5, changes=False).recipe_epochs == divided(0.5, changes=False).rungs[-1]


def test_a_race_of_whole_trainings_has_one_rung_and_its_control_is_trained_once() -> None:
    short, whole = (plan(SPEED, 180, workers=2, rows=5_000, classes=10, whole=whole) for whole in (False, True))
    assert len(short.rungs) > 1
    assert whole.rungs == (whole.epochs,)
    assert (short.control_seeds, whole.control_seeds) == (2, 1)
    assert FEWEST_RACED <= whole.places[0] < short.places[0]
    # The answer and the recipe are as they were.
    assert (whole.epochs, whole.recipe_epochs, whole.recipe_rows) == (
        short.epochs, short.recipe_epochs, short.recipe_rows,
    )  # fmt: skip
    # Where there is no time for four candidates, short trainings choose who has the long ones.
    slow = plan(Speed(3e-4, 6e-4, 0.1, controls=7.0), 180, workers=2, rows=5_000, classes=10, whole=True)
    assert len(slow.rungs) > 1


@given(seconds=st.floats(1, 3_600), epochs=st.floats(6, 100), workers=st.integers(1, 8))
def test_a_later_leg_trains_as_long_as_the_one_before_and_chooses_no_recipe(
    seconds: float, epochs: float, workers: int
) -> None:
    how: dict[str, Any] = {"workers": workers, "rows": 1_437, "classes": 10, "tests": 360, "whole": True}
    how["answered"] = (epochs, 1_437)
    with pytest.raises(RequestError, match="and trainings as long as those that answered before") as caught:
        plan(SPEED, 0.5, **how)
    # The least that is named is enough, and so is more.
    found = plan(SPEED, max(seconds, named_seconds(caught.value)), **how)
    assert found.epochs >= int(epochs)
    assert found.examples == 1_437
    assert list(found.seconds) == ["propose", "race", "answer"]


@pytest.mark.parametrize("seconds", [60, 180, 600])
def test_a_later_leg_with_more_rows_has_as_many_epochs_as_the_one_before(seconds: float) -> None:
    found = plan(SPEED, seconds, workers=2, rows=8_000, classes=10, tests=360, whole=True, answered=(12.0, 2_000))
    assert found.epochs >= 12
    assert found.examples >= 2_000
    assert sum(found.seconds.values()) <= seconds


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"workers": 0}, "at least 1 worker, got 0"),
        ({"level": 2.0}, "between 0 and 1, got 2"),
        ({"epochs": 3}, "epochs go with a budget in trainings"),
        ({"trainings": 30, "epochs": 0, "budget": None}, "at least 1 epoch, got 0"),
    ],
)
def test_wrong_numbers_are_refused_before_anything_is_written(
    wrong: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match=sentence):
        find("digits", out=tmp_path / "a", **{"budget": "10m", **wrong})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [1, 2, 3, 6, 8, 64])
def test_a_plan_counts_the_trainings_that_wait_for_each_other(workers: int) -> None:
    # Six trainings answer: on 64 processes they take as long as one, and no sixty-fourth of it.
    found = plan(SPEED, 600, workers=workers, rows=20_000, classes=10)
    one = SPEED.train * found.epochs * found.examples
    rounds = -(-2 * SEEDS // workers)
    assert rounds * one <= found.seconds["answer"] <= 0.35 * 600
    assert sum(found.seconds.values()) <= 600
