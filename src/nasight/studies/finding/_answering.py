"""The end of a leg: winner and baseline trained with new seeds."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from statistics import mean
from typing import Any

from nasight.errors import RunError
from nasight.studies.finding._leg import Leg
from nasight.studies.finding._lengths import LEAST_PACED, MOST_EPOCHS, paced_epochs
from nasight.studies.finding._names import OWN, SPACE, is_searched, split_name
from nasight.studies.finding._plan import SEEDS
from nasight.studies.finding._planning import ANSWERED, JUDGING, KEPT_EPOCH
from nasight.studies.finding._race import Outcome, Race
from nasight.studies.finding._result import Sides, result_of
from nasight.studies.finding._settings import is_own, leg_seed
from nasight.studies.finding._speed import expected_seconds
from nasight.studies.finding._work import BOOSTING, Request

FIRST_SEED = 5_000
"""Seeds of the answer's trainings begin so far above those of their leg: none of them was used before."""
LEAST_EPOCHS = 4
"""However little time is left, the trainings that answer have so many."""
TIMED = 0.4
"""Seconds for which steps of each side are timed."""
MOST_SEEDS = 10
"""Where there is time for more than the longest trainings with the fewest seeds, there are up to so many."""


def answer_seeds(seed: int, leg: int = 0, number: int = SEEDS) -> tuple[int, ...]:
    """The seeds with which a find of this seed trains winner and baseline in the end.

    >>> answer_seeds(0), answer_seeds(2)
    ((5000, 5001, 5002), (25000, 25001, 25002))
    """
    return tuple(leg_seed(seed, leg) + FIRST_SEED + k for k in range(number))


def makespan(costs: Sequence[float], workers: int) -> float:
    """Seconds until all are done: each goes, in this order, to the worker that is free first.

    >>> makespan([3.0, 3.0, 3.0, 1.0, 1.0, 1.0], 2), makespan([3.0, 3.0, 3.0, 1.0, 1.0, 1.0], 8)
    (6.0, 3.0)
    """
    free = [0.0] * workers
    for cost in costs:
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


def answer(leg: Leg, race: Race) -> dict[str, Any]:
    """Winner and baseline, trained alike with new seeds on all rows, and what the test part says of them."""
    ranked = race.ranked()
    # Where a larger network of the space is meant, what has but one size is nothing to compare with.
    controls = [c for c in ranked if c.control and c.architecture not in race.left]
    controls = [c for c in controls if not leg.longer_is_meant or is_searched(c)]
    # What the user has named, or the first options of their own model, is what has to be beaten.
    asked = OWN if leg.has_own else SPACE if is_own(leg.settings.space) else None
    controls.sort(key=lambda c: split_name(c.architecture)[0] != asked)
    networks = [c for c in ranked if split_name(c.architecture)[0] != BOOSTING]
    winners = [c for c in networks if not c.control and c.architecture not in race.left] or networks
    while controls and winners:
        baseline, winner = controls[0], winners[0]
        lengths = Lengths(leg, race, [c.architecture for c in (winner, baseline)])
        epochs, seeds = lengths.decided()
        requests, sides = _trained(leg, race, epochs, seeds)
        failed = [name for name, outcomes in sides.items() if any(o is None for o in outcomes)]
        if not failed:
            found = {name: [o for o in outcomes if o is not None] for name, outcomes in sides.items()}
            return result_of(leg, race, Sides(winner, baseline, found, requests, epochs))
        # What ended on short schedules can still diverge on the longest: the next best is taken in its place.
        controls = [c for c in controls if c.architecture not in failed]
        winners = [c for c in winners if c.architecture not in failed]
    raise RunError(
        f"no training of {leg.plan.epochs} epochs ended: all diverged; the race is kept in {leg.context.folder.path}"
    )


