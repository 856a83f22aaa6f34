import numpy as np
import pytest

from nasight.data import Units
from nasight.errors import RequestError
from nasight.studies.finding import Outcome, Point, difference
from nasight.studies.finding._answer import front
from nasight.studies.finding._race import Candidate
from nasight.studies.finding._result import Sides, rows_vary


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
