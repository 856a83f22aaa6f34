"""A race on paper, in which all that happens is that time passes."""

import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any, cast

import torch

from nasight.studies.finding import Candidate, Outcome, Race, Speed, plan, read_budget
from nasight.studies.finding._budget import Budget
from nasight.studies.finding._capacity import affordable, room
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._leg import Leg
from nasight.studies.finding._lengths import waves
from nasight.studies.finding._plan import CHANGES, GRID_STEPS, SHORT_STEPS
from nasight.studies.finding._planning import FEWEST_PLACES
from nasight.studies.finding._proposals import WHOLE_MUTATED
from nasight.studies.finding._stages import TURNS
from nasight.studies.finding._work import Recipe, Request

ROW = 2e-4
"""Seconds per row of a usual architecture."""


def least_seconds(refused: str) -> float:
    """The budget that a find has called the least."""
    (least,) = re.findall(r"the least is about (.+)", refused)
    return read_budget(least.replace("min", "m")).seconds or 0.0


def leg_of(
    folder: Path, budget: float, rows: int, speed: Speed, *, longer: bool = False, paced: bool = False, tests: int = 0
) -> Leg:
    journal = Journal(folder)
    journal.put("planned 0", budget)
    journal.put("speed 0", vars(speed))
    target = "paper" if longer else None
    space = SimpleNamespace(reference="reference", format=str)
    data = SimpleNamespace(train_y=torch.zeros(rows), test_y=torch.zeros(tests))
    context = SimpleNamespace(
        settings=SimpleNamespace(seed=0, shares={}, target=target, batch_size=32), size={}, journal=journal,
        space=space, seen=[], count=2, data=data, clock=lambda: 0.0,
        allowed=lambda arch: True, spaces={"space": None}, reference="reference",
    )  # fmt: skip
    found = Leg(cast(Any, context), 0, Budget(budget), None)
    planned = speed.paced(found.controls) if paced else speed
    how: dict[str, Any] = {"shares": found.all_shares, "whole": paced or longer, "paced": paced, "tests": tests}
    divided = plan(planned, budget, workers=2, rows=rows, classes=10, **how)
    found.plan, found.recipe = replace(divided, paced=paced), Recipe()
    return found


class OnPaper:
    """A leg whose trainings take what its architectures take; leaders are slower than the rest."""

    def __init__(self, leg: Leg, reference: float, leaders: float) -> None:
        self.leg, self.clock = leg, 0.0
        self.tuned = 0
        """Trainings that chose the recipe."""
        self.slowness = {"reference": reference, "leader": leaders, "other": 1.0}

    def slow(self, name: str) -> float:
        """How much slower an architecture is than a usual one."""
        return self.slowness[name.rstrip("0123456789")]

    def train(self, name: str, rung: int) -> Outcome:
        return self.trained(name, self.leg.epochs_of(name, rung), self.leg.plan.rows(rung))

    def trained(self, name: str, epochs: int, rows: int) -> Outcome:
        """A training of so many epochs and rows, which takes its time."""
        request = Request(name, "space", epochs, 0, Recipe(), examples=rows, validation=0.25)
        seconds = ROW * self.slow(name) * self.leg.passes(epochs, rows)
        outcome = Outcome({"l": 90.0, "o": 80.0, "r": 70.0}[name[0]], seconds=seconds)
        self.leg.context.seen.append((request, outcome))
        return outcome

    def run(self) -> list[int]:
        """The candidates of every rung; the clock stands at the end of the race."""
        leg, found = self.leg, self.leg.plan
        for _ in range(CHANGES if found.recipe_whole else 0):
            self.train("reference", len(found.rungs) - 1)
        for _ in range(sum(SHORT_STEPS if found.recipe_whole else GRID_STEPS)):
            self.trained("reference", found.recipe_epochs, found.taught_by_recipe)
        self.tuned = len(leg.context.seen)
        recipe = max(found.seconds["recipe"], leg.shares["recipe"] * leg.budget.seconds)  # type: ignore[operator]
        self.spend(recipe + leg.shares["propose"] * leg.budget.seconds)  # type: ignore[operator]
        race = Race(list(found.places), seeds=found.control_seeds or 2)
        first = affordable(leg, race, 0)
        if found.whole:
            first -= round(WHOLE_MUTATED * first)
        names = ["reference", *(f"leader{i}" for i in range(first // 2)), *(f"other{i}" for i in range(-(-first // 2)))]
        race.enter(Candidate(name, "somebody", 1, control=name == "reference") for name in names)
        raced = [first]
        self.train_all(race)
        for turn in range(TURNS if found.whole else 0):
            more = room(leg, race, TURNS - turn)
            race.enter(Candidate(f"leader{500 + raced[0] + i}", "mutation", 1) for i in range(more))
            raced[0] += more
            self.train_all(race)
        for rung in range(1, len(found.rungs)):
            race.places[rung] = affordable(leg, race, rung)
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
        self.spend(waves(len(took), 2) * fmean(took) if took else 0.0)

    def spend(self, seconds: float) -> None:
        self.clock += seconds
        self.leg.context.clock = lambda: self.clock  # type: ignore[method-assign, assignment, return-value]