class Lengths:
    """How long the trainings of the answer are, and how many there are: decided once in a leg.

    Where time counts, all of them take the same time, and a slower side has fewer epochs. The steps of both are timed
    again for that, for longer than before the race.
    """

    def __init__(self, leg: Leg, race: Race, names: Sequence[str]) -> None:
        self.leg, self.race, self.names = leg, race, names

    def decided(self) -> tuple[dict[str, int], int]:
        """Epochs of each side, and seeds."""
        leg, number, journal = self.leg, self.leg.number, self.leg.journal
        if f"epochs {number}" not in journal:
            epochs, seeds = self._affordable()
            journal.put(f"seeds {number}", seeds)
            journal.put(f"length {number}", epochs * self._fastest)
            journal.put(f"epochs {number}", epochs)
        # A find of an earlier version kept no seeds: it had the fewest.
        return self._epochs(leg.length_of(number)), int(journal.get(f"seeds {number}", SEEDS))

    def _epochs(self, length: float) -> dict[str, int]:
        """Of each side, in the time of so many epochs of the reference. Gradient boosting has none."""
        return {name: paced_epochs(length, self._paces.get(name, 1.0)) for name in self.names}

    @property
    def _fastest(self) -> float:
        """The pace of the side whose epochs are the shortest."""
        return min(self._paces.values())

    @cached_property
    def _paces(self) -> dict[str, float]:
        """Of the networks among the sides, timed once in a leg; 1 where epochs count."""
        leg, networks = self.leg, [name for name in self.names if split_name(name)[0] != BOOSTING]
        if not leg.plan.paced:
            return dict.fromkeys(networks, 1.0)
        keys = {name: f"answer pace {leg.number} {name}" for name in networks}
        new = [name for name, key in keys.items() if key not in leg.journal]
        for name, pace in leg.timed_paces(new, TIMED, leg.context.count).items():
            leg.journal.put(keys[name], pace)
        return {name: float(leg.journal.get(key, 1.0)) for name, key in keys.items()}

    def _passes(self, name: str) -> float:
        """Rows that a training of a side passed on the last rung, those that judged by what they cost."""
        rung = self.race.rung
        return self.leg.passes(self.leg.epochs_of(name, rung), self.leg.plan.rows(rung))

    def _affordable(self) -> tuple[int, int]:
        """Epochs (of the fastest side) and seeds: the longest for which there is time, then as many as there is."""
        leg = self.leg
        if leg.budget.seconds is None:
            return leg.plan.epochs, SEEDS
        took = sorted(((_seconds(self.race, name), name) for name in self.names), reverse=True)
        fastest = self._fastest  # timed before the clock is read
        usable = ANSWERED * leg.left()

        def seconds(name: str, took: float, epochs: int) -> float:
            # More rows learn now: those of the whole plan, and those that judged.
            rows = epochs * leg.plan.examples + JUDGING * leg.tests
            return expected_seconds(rows, [(self._passes(name), took)]) + epochs * KEPT_EPOCH

        def fits(epochs: int, seeds: int) -> bool:
            sides = self._epochs(epochs * fastest)
            costs = [seconds(name, each, sides[name]) for each, name in took for _ in range(seeds)]
            return makespan(costs, leg.context.count) <= usable

        # A slower side has two epochs at least, and the fastest as many as take as long.
        slower = max(self._paces.values()) / fastest
        least = max(min(LEAST_EPOCHS, leg.plan.rungs[0]), math.ceil(LEAST_PACED * slower) if slower > 1 else 0)
        if leg.previous is not None:
            # What more time leads to does not take the place of longer trainings.
            least = max(least, round(leg.length_of(leg.previous.number) / fastest))
        most = leg.epochs or max(leg.plan.epochs, MOST_EPOCHS)
        return longest(fits, least, max(least, round(most / fastest)))


def _trained(
    leg: Leg, race: Race, epochs: Mapping[str, int], seeds: int
) -> tuple[dict[str, list[Request]], dict[str, list[Outcome | None]]]:
    """The trainings of both sides, and their outcomes."""
    requests = {
        name: [
            leg.request(key, text, number, seed, leg.recipe_of(key), final=True)
            for seed in answer_seeds(leg.settings.seed, leg.number, seeds)
        ]
        for name, number in epochs.items()
        for key, text in [split_name(name)]
    }
    # The slower ones first, so that no process is left with a long one in the end.
    slower = sorted(requests, key=lambda name: -_seconds(race, name))
    flat = [request for name in slower for request in requests[name]]
    outcomes = dict(zip((r.key() for r in flat), leg.context.workers.train(flat), strict=True))
    return requests, {name: [outcomes[r.key()] for r in asked] for name, asked in requests.items()}


def _seconds(race: Race, architecture: str) -> float:
    """What a training of an architecture took on the last rung."""
    return mean(o.seconds for e, o in race.outcomes.items() if (e.architecture, e.rung) == (architecture, race.rung))


def longest(fits: Callable[[int, int], bool], least: int, most: int) -> tuple[int, int]:
    """The most epochs for which there is time with the fewest seeds; where that is all that is wanted, more seeds.

    >>> longest(lambda epochs, seeds: epochs * seeds <= 60, 6, 100), longest(lambda e, n: e * n <= 60, 6, 8)
    ((20, 3), (8, 7))
    >>> longest(lambda epochs, seeds: False, 6, 100), longest(lambda epochs, seeds: True, 6, 100)
    ((6, 3), (100, 10))
    """
    epochs = max((e for e in range(least, most + 1) if fits(e, SEEDS)), default=least)
    if epochs < most:
        return epochs, SEEDS
    return epochs, max((n for n in range(SEEDS, MOST_SEEDS + 1) if fits(epochs, n)), default=SEEDS)
