"""What the methods ask of the solver: the published dimensions, ladders and halvings, ties and empty subsets."""

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasight.errors import RequestError
from nasight.features import _evaluator, select
from nasight.features._methods import (
    SELECTION_METHODS,
    Call,
    Outcome,
    RoundPlan,
    brackets,
    fast_dimensions,
    halvings,
    ladder,
    method,
    planned,
    ranked,
    survivors,
)


def calls(name: str, configs: int, dimension: int = 100_000, score: str = "accuracy") -> list[Call]:
    """The calls of one pass where a configuration with a smaller number is the better one."""
    drawn = 0

    def draw(count: int) -> range:
        nonlocal drawn
        drawn += count
        return range(drawn - count, drawn)

    made, outcome = [], None
    steps = method(name).begin(RoundPlan(configs, dimension, score, draw))
    while True:
        try:
            made.append(next(steps) if outcome is None else steps.send(outcome))
        except StopIteration:
            return made
        numbers = made[-1].configs
        outcome = Outcome(tuple(1 / (1 + n) for n in numbers), tuple(float(n) for n in numbers))


def test_weight_sharing_halves_256_configurations_eight_times_and_solves_once_alone() -> None:
    made = calls("weight-sharing", 256)
    assert [len(call.configs) for call in made] == [256, 128, 64, 32, 16, 8, 4, 2, 1]
    assert {call.dimension for call in made} == {100_000}
    assert [call.shared for call in made] == [True] * 8 + [False]
    assert made[-1].configs == (0,)


def test_fast_weight_sharing_has_the_published_dimensions() -> None:
    published = [6251, 8839, 12501, 17678, 25001, 35356, 50001, 70711, 100_000]
    assert [call.dimension for call in calls("fast-weight-sharing", 256)] == published


def test_successive_halving_has_the_published_ladder() -> None:
    made = calls("successive-halving", 64)
    dimensions = [call.dimension for call in made]
    assert dimensions == [1563] * 64 + [6250] * 16 + [25_000] * 4 + [100_000]
    assert made[-1].configs == (0,)
    assert all(len(call.configs) == 1 and not call.shared for call in made)


def test_hyperbands_last_bracket_is_random_search_with_four_configurations() -> None:
    rungs = brackets(64, 100_000)
    assert rungs[0] == ladder(64, 100_000)
    assert rungs[1] == [(22, 6250), (5, 25_000), (1, 100_000)]
    assert rungs[2] == [(8, 25_000), (2, 100_000)]
    assert rungs[3] == [(4, 100_000)]
    made = calls("hyperband", 64)
    assert len(made) == sum(count for rung in rungs for count, _ in rung)
    firsts = [call.configs[0] for call in made if call.dimension == 100_000][-4:]
    assert firsts == [94, 95, 96, 97]  # fresh configurations in every bracket


def test_random_search_solves_every_configuration_alone_at_the_full_dimension() -> None:
    assert calls("random", 4) == [Call((i,), 100_000, shared=False) for i in range(4)]


@given(st.integers(1, 300))
def test_halving_ends_with_one_configuration_after_the_rounded_up_logarithm(count: int) -> None:
    made = calls("weight-sharing", count)
    sizes = [len(call.configs) for call in made]
    assert len(made) == halvings(count) + 1 == math.ceil(math.log2(count)) + 1
    assert sizes[-1] == 1
    assert all(after == (before + 1) // 2 for before, after in pairwise(sizes))


@given(st.integers(1, 200_000), st.integers(0, 12))
def test_fast_dimensions_grow_by_root_two_and_never_pass_the_full_one(dimension: int, rounds: int) -> None:
    found = fast_dimensions(dimension, rounds)
    assert all(1 <= d <= dimension for d in found)
    assert found == sorted(found)
    for i, d in enumerate(found):
        assert abs(d - dimension * math.sqrt(2) ** (i - rounds)) <= 1 + 1e-9 * dimension


def test_ties_go_to_the_lower_loss_and_then_to_the_one_drawn_first() -> None:
    tied = Outcome((0.5, 0.5, 0.5, 0.5, 0.1), (0.3, 0.2, 0.3, 0.9, 0.0))
    assert ranked(tied, "accuracy") == [1, 0, 2, 3, 4]
    assert survivors(tied, "accuracy") == [0, 1, 2]
    assert survivors(tied, "loss") == [0, 1, 4]


def test_when_all_are_tied_exactly_half_survive() -> None:
    assert survivors(Outcome((1.0,) * 6, (0.0,) * 6), "accuracy") == [0, 1, 2]


def test_a_configuration_without_a_validation_row_is_worse_than_one_that_is_always_wrong() -> None:
    outcome = Outcome((None, 0.0, 0.0), (None, 9.0, math.nan))
    for score in ("accuracy", "loss"):
        assert ranked(outcome, score) == [1, 2, 0]


def test_accuracy_and_loss_can_disagree_and_the_score_decides() -> None:
    outcome = Outcome((0.9, 0.8), (0.7, 0.1))
    assert ranked(outcome, "accuracy")[0] == 0
    assert ranked(outcome, "loss")[0] == 1


@pytest.mark.parametrize("name", SELECTION_METHODS)
@pytest.mark.parametrize("configs", [1, 3, 20])
def test_the_number_of_calls_is_known_before_the_first(name: str, configs: int) -> None:
    plan = RoundPlan(configs, 50, "accuracy", range)
    assert planned(plan, method(name).begin) == len(calls(name, configs, 50))


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(RequestError, match="there is no method 'grid'; there are weight-sharing"):
        method("grid")


def test_seconds_of_the_processor_leave_out_the_time_a_process_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = _evaluator.ridge
    monkeypatch.setattr(_evaluator, "ridge", lambda *a, **k: (time.sleep(0.3), solve(*a, **k))[1])
    rng = np.random.default_rng(0)
    data = (rng.standard_normal((60, 4)), rng.integers(2, size=60))
    spent = {
        clock: select("fourier", data, method="random", configs=2, dimension=20, clock=clock).history[-1]["seconds"]
        for clock in ("wall", "cpu")
    }
    assert spent["wall"] > 0.6 > spent["cpu"]
