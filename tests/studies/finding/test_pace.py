"""How many candidates a rung has time for, in races on paper."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from on_paper import ROW, OnPaper, leg_of
from torch import nn

from nasight.architecture import Architecture
from nasight.spaces import Choice, ModuleSpace, load
from nasight.studies.finding import Candidate, Race, Speed
from nasight.studies.finding._capacity import spare
from nasight.studies.finding._lengths import PER_TRAINING
from nasight.studies.finding._planning import FEWEST_PLACES, SHARES, TARGET_SHARES
from nasight.studies.finding._proposers import largest


@pytest.mark.parametrize("leaders", [1.0, 1.3, 1.6])
@pytest.mark.parametrize(("budget", "rows"), [(60, 1_437), (90, 1_437), (180, 1_437), (180, 5_000), (900, 8_000)])
def test_the_last_rung_of_a_plan_is_reached_however_slow_leaders_are(
    tmp_path: Path, budget: float, rows: int, leaders: float
) -> None:
    leg = leg_of(tmp_path, budget, rows, Speed(ROW, 2 * ROW, 0.06, reference=0.8, slower=1.5))
    paper = OnPaper(leg, reference=0.8, leaders=leaders)
    raced = paper.run()
    assert len(raced) == len(leg.plan.rungs)
    assert raced[-1] >= FEWEST_PLACES
    # The share of the race, or a little more: what the answer can do with the rest is decided then.
    assert paper.clock < (1 - 0.9 * SHARES["answer"]) * budget


@pytest.mark.parametrize("leaders", [1.0, 1.6, 2.2])
def test_where_a_longer_training_is_meant_many_are_trained_as_long_as_the_answer(
    tmp_path: Path, leaders: float
) -> None:
    speed = Speed(2.5 * ROW, 5 * ROW, 0.06, reference=0.8, slower=1.6)
    leg = leg_of(tmp_path, 1_200, 50_000, speed, longer=True)
    assert leg.plan.whole
    assert (leg.plan.rungs, leg.plan.control_seeds) == ((leg.plan.epochs,), 1)
    assert leg.plan.places[0] >= 15
    paper = OnPaper(leg, reference=2.5 * 0.8, leaders=2.5 * leaders)
    paper.slowness["other"] = 2.5
    assert paper.run()[0] >= 12
    assert paper.clock < (1 - 0.9 * TARGET_SHARES["answer"]) * 1_200


@pytest.mark.parametrize(("budget", "row"), [(60, 1e-3), (300, 5e-3), (1_200, 2.5 * ROW)])
def test_where_a_longer_training_is_meant_the_answer_has_what_its_plan_says(
    tmp_path: Path, budget: float, row: float
) -> None:
    # The shortest trainings that can answer may take more than the share of the answer.
    leg = leg_of(tmp_path, budget, 50_000, Speed(row, 2 * row, 0.06), longer=True, tests=10_000)
    paper = OnPaper(leg, reference=row / ROW, leaders=row / ROW)
    paper.slowness["other"] = row / ROW
    paper.run()
    assert leg.plan.seconds["answer"] > TARGET_SHARES["answer"] * budget or budget == 1_200
    assert budget - paper.clock >= leg.plan.seconds["answer"]


@pytest.mark.parametrize(("last", "epochs", "places"), [(6, 20, 8), (5, 20, 2), (6, 6, 2)])
def test_the_answer_lends_time_where_several_were_misled_and_it_has_more_than_it_needs(
    tmp_path: Path, last: int, epochs: int, places: int
) -> None:
    leg = leg_of(tmp_path, 180, 1_437, Speed(ROW, 2 * ROW, 0.06))
    leg.plan = replace(leg.plan, rungs=(6, 7), rung_rows=(400, 1_078), places=(12, last), epochs=epochs)
    paper, race = OnPaper(leg, reference=1.0, leaders=1.0), Race([12, last])
    race.enter(Candidate(f"leader{i}", "somebody", i) for i in range(12))
    paper.train_all(race)
    race.close()
    paper.train_all(race)
    each = paper.train("leader0", 1).seconds
    # As many seconds of the race are left as two trainings take at once; the answer's share is 54 s.
    paper.clock = (1 - SHARES["answer"]) * 180 - 1.5 * each
    lent = 2 * int((1.5 * each + 0.15 * 54) / each)
    assert spare(leg, race) == (lent if places > 2 else 2)


def test_seconds_of_a_rung_are_those_of_the_architectures_that_go_on(tmp_path: Path) -> None:
    leg = leg_of(tmp_path, 180, 1_437, Speed(ROW, 2 * ROW, 0.06))
    paper, last = OnPaper(leg, reference=0.8, leaders=1.6), len(leg.plan.rungs) - 1
    rows = leg.passes(leg.plan.rungs[last], leg.plan.rows(last))
    assert leg.rung_seconds(last) == pytest.approx(PER_TRAINING + ROW * rows)
    for name in ("reference", "leader0", "other0"):
        paper.train(name, 1)
    expected = {name: paper.train(name, last).seconds for name in ("leader0", "other0")}
    assert leg.rung_seconds(last, ["leader0"]) == pytest.approx(expected["leader0"])
    assert leg.rung_seconds(last, ["leader0", "other0"]) == pytest.approx(sum(expected.values()) / 2)


SPACE = load("nasbench201")
LARGEST = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|"


@pytest.mark.parametrize("most", [None, 60_000])
def test_the_largest_is_proposed_of_a_space_in_which_some_are_no_networks(most: int | None) -> None:
    count = SPACE.parameters((1, 8, 8), 10, channels=8, cells=1)
    (found,) = largest(SPACE, lambda arch: True, count, 40, most)
    sizes = [count(arch) for arch in SPACE if SPACE.usable(arch) is None]
    assert count(found.architecture) == max(size for size in sizes if most is None or size <= most)
    assert (SPACE.format(found.architecture) == LARGEST) is (most is None)


def test_the_largest_is_not_looked_for_where_every_network_would_have_to_be_built() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*(Choice({"a": nn.Linear(4, 4), "b": nn.Identity()}) for _ in range(7)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)  # type: ignore[no-any-return]

    def count(arch: Architecture) -> int:
        raise AssertionError(arch)

    assert largest(ModuleSpace(Net), lambda arch: True, count, 40) == []
