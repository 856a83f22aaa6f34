"""How a budget is divided: from measured speeds to epochs, rungs, places and searches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from nasight.errors import RequestError
from nasight.studies.finding._budget import time_text
from nasight.studies.finding._lengths import (
    FEWEST_EPOCHS,
    LEAST_PACED,
    MOST_EPOCHS,
    NARROWING,
    PER_TRAINING,
    SLACK,
    judge_share,
    least_rows,
    rung_lengths,
    rung_share,
    search_length,
    taught_rows,
    training_seconds,
    waves,
)
from nasight.studies.finding._plan import (
    CHANGES,
    GRID,
    GRID_RATES,
    GRID_STEPS,
    SEEDS,
    SHORT_STEPS,
    Plan,
    Speed,
)

SHARES: Mapping[str, float] = {"recipe": 0.20, "propose": 0.10, "race": 0.40, "answer": 0.30}
"""The parts of the budget, as shares."""
TARGET_SHARES: Mapping[str, float] = {"recipe": 0.12, "propose": 0.13, "race": 0.60, "answer": 0.15}
"""The same where trainings are meant that are longer still: no answer decides about these, so more candidates race."""
TOLERATED = 1.3
"""The trainings of the recipe may take so many times its share, before shorter ones are taken."""
FEWEST_RACED = 4
"""Candidates of a race, where one of whole trainings is to be worth it, or trainings are counted."""
FEWEST_PLACES = 2
SCORED = 30
FEWEST_SEARCHES = 2
MOST_PLACES = 1_000
ANSWERED = 0.88
"""The part of the last seconds that trainings take: the model, the page and the times of the front come after them."""
SHORTER = 0.9
"""By so much the trainings that answer are made shorter where a plan takes more than there is."""
JUDGING = 0.35
"""What judging a row costs, in parts of a step that learns from it."""
KEPT_EPOCH = 0.02
"""Seconds that an epoch takes besides its steps in a training that is kept: its row is written."""
SEARCH_EPOCH = 0.1
"""Seconds that an epoch of a search takes besides its steps: rows that judge, a row of the history, a checkpoint."""


class TooSmall(RequestError):
    """A budget that is not enough for anything useful."""


def plan(
    speed: Speed,
    seconds: float,
    *,
    workers: int,
    rows: int,
    classes: int,
    tests: int = 0,
    spent: float = 0.0,
    shares: Mapping[str, float] = SHARES,
    most_epochs: int = MOST_EPOCHS,
    control_seeds: int = 2,
    own: float = 0.0,
    changes: bool = True,
    whole: bool = False,
    paced: bool = False,
    answered: tuple[float, int] | None = None,
    tunes: bool | None = None,
) -> Plan:
    """The plan for a budget of seconds; one that is too small for anything useful says what the least is.

    Parameters
    ----------
    speed : what was measured.
    seconds : the budget that is left.
    workers : processes that train at once.
    rows : training rows there are.
    classes : classes there are.
    tests : test rows there are.
    spent : seconds of the budget that went into loading and measuring.
    shares : of the budget, see `SHARES`.
    most_epochs : of the trainings that answer.
    control_seeds : trainings of each control on the first rung.
    own : what a training of the user's own baseline takes, in trainings of the space; 0: there is none.
    changes : whether there are random changes of images to choose among, which whole trainings compare.
    whole : whether all candidates of the race are trained as long as those that answer, where there is time for enough.
    paced : whether all trainings have the same time, and not the same epochs.
    answered : epochs and rows of the trainings that answered in an earlier leg; None: this is the first. Shorter ones
        would not take their place.
    tunes : whether the recipe is chosen; by default in the first leg alone.
    """
    planner = _Planner(
        speed, workers, rows, classes, tests, shares, most_epochs, control_seeds, own, changes, whole, paced,
        answered, answered is None if tunes is None else tunes,
    )  # fmt: skip
    least, shared = planner.least_training, seconds
    each = training_seconds(seconds, workers, shares["answer"]) - planner.testing
    # Every part has a least length. Where these take more than their shares, the answer has less, and then all have.
    while shared > 0:
        found = planner.plan(shared, max(each, least))
        if sum(found.seconds.values()) <= seconds:
            return found
        each, shared = (SHORTER * each, shared) if each > least else (each, shared - (1 - SHORTER) * seconds)
    found = planner.plan(0.0, least)
    needed = sum(found.seconds.values())
    if needed <= seconds:
        return found
    taken = f" (to read it and to measure its speed took {time_text(spent)})" if round(spent) else ""
    long = "" if answered is None else " and trainings as long as those that answered before"
    raise TooSmall(
        f"a budget of {time_text(seconds + spent)} is too small for this data{long} on this machine{taken}: "
        f"the least is about {time_text(math.ceil(1.05 * needed + spent))}"
    )


@dataclass(frozen=True)
class _Planner:
    """What a plan follows from besides the time there is."""

    speed: Speed
    workers: int
    rows: int
    classes: int
    tests: int
    shares: Mapping[str, float]
    most_epochs: int
    control_seeds: int
    own: float
    changes: bool
    whole: bool
    paced: bool
    answered: tuple[float, int] | None
    tunes: bool

    @property
    def least_rows(self) -> int:
        return least_rows(self.rows, self.classes)

    @property
    def least_epochs(self) -> int:
        """Of the trainings that answer.

        At equal time they are as long as the fewest epochs of the user's own baseline, however slow that is. Those of
        a later leg are at least as long as those before.
        """
        own = LEAST_PACED * self.speed.own if self.paced else 0.0
        before, _ = self.answered or (0.0, 0)
        return max(FEWEST_EPOCHS, math.ceil(own), int(before))

    @property
    def least_training(self) -> float:
        """Seconds of the shortest training that can answer."""
        epochs, rows = self.answered or (0.0, 0)
        # The answer has a little less than its plan: the model and the page are made in the same time.
        before = epochs * (rows * self.answer_row + KEPT_EPOCH) * SLACK / ANSWERED
        return max(self.least_epochs * (self.least_rows * self.answer_row + KEPT_EPOCH), before)

    @property
    def answer_row(self) -> float:
        """Seconds per row of the trainings that answer, of which half are a leader's."""
        return self.speed.train * self.speed.on_rung(0)

    @property
    def testing(self) -> float:
        """Seconds in which a network meets the test part."""
        return JUDGING * self.tests * self.answer_row

    def plan(self, seconds: float, each: float) -> Plan:
        """The plan for trainings of the answer that take so many seconds each."""
        usable, row = SLACK * seconds, self.answer_row
        examples = min(self.rows, max(self.least_rows, int((each / self.least_epochs - KEPT_EPOCH) / row)))
        epochs = max(self.least_epochs, min(self.most_epochs, int(each / (examples * row + KEPT_EPOCH))))
        judges = judge_share(self.rows, examples)
        taught = taught_rows(self.rows, examples, judges)
        lengths = rung_lengths(epochs, taught, min(taught, self.least_rows))
        judging = JUDGING * judges * self.rows
        usual = [(e * r + judging) * self.speed.train + PER_TRAINING for e, r in lengths]
        racing = self._for_race(usual, self.shares["race"] * usable)
        costs = racing._costs(usual)
        kept, places = racing._race(costs, self.shares["race"] * usable)
        searches = max(FEWEST_SEARCHES, self.workers if seconds < 1_800 else 2 * self.workers)
        propose, search, score = self.shares["propose"] * usable, self.speed.search, self.speed.score
        passes = 0.8 * propose / waves(searches, self.workers) / search
        search_epochs, search_rows = search_length(passes, examples, self.least_rows, beside=SEARCH_EPOCH / search)
        scored = max(0, min(1_000, int(0.2 * propose * self.workers / max(score, 1e-6))))
        reached = kept[-1] == len(lengths) - 1
        recipe, tuning, compared = self._recipe(usual[: kept[-1] + 1], self.shares["recipe"] * usable, whole=reached)
        answer = epochs * (examples * row + KEPT_EPOCH) + PER_TRAINING + self.testing
        expected = {
            **({"recipe": tuning} if self.tunes else {}),
            "propose": waves(searches, self.workers) * search_epochs * (search_rows * search + SEARCH_EPOCH)
            + scored * score / self.workers,
            "race": sum(racing._rung_seconds(i, places[i], costs[k]) for i, k in enumerate(kept)),
            "answer": waves(2 * SEEDS, self.workers) * answer,
        }
        raced = [lengths[i] for i in kept]
        return Plan(
            examples, epochs, tuple(e for e, _ in raced), places, searches, search_epochs, scored, lengths[recipe][0],
            expected, tuple(r for _, r in raced), search_rows=search_rows, recipe_rows=lengths[recipe][1],
            recipe_whole=compared, judge_share=judges, control_seeds=racing.control_seeds,
            whole=racing.whole,
        )  # fmt: skip

    def _costs(self, usual: Sequence[float]) -> list[float]:
        """What a training of each length takes in the race, where leaders have the longer ones of several."""
        return [cost * self.speed.on_rung(0 if self.whole else rung) for rung, cost in enumerate(usual)]

    def _for_race(self, usual: Sequence[float], seconds: float) -> _Planner:
        """The planner of a race: of whole trainings alone where there is time for enough, else of short ones too.

        Nobody leaves a race that has but one rung, so the noise of a seed need not be known. Where the user's own
        baseline has its fewest epochs, there are no shorter ones.
        """
        if not self.whole:
            return self
        alone, slow = replace(self, control_seeds=1), self.paced and LEAST_PACED * self.speed.own > FEWEST_EPOCHS
        fitting = alone._places(self._costs(usual)[-1:], seconds)[0]
        return alone if slow or fitting >= FEWEST_RACED else replace(self, whole=False)

    def _recipe(self, costs: Sequence[float], seconds: float, *, whole: bool) -> tuple[int, float, bool]:
        """Which of the lengths the short trainings of the recipe have, what all of its trainings take, and whether
        whole ones compare random changes.

        They do where the race has whole ones, these are longer than others, and they do not take far more than the
        recipe should: `seconds`.
        """
        comparing = waves(CHANGES, self.workers) * costs[-1]
        compared = self.changes and whole and len(costs) > 1 and comparing <= 2 * TOLERATED * seconds
        short, comparing = (SHORT_STEPS, comparing) if compared else (GRID_STEPS, 0.0)
        after = sum(waves(n, self.workers) for n in short) + waves(GRID_RATES, self.workers) * self.own
        rung = _recipe_rung(costs[:-1] if compared else costs, (TOLERATED * seconds - comparing) / after)
        return rung, after * costs[rung] + comparing, compared

    def _rung_seconds(self, rung: int, places: int, cost: float) -> float:
        """What a rung takes: so many candidates, and the controls beside them."""
        return waves(places + self._beside(rung), self.workers) * cost

    def _beside(self, rung: int) -> int:
        """Trainings of the controls on a rung; a slow one counts as several."""
        return math.ceil(self.speed.controls * (1 if rung else self.control_seeds))

    def _race(self, costs: Sequence[float], seconds: float) -> tuple[list[int], tuple[int, ...]]:
        """The rungs of a race that takes so many seconds, and the candidates of each.

        The longest rung is left out where there is no time for it, or none for more candidates before it; one in the
        middle where as many would go on as there are.
        """
        kept = [len(costs) - 1] if self.whole else list(range(len(costs)))
        while len(kept) > 1:
            chosen = [costs[i] for i in kept]
            if sum(self._least(chosen)) <= seconds:
                places = self._places(chosen, seconds)
                flat = next((k for k, (a, b) in enumerate(pairwise(places)) if a <= b), None)
                if flat is None:
                    return kept, places
                del kept[flat or -1]
            else:
                kept.pop()
        return kept, self._places([costs[i] for i in kept], seconds)

    def _least(self, costs: Sequence[float]) -> list[float]:
        """What every rung takes with the fewest candidates."""
        return [self._rung_seconds(i, FEWEST_PLACES, cost) for i, cost in enumerate(costs)]

    def _places(self, costs: Sequence[float], seconds: float) -> tuple[int, ...]:
        """Candidates of every rung in these seconds, the fewest at least."""
        left, least, found = seconds, self._least(costs), list[int]()
        for rung, cost in enumerate(costs):
            time = rung_share(left, least[rung:])
            fitting = max(FEWEST_PLACES, int(time / cost) * self.workers - self._beside(rung))
            found.append(min(MOST_PLACES // NARROWING**rung, fitting))
            left -= self._rung_seconds(rung, found[-1], cost)
        return tuple(found)


def control_seeds(controls: int) -> int:
    """How often each control is trained on the first rung: their spread is the noise of a seed.

    >>> control_seeds(1), control_seeds(2), control_seeds(4)
    (3, 2, 2)
    """
    return 3 if controls == 1 else 2


def _recipe_rung(costs: Sequence[float], seconds: float) -> int:
    """The longest rung of which a training takes at most so many seconds; the shortest where none does."""
    fitting = (rung for rung in range(len(costs) - 1, 0, -1) if costs[rung] <= seconds)
    return next(fitting, 0)


def plan_of_trainings(
    trainings: int,
    *,
    rows: int,
    epochs: int = FEWEST_EPOCHS,
    controls: int = 2,
    recipes: int = GRID,
    changes: bool = False,
) -> Plan:
    """The plan for a number of trainings, in which no clock plays a role; `controls` is how many run along, `recipes`
    how many choose the recipe, `changes` whether whole ones compare random changes, where there are enough.
    """
    short = max(1, round(epochs / NARROWING))
    rungs = tuple(sorted({short, epochs}))
    left = trainings - recipes - 2 * SEEDS - controls * (control_seeds(controls) + len(rungs) - 1)
    fewest = FEWEST_RACED * len(rungs)
    if left < fewest:
        raise TooSmall(
            f"{trainings} trainings are too few for recipe, race and answer: the least is {trainings - left + fewest}"
        )
    more = CHANGES + sum(SHORT_STEPS) - GRID
    compared = changes and len(rungs) > 1 and left - more >= fewest
    left -= more if compared else 0
    last = max(2, left // (NARROWING + 1)) if len(rungs) > 1 else 0
    places = (left - last, last) if len(rungs) > 1 else (left,)
    judges = judge_share(rows, rows)
    return Plan(
        rows, epochs, rungs, places, FEWEST_SEARCHES, max(2, epochs), SCORED, short, judge_share=judges,
        recipe_whole=compared,
    )  # fmt: skip
