"""How many candidates a rung has time for, with the seconds of trainings that were seen on digits."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from nasight.studies.finding import Candidate, Outcome, Plan, Race
from nasight.studies.finding._budget import Budget
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._leg import Leg
from nasight.studies.finding._planning import FEWEST_PLACES, SHARES, waves
from nasight.studies.finding._work import Recipe, Request

PLAN = Plan(1437, 23, (6, 8, 23), (16, 6, 2), 2, 21, 108, 8, {}, rung_rows=(459, 1078, 1078), judge_share=0.25)
REFERENCE, LEADER, OTHER = 1.81, 2.9, 2.2
"""Seconds on the middle rung; the recipe is trained there with the reference."""
NAMES = [f"leader{i}" for i in range(12)] + [f"other{i}" for i in range(10)]


@pytest.fixture
def leg(tmp_path: Path) -> Leg:
    journal = Journal(tmp_path)
    journal.put("planned 0", 83.8)
    journal.put("speed 0", {"train": 2e-4, "search": 4e-4, "score": 0.06, "controls": 2.0})
    context = SimpleNamespace(
        s=SimpleNamespace(seed=0, all_shares=SHARES), journal=journal, space=None, seen=[], count=2,
        data=SimpleNamespace(train_y=torch.zeros(1437)), clock=lambda: 0.0,
    )  # fmt: skip
    found = Leg(cast(Any, context), 0, Budget(90.0), None)
    found.plan = PLAN
    return found


def seconds(name: str, leg: Leg, rung: int) -> float:
    each = REFERENCE if name == "reference" else LEADER if name.startswith("leader") else OTHER
    return each * leg.passes(PLAN.rungs[rung], PLAN.rows(rung)) / leg.passes(PLAN.rungs[1], PLAN.rows(1))


def train(leg: Leg, name: str, rung: int) -> Outcome:
    request = Request(name, "space", PLAN.rungs[rung], 0, Recipe(), examples=PLAN.rows(rung), validation=0.25)
    outcome = Outcome(90.0 - len(name) - int(name[-1] == "e"), seconds=seconds(name, leg, rung))
    leg.f.seen.append((request, outcome))
    return outcome


def spend(leg: Leg, race: Race) -> float:
    """Train a rung; what it takes."""
    asked = race.ask()
    for entry in asked:
        race.tell(entry, train(leg, entry.architecture, entry.rung))
    return waves(len(asked), 2) * LEADER * seconds("reference", leg, race.rung) / REFERENCE


def test_leaders_that_are_slower_than_the_rest_leave_time_for_the_last_rung(leg: Leg) -> None:
    for _ in range(4):
        train(leg, "reference", 1)
    race = Race(list(PLAN.places))
    race.enter([Candidate("reference", "reference", 1, control=True), *(Candidate(n, "x", 1) for n in NAMES)])
    clock = 32.0 + spend(leg, race)
    for rung in (1, 2):
        leg.f.clock = lambda now=clock: now  # type: ignore[misc]
        race.places[rung] = leg.affordable(race, rung)
        assert race.places[rung] >= FEWEST_PLACES
        race.close()
        clock += spend(leg, race)
    # In the share of the race, or a moment more: the answer's follows.
    assert clock < 90.0 - SHARES["answer"] * 83.8 + 1.0


def test_seconds_of_a_rung_are_those_of_the_architectures_that_go_on(leg: Leg) -> None:
    assert leg.rung_seconds(1) == pytest.approx(0.4 + 2e-4 * leg.passes(8, 1078))
    for name in ("reference", "leader0", "other0"):
        train(leg, name, 1)
    expected = {name: seconds(name, leg, 2) for name in ("leader0", "other0")}
    assert leg.rung_seconds(2, ["leader0"]) == pytest.approx(expected["leader0"])
    assert leg.rung_seconds(2, ["leader0", "other0"]) == pytest.approx(sum(expected.values()) / 2)
