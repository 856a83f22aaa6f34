"""The race alone: outcomes are given, nothing is trained."""

import numpy as np
import pytest

from nasight.errors import RequestError
from nasight.studies.finding import Candidate, Entry, Outcome, Race
from nasight.studies.finding._race import agreement, paired_interval

ROWS = 2_000


def outcome(share: float, seed: int = 0) -> Outcome:
    """A training that got this share of the rows right: which ones depends on the seed for one row in ten."""
    number = round(share * ROWS)
    order = np.arange(ROWS)
    some = np.random.default_rng(seed).choice(ROWS, ROWS // 10, replace=False)
    order[np.sort(some)] = order[some]
    right = order < number
    return Outcome(100.0 * right.mean(), right)


def race_of(shares: dict[str, float], places: list[int], control: str | None = None) -> Race:
    race = Race(places)
    race.enter(Candidate(name, "somebody", 10 * i, control=name == control) for i, name in enumerate(shares))
    for entry in race.ask():
        race.tell(entry, outcome(shares[entry.architecture], 10 * ord(entry.architecture[0]) + entry.seed))
    return race


def test_who_is_in_the_lower_half_and_surely_behind_leaves() -> None:
    race = race_of({"a": 0.900, "b": 0.898, "c": 0.60, "d": 0.899}, [4, 4])
    assert [c.architecture for c in race.close()] == ["a", "d", "b"]
    assert race.left["c"].reason == "behind"


def test_who_is_in_the_lower_half_but_within_the_noise_stays() -> None:
    race = race_of({"a": 0.900, "b": 0.899, "c": 0.8985, "d": 0.898}, [4, 4])
    assert len(race.close()) == 4
    assert race.left == {}


def test_who_has_no_place_on_the_next_rung_leaves_for_time() -> None:
    race = race_of({"a": 0.900, "b": 0.899, "c": 0.8985, "d": 0.898}, [4, 2])
    assert [c.architecture for c in race.close()] == ["a", "b"]
    assert {name: left.reason for name, left in race.left.items()} == {"c": "time", "d": "time"}


def test_controls_never_leave_and_are_trained_twice_on_the_lowest_rung() -> None:
    race = race_of({"a": 0.9, "b": 0.89, "worst": 0.2}, [2, 2], control="worst")
    assert sum(entry.architecture == "worst" for entry in race.outcomes) == 2
    race.close()
    assert "worst" not in race.left
    assert sum(entry.architecture == "worst" for entry in race.ask()) == 1


def test_a_failed_training_takes_its_candidate_out() -> None:
    race = Race([2, 2])
    race.enter([Candidate("a", "x", 1), Candidate("b", "x", 1)])
    race.tell(Entry("a", 0, 0), None)
    race.tell(Entry("b", 0, 0), outcome(0.5))
    assert [c.architecture for c in race.close()] == ["b"]
    assert race.left["a"].reason == "failed"


def test_a_rung_does_not_close_before_its_trainings_are_there() -> None:
    race = Race([2, 2])
    race.enter([Candidate("a", "x", 1), Candidate("b", "x", 1)])
    race.tell(Entry("a", 0, 0), outcome(0.5))
    with pytest.raises(RequestError, match="1 trainings to wait for"):
        race.close()


def test_who_is_proposed_twice_runs_once_and_keeps_both_proposers() -> None:
    race = Race([2])
    race.enter([Candidate("a", "search 1", 1), Candidate("a", "chance", 1), Candidate("a", "chance", 1)])
    (candidate,) = race.active()
    assert (candidate.proposed_by, candidate.also) == ("search 1", ("chance",))


def test_where_a_rung_predicted_nothing_those_that_had_no_time_come_back() -> None:
    shares = {name: 0.9 - 0.0005 * i for i, name in enumerate("abcdefgh")}
    race = race_of(shares, [8, 5])
    assert not race.misled()
    assert [c.architecture for c in race.close()] == list("abcde")
    for entry in race.ask():  # the other way round than before
        place = "abcdefgh".index(entry.architecture)
        race.tell(entry, outcome(0.9 - 0.0005 * (8 - place), place))
    assert race.misled()
    assert [c.architecture for c in race.recall(2)] == ["f", "g"]
    assert [entry.architecture for entry in race.ask()] == ["f", "g"]
    for entry in race.ask():
        race.tell(entry, outcome(0.95))
    race.end()
    assert race.ranked()[0].architecture in "fg"
    assert race.agreements[0].candidates == 7
    assert race.agreements[0].tau < 0


def test_where_a_rung_predicted_the_next_nobody_comes_back_and_who_is_surely_behind_never_does() -> None:
    shares = {name: 0.9 - 0.0005 * i for i, name in enumerate("abcdefg")} | {"h": 0.1}
    race = race_of(shares, [8, 6])
    race.close()
    assert race.left["h"].reason == "behind"
    for entry in race.ask():
        race.tell(entry, outcome(shares[entry.architecture]))
    assert not race.misled()
    assert [c.architecture for c in race.recall(8)] == ["g"]


def test_of_equal_ones_the_one_that_was_better_before_is_ahead() -> None:
    race = race_of({"a": 0.905, "b": 0.906, "c": 0.9045}, [3, 3])
    race.close()
    for entry in race.ask():
        race.tell(entry, outcome(0.95))
    assert [c.architecture for c in race.ranked()] == ["b", "a", "c"]
    assert race.candidates_on(1) == 3


def test_the_interval_of_two_trainings_is_that_of_their_rows_and_seeds() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        # Two networks that are right on 80 and 78 % of all rows there are, dependent on how hard a row is.
        hard = rng.random(1_000)
        a, b = hard < 0.80 + rng.normal(0, 0.005), hard < 0.78 + rng.normal(0, 0.005)
        first, second = (Outcome(100 * x.mean(), x) for x in (a, b))
        low, high = paired_interval(first, second, seed_deviation=0.5)
        covered += low <= 2.0 <= high
    assert covered >= 370  # 95 % of 400 are 380; four standard errors less are 362


def test_agreement_is_kendall_s_tau_and_needs_three_candidates() -> None:
    assert agreement(0, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]).predicts
    assert agreement(0, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]).tau == pytest.approx(1)
    assert not agreement(0, [1, 2], [1, 2]).predicts


def test_what_no_seed_changes_does_not_count_in_the_noise_of_a_seed() -> None:
    race = Race([2])
    race.enter(
        [Candidate("net", "plain", 1, control=True), Candidate("trees", "boosting", 0, control=True, seeded=False)]
    )
    for name, accuracies in {"net": (70.0, 72.0), "trees": (71.0, 71.0)}.items():
        for seed, accuracy in enumerate(accuracies):
            race.tell(Entry(name, 0, seed), Outcome(accuracy))
    assert race.seed_deviation() == pytest.approx(2**0.5)
