"""A winner that may only start fast."""

import pytest

from nasight.spaces import load
from nasight.studies.finding import Candidate, Entry, Outcome, Race
from nasight.studies.finding._shallow import depth, shallow_winner

CONV, SKIP, NONE = "nor_conv_3x3", "skip_connect", "none"


def cell(deep: int) -> str:
    """A cell whose longest path from input to output has so many edges."""
    first = {1: (NONE, NONE, NONE, CONV, NONE, NONE), 2: (CONV, NONE, NONE, CONV, CONV, NONE)}
    a, b, c, d, e, f = first.get(deep, (CONV, NONE, CONV, SKIP, NONE, CONV))
    return f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|"


def race_of(gains: dict[int, float], number: int = 3) -> tuple[Race, list[Candidate]]:
    """So many candidates of each depth, all at 50 on the first rung, and higher by a gain on the second."""
    race, candidates = Race([9, 9]), []
    space = load("nasbench201")
    for deep, gain in gains.items():
        for k in range(number):
            # Forms of one depth that are told apart by an edge that leads nowhere new.
            text = cell(deep).replace(CONV, ("nor_conv_3x3", "nor_conv_1x1", "avg_pool_3x3")[k])
            candidates.append(Candidate(text, "x", 1))
            assert depth(space, candidates[-1]) == deep
            race.tell(Entry(text, 0, 0), Outcome(50.0 + 0.1 * k))
            race.tell(Entry(text, 1, 0), Outcome(60.0 + gain + 0.3 * k))
    race.enter(candidates)
    race.rung = 1
    return race, candidates


def test_a_deep_winner_needs_no_warning() -> None:
    race, candidates = race_of({1: 0.0, 2: 1.0, 3: 2.0})
    assert shallow_winner(load("nasbench201"), race, candidates[-1]) is None
    assert shallow_winner(load("nasbench201"), race, candidates[3]) is None


@pytest.mark.parametrize(
    ("gains", "says"), [({1: 0.0, 2: 2.0, 3: 4.0}, "gained more"), ({1: 4.0, 2: 2.0, 3: 0.0}, "no")]
)
def test_a_shallow_winner_is_told_with_what_depth_gained(gains: dict[int, float], says: str) -> None:
    race, candidates = race_of(gains)
    told = shallow_winner(load("nasbench201"), race, candidates[0])
    assert told is not None
    assert "depth 1, those that raced have 2 in the median" in told
    assert f"deeper cells gained {says.removeprefix('gained ')}" in told
    assert "9 candidates" in told


def test_few_candidates_measure_nothing_and_a_plain_network_has_no_depth() -> None:
    race, candidates = race_of({1: 0.0, 3: 1.0}, number=2)
    told = shallow_winner(load("nasbench201"), race, candidates[0])
    assert told is not None
    assert "Too few" in told
    assert depth(load("nasbench201"), Candidate("plain:", "plain", 1, control=True)) is None
