"""How many candidates a race has time for: on a rung, in a turn, and in the end."""

from __future__ import annotations

import math

from nasight.studies.finding._leg import Leg
from nasight.studies.finding._lengths import FEWEST_EPOCHS, NARROWING, rung_share, waves
from nasight.studies.finding._planning import FEWEST_PLACES, MOST_PLACES
from nasight.studies.finding._race import Race

FIRST = 6
"""What the first so many of a race took tells what changes of leaders will take, rather too much than too little."""
RESERVE = 1.2
"""So many times what a later rung needs at least is left for it."""
LENT = 0.15
"""Of the answer's time, the part that a race may take where short trainings said nothing about longer ones."""
TOLD_BY = 6
"""Candidates that it takes to say so: fewer are hardly ever in the same order."""


def affordable(leg: Leg, race: Race, rung: int) -> int:
    """How many candidates a rung has time for: what is left until the answer's share, divided between rungs."""
    planned, count = leg.plan.places[rung], leg.context.count
    if leg.budget.seconds is None:
        return planned
    speed = leg.speed
    beside = [math.ceil(speed.controls * (race.seeds if i == 0 else 1)) for i in range(len(leg.plan.rungs))]
    # Those that go on are often slower than the rest: what they took tells what they will take.
    leaders = [c.architecture for c in race.ranked() if not c.control][:planned]
    each = [leg.rung_seconds(i, leaders) for i in range(len(leg.plan.rungs))]
    if not leaders:
        # Before a race the reference has been trained, and others only in an earlier leg.
        one = [leg.reference()]
        ratio = 1 / speed.reference if leg.seen(one) else 1.0
        each = [leg.rung_seconds(i, one) * ratio * speed.on_rung(i) for i in range(len(leg.plan.rungs))]
    least = [waves(FEWEST_PLACES + b, count) * seconds for b, seconds in zip(beside, each, strict=True)]
    # Later rungs get a little more than they need: an estimate that is short by a moment would cost a whole rung.
    later = [RESERVE * seconds for seconds in least[rung + 1 :]]
    time = rung_share(leg.until("race") - 0.5, [least[rung], *later])
    fitting = int(time / each[rung]) * count - beside[rung]
    return max(0, min(int(MOST_PLACES / NARROWING**rung), fitting))


def room(leg: Leg, race: Race, turns: int) -> int:
    """How many more candidates a race of whole trainings has time for in this turn, if so many are left.

    All workers have one each time.
    """
    leaders = [c.architecture for c in race.ranked() if not c.control][:FIRST]
    times = int(leg.until("race") / leg.rung_seconds(0, leaders))
    most = MOST_PLACES - len(race.candidates)
    return max(0, min(math.ceil(times / turns) * leg.context.count, most))


def spare(leg: Leg, race: Race) -> int:
    """How many of those that had no time on the last rung can come back: there is what the race has left.

    A part of the answer's time comes to it where several candidates show that the rung before says nothing, unless
    the answer has no more than it needs.
    """
    away = [c.architecture for c in race.away()]
    if leg.budget.seconds is None or not away:
        return 0
    time = leg.until("race")
    if race.candidates_on(race.rung) >= TOLD_BY and leg.plan.epochs > FEWEST_EPOCHS:
        time += LENT * leg.shares["answer"] * leg.planned_seconds
    return max(0, int(time / leg.rung_seconds(race.rung, away))) * leg.context.count
