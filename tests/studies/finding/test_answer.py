from typing import Any

import numpy as np
import pytest

from nasight.data import Units
from nasight.errors import RequestError
from nasight.studies.finding import Answer, Outcome, Point, difference
from nasight.studies.finding._front import front
from nasight.studies.finding._race import Candidate
from nasight.studies.finding._result import Sides, rows_vary, sentence

RESULT: dict[str, Any] = {
    "space": "mlp",
    "architecture": "tanh/0",
    "proposed_by": "chance",
    "accuracy": 81.0,
    "baseline": {"architecture": "relu/0", "accuracy": 80.0, "kind": "reference"},
    "difference": 1.0,
    "interval": [-1.0, 3.0],
    "level": 0.95,
    "better": None,
    "front": [{"architecture": "sin/1", "parameters": 5, "latency": None, "accuracy": 70.0, "epochs": 3,
               "proposed_by": "chance"}],
    "race": {},
}  # fmt: skip


def simulated(
    rng: np.random.Generator, gap: float, seeds: int = 3, rows: int = 400
) -> tuple[list[Outcome], list[Outcome]]:
    """Two architectures that are `gap` apart over all seeds, on the same rows, which seeds get right by chance."""
    hard = rng.random(rows)
    sides = []
    for mean in (0.9 + gap, 0.9):
        side = []
        for _ in range(seeds):
            right = hard + rng.normal(0, 0.05, rows) < mean + rng.normal(0, 0.01)
            side.append(Outcome(100.0 * right.mean(), right))
        sides.append(side)
    return sides[0], sides[1]


def test_the_interval_holds_what_many_more_seeds_show() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for trial in range(200):
        seed = int(rng.integers(1 << 30))
        # The same rows judge: a generator that begins alike draws the same hardness.
        few = difference(*simulated(np.random.default_rng(seed), 0.01))
        many = simulated(np.random.default_rng(seed), 0.01, seeds=60)
        truth = np.mean([a.accuracy for a in many[0]]) - np.mean([b.accuracy for b in many[1]])
        held += few.low <= truth <= few.high
        assert trial >= 0
    assert held >= 185  # of 200; the interval allows for other rows too, so it is wider than 95 %


@pytest.mark.parametrize("together", [-0.6, 0.0, 0.6])
@pytest.mark.parametrize("seeds", [3, 6])
def test_where_seeds_alone_vary_an_interval_holds_the_truth_as_often_as_it_says(together: float, seeds: int) -> None:
    # Whether or not the same seed moves both networks in the same direction, and one may vary more than the other.
    rng = np.random.default_rng(7)
    spread = np.linalg.cholesky(np.array([[1.0, 2 * together], [2 * together, 4.0]]))
    held = 0
    for _ in range(2_000):
        both = np.array([81.0, 80.0]) + rng.normal(size=(seeds, 2)) @ spread.T
        found = difference(*([Outcome(float(x)) for x in side] for side in both.T))
        held += found.low <= 1.0 <= found.high
    # Within three standard errors of 95 %.
    assert 1_870 <= held <= 1_930


def test_equal_architectures_are_called_better_no_more_often_than_the_level_says() -> None:
    rng = np.random.default_rng(2)
    better = sum(difference(*simulated(rng, 0.0)).better is True for _ in range(300))
    assert better <= 15  # 2.5 % of 300 are 7.5


def test_a_large_difference_is_seen() -> None:
    rng = np.random.default_rng(3)
    assert sum(difference(*simulated(rng, 0.08)).better is True for _ in range(50)) >= 48


def test_one_seed_gives_no_interval() -> None:
    with pytest.raises(RequestError, match="two or more seeds"):
        difference([Outcome(90.0)], [Outcome(80.0)])


def test_the_front_marks_points_that_no_smaller_one_beats() -> None:
    points = [Point(name, size, None, accuracy, 3, "x") for name, size, accuracy in (
        ("a", 10, 80.0), ("b", 20, 79.0), ("c", 30, 85.0), ("d", 30, 84.0), ("e", 5, 60.0),
    )]  # fmt: skip
    assert [(p.architecture, p.best) for p in front(points)] == [
        ("e", True), ("a", True), ("b", False), ("c", True), ("d", False),
    ]  # fmt: skip


def test_the_best_of_their_latency_need_not_be_the_best_of_their_size() -> None:
    points = [Point(name, size, latency, accuracy, 3, "x") for name, size, latency, accuracy in (
        ("small", 10, 9.0, 80.0), ("fast", 20, 1.0, 75.0), ("both", 30, 5.0, 85.0), ("slow", 40, 9.5, 84.0),
        ("untimed", 50, None, 90.0), ("equal", 60, 5.5, 85.0),
    )]  # fmt: skip
    assert [(p.architecture, p.best, p.best_latency) for p in front(points)] == [
        ("small", True, False), ("fast", False, True), ("both", True, True), ("slow", False, False),
        ("untimed", True, False), ("equal", False, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "apart", "decided"), [(2, 2, False), (40, 4, False), (40, 12, True), (1_000, 20, True)]
)
def test_a_few_rows_that_disagree_decide_nothing_however_alike_the_seeds_are(
    rows: int, apart: int, decided: bool
) -> None:
    # All seeds agree on every row, and `apart` rows are right on one side alone. Exact test of 4 to 0: p = 0.125.
    winner, baseline = np.ones(rows, dtype=bool), np.ones(rows, dtype=bool)
    baseline[:apart] = False
    found = difference([Outcome(100.0, winner)] * 3, [Outcome(100 * float(baseline.mean()), baseline)] * 3)
    assert found.better is (True if decided else None)
    assert found.mean == pytest.approx(100 * apart / rows)


