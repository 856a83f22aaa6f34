"""How many candidates a rung has time for: a race on paper, in which all that happens is that time passes."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import nn

from nasight.architecture import Architecture
from nasight.spaces import Choice, ModuleSpace, load
from nasight.studies.finding import Candidate, Outcome, Plan, Race, Speed, plan
from nasight.studies.finding._budget import Budget
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._leg import Leg
from nasight.studies.finding._planning import FEWEST_PLACES, FRONT_PLACES, PER_TRAINING, SHARES, waves
from nasight.studies.finding._proposers import largest
from nasight.studies.finding._work import Recipe, Request

ROW = 2e-4
"""Seconds per row of a usual architecture."""


def leg_of(folder: Path, budget: float, rows: int, speed: Speed, *, longer: bool = False) -> Leg:
    journal = Journal(folder)
    journal.put("planned 0", budget)
    journal.put("speed 0", vars(speed))
    target = "paper" if longer else None
    space = SimpleNamespace(reference="reference", format=str)
    context = SimpleNamespace(
        settings=SimpleNamespace(seed=0, all_shares=SHARES, target=target), journal=journal, space=space, seen=[],
        count=2, data=SimpleNamespace(train_y=torch.zeros(rows)), clock=lambda: 0.0, allowed=lambda arch: True,
    )  # fmt: skip
    found = Leg(cast(Any, context), 0, Budget(budget), None)
    last = FRONT_PLACES if longer else FEWEST_PLACES
    found.plan = plan(speed, budget, workers=2, rows=rows, classes=10, last_places=last)
    return found


class OnPaper:
    """A leg whose trainings take what its architectures take; leaders are slower than the rest."""

    def __init__(self, leg: Leg, reference: float, leaders: float) -> None:
        self.leg, self.clock = leg, 0.0
        self.slowness = {"reference": reference, "leader": leaders, "other": 1.0}

    def seconds(self, name: str, rung: int) -> float:
        rows = self.leg.passes(self.leg.plan.rungs[rung], self.leg.plan.rows(rung))
        return ROW * self.slowness[name.rstrip("0123456789")] * rows

    def train(self, name: str, rung: int) -> Outcome:
        found: Plan = self.leg.plan
        request = Request(name, "space", found.rungs[rung], 0, Recipe(), examples=found.rows(rung), validation=0.25)
        outcome = Outcome({"l": 90.0, "o": 80.0, "r": 70.0}[name[0]], seconds=self.seconds(name, rung))
        self.leg.context.seen.append((request, outcome))
        return outcome

    def run(self) -> list[int]:
        """The candidates of every rung; the clock stands at the end of the race."""
        leg, found = self.leg, self.leg.plan
        for _ in range(7):
            self.train("reference", found.recipe_rung)
        self.spend((SHARES["recipe"] + SHARES["propose"]) * leg.budget.seconds)  # type: ignore[operator]
        race = Race(list(found.places))
        first = leg.affordable(race, 0)
        names = ["reference", *(f"leader{i}" for i in range(first // 2)), *(f"other{i}" for i in range(-(-first // 2)))]
        race.enter(Candidate(name, "somebody", 1, control=name == "reference") for name in names)
        raced = [first]
        self.train_all(race)
        for rung in range(1, len(found.rungs)):
            race.places[rung] = leg.affordable(race, rung)
            if race.places[rung] < FEWEST_PLACES:
                break
            raced.append(min(race.places[rung], len(race.close())))
            self.train_all(race)
        return raced

    def train_all(self, race: Race) -> None:
        took = []
        for entry in race.ask():
            outcome = self.train(entry.architecture, entry.rung)
            took.append(outcome.seconds)
            race.tell(entry, outcome)
        self.spend(waves(len(took), 2) * fmean(took))

    def spend(self, seconds: float) -> None:
        self.clock += seconds
        self.leg.context.clock = lambda: self.clock  # type: ignore[method-assign, assignment, return-value]


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


def test_where_a_longer_training_is_meant_the_longest_rung_has_time_for_a_front(tmp_path: Path) -> None:
    leg = leg_of(tmp_path, 1_200, 10_000, Speed(5 * ROW, 10 * ROW, 0.06, reference=0.8, slower=1.6), longer=True)
    assert leg.plan.places[-1] >= FRONT_PLACES
    paper = OnPaper(leg, reference=5 * 0.8, leaders=5 * 1.6)
    paper.slowness["other"] = 5.0
    assert paper.run()[-1] >= FRONT_PLACES


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
    each = paper.seconds("leader0", 1)
    # As many seconds of the race are left as two trainings take at once; the answer's share is 54 s.
    paper.clock = (1 - SHARES["answer"]) * 180 - 1.5 * each
    lent = 2 * int((1.5 * each + 0.15 * 54) / each)
    assert leg.spare(race) == (lent if places > 2 else 2)


def test_seconds_of_a_rung_are_those_of_the_architectures_that_go_on(tmp_path: Path) -> None:
    leg = leg_of(tmp_path, 180, 1_437, Speed(ROW, 2 * ROW, 0.06))
    paper, last = OnPaper(leg, reference=0.8, leaders=1.6), len(leg.plan.rungs) - 1
    rows = leg.passes(leg.plan.rungs[last], leg.plan.rows(last))
    assert leg.rung_seconds(last) == pytest.approx(PER_TRAINING + ROW * rows)
    for name in ("reference", "leader0", "other0"):
        paper.train(name, 1)
    expected = {name: paper.seconds(name, last) for name in ("leader0", "other0")}
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