def test_percentages_of_rows_differ_by_no_more_than_100_points_and_other_scores_may() -> None:
    winner, baseline = Candidate("a", "chance", 10), Candidate("b", "reference", 10, control=True)
    outcomes = {"a": [Outcome(0.0), Outcome(30.0), Outcome(50.0)], "b": [Outcome(90.0), Outcome(60.0), Outcome(50.0)]}
    sides = Sides(winner, baseline, outcomes, {}, 1)
    whole = difference(outcomes["a"], outcomes["b"])
    assert whole.low < -100 < 0 < whole.high < 100
    for metric in ("accuracy", "balanced accuracy", "exact match"):
        cut = sides.difference(0.95, Units(metric))
        assert (cut.mean, cut.low, cut.high) == (whole.mean, -100.0, whole.high)
        assert cut.better is whole.better
    assert sides.difference(0.95, Units("R2")) == whole


def test_a_metric_that_gives_one_number_for_all_rows_is_noticed() -> None:
    one = {"a": [Outcome(70.0, np.full(40, 0.7))], "b": [Outcome(60.0, np.full(40, 0.6))]}
    own = {"a": [Outcome(70.0, np.linspace(0.5, 0.9, 40))], "b": one["b"]}
    right = {"a": [Outcome(100.0, np.ones(40, dtype=bool))], "b": [Outcome(100.0, np.ones(40, dtype=bool))]}
    assert not rows_vary(one)
    assert rows_vary(own)
    assert rows_vary(right)  # all rows right is no single number: each was looked at


def baseline(kind: str, architecture: str) -> dict[str, Any]:
    return {"baseline": {**RESULT["baseline"], "kind": kind, "architecture": architecture}}


@pytest.mark.parametrize(
    ("changed", "architecture", "which"),
    [
        ({"better": True}, "tanh/0", "the winner of the race, which the answer says to take"),
        ({}, "relu/0", "the baseline (the space's reference), which the answer says to take: the winner is not shown"),
        ({"space": "module"}, "relu/0", "the baseline (your model's first options), which the answer says to take"),
        ({"better": False, **baseline("reference", "tanh/0")}, "tanh/0", "which nothing raced beats"),
        (baseline("plain", "plain"), "tanh/0", "the winner of the race: the baseline (a plain network), which"),
        (baseline("boosting", "boosting"), "tanh/0", "the winner of the race: the baseline (gradient boosting"),
        (baseline("baseline", "baseline"), "tanh/0", "the winner of the race: the baseline (your baseline), which"),
        (
            {"proposed_by": "plain", "architecture": "plain", "better": False, **baseline("plain", "plain")},
            "sin/1",
            "the best of the searched space in the race: the baseline (a plain network), which",
        ),
    ],
)
def test_what_is_trained_of_a_find_is_what_its_answer_says_where_that_is_of_the_searched_space(
    changed: dict[str, Any], architecture: str, which: str
) -> None:
    answer = Answer.__new__(Answer)  # without a folder
    answer.result = RESULT | changed
    found, told = answer.advised()
    assert found == architecture
    assert which in told


@pytest.mark.parametrize("space", ["module", "mine.py:build"])
def test_the_sentence_of_an_own_model_speaks_of_its_first_options(space: str) -> None:
    own = {**RESULT, "space": space}
    assert sentence(own).startswith("Not better: take your model's first options (80.00 %).")
    assert sentence(own | {"better": True, "interval": [0.5, 1.5]}).startswith(
        "Better by 1.00 points than your model's first options (95 % interval: 0.50 to 1.50)"
    )
    won = own | {"better": False, **baseline("reference", "tanh/0")}
    assert sentence(won) == "Nothing that was raced beats your model's first options: take them (80.00 %)."
    assert "within the limits (your model's first options are not)" in sentence(own | baseline("stand-in", "relu/1"))
    assert "take the space's reference" in sentence(RESULT)


def test_the_sentence_says_which_trainings_judged_where_longer_ones_are_meant() -> None:
    better = RESULT | {"better": True, "interval": [0.5, 1.5]}
    meant = {"preset": "paper", "reached": False, "decided_at": {"epochs": 5, "size": {}, "examples": 100}}
    said = sentence(better | {"target": meant})
    assert said == sentence(better) + " So say trainings of 5 epochs; those of paper may say otherwise."
    assert sentence(better | {"target": {**meant, "reached": True}}) == sentence(better)
    assert sentence(better | {"target": {"preset": None, "reached": True}}) == sentence(better)
