"""How a budget is divided: from measured speeds to epochs, rungs, places and searches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nasight.errors import RequestError
from nasight.studies.finding._budget import time_text

SHARES: Mapping[str, float] = {"recipe": 0.12, "propose": 0.20, "race": 0.38, "answer": 0.30}
"""The parts of the budget, as shares."""
SEEDS = 3
"""How often winner and baseline are trained for the answer."""
GRID = 7
"""Trainings by which the recipe is chosen, each as long as a rung before the last."""
TOLERATED = 1.3
"""The recipe's trainings may take so many times its share, before shorter ones are taken."""
FEWEST_EPOCHS, MOST_EPOCHS = 6, 100
FEWEST_ROWS = 400
LEAST_RUNG = 6
"""Epochs of the shortest whole schedule; a rung that has time for fewer has fewer rows (`benchmarks/find_rungs.py`)."""
NARROWING = 3
LEAST_SEARCH = 4
"""Epochs of the shortest search; one that has time for fewer has fewer rows."""
CHEAPER = 0.7
"""A rung costs at most so much of the next one, or is left out."""
FEWEST_RACED = 4
FEWEST_PLACES = 2
SCORED = 30
CONTROLS = 2
"""The space's reference and a plain network; on the lowest rung each is trained twice."""
MOST_PLACES = 200
SLACK = 0.93
"""Clocks are noisy: so much of the budget is planned with."""
PER_TRAINING = 0.4
"""Seconds that a training takes besides its steps."""
SHORTER = 0.9
"""By so much the trainings that answer are made shorter where a plan takes more than there is."""
JUDGE_SHARE, JUDGE_ROWS = 0.25, 2_000
"""Of the training rows, those by which recipe and race are judged; above so many, no more than learn."""
JUDGING = 0.35
"""What judging a row costs, in parts of a step that learns from it."""
KEPT_EPOCH = 0.02
"""Seconds that an epoch takes besides its steps in a training that is kept: its row is written."""


class TooSmall(RequestError):
    """A budget that is not enough for anything useful."""


@dataclass(frozen=True)
class Speed:
    """What was measured on this machine: seconds per image of one process on one core."""

    train: float
    """A training step, forward and backward, the mean over some architectures."""
    search: float
    """A step of the supernet, with the step of the architecture."""
    score: float
    """Seconds to score one architecture."""


@dataclass(frozen=True)
class Plan:
    """What will be done; `seconds` are those that each part is expected to take."""

    examples: int
    """Rows that every training of the race learns from and is judged by."""
    epochs: int
    """Of the trainings that answer: the target."""
    rungs: tuple[int, ...]
    """Epochs of the race's rungs, each a whole schedule."""
    places: tuple[int, ...]
    """Candidates that each rung has time for."""
    searches: int
    search_epochs: int
    scored: int
    """Architectures that are scored without training."""
    recipe_epochs: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    rung_rows: tuple[int, ...] = ()
    """Rows that the trainings of each rung learn from; empty: as many as there are, up to `examples`."""
    size: Mapping[str, int] = field(default_factory=dict)
    """Of the networks; empty where the space has no sizes."""
    search_rows: int | None = None
    """Rows of the searches; None: `examples`."""
    recipe_at: int | None = None
    """The rung whose rows the trainings of the recipe have; None: the one before the last, where there are several."""
    judge_share: float = JUDGE_SHARE
    """Of the training rows, those by which recipe and race are judged."""

    def rows(self, rung: int) -> int:
        """The rows of a rung."""
        return self.rung_rows[rung] if self.rung_rows else self.examples

    @property
    def recipe_rung(self) -> int:
        """The rung whose rows the trainings of the recipe have."""
        return max(0, len(self.rungs) - 2) if self.recipe_at is None else self.recipe_at

    @property
    def search_text(self) -> str:
        """The length of the searches in words."""
        return rung_text(self.search_epochs, self.search_rows or self.examples, self.examples)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Plan:
        tuples = {key: tuple(value.get(key, ())) for key in ("rungs", "places", "rung_rows")}
        return cls(**{**value, **tuples})

    def rung_text(self, rung: int) -> str:
        """The trainings of a rung in words."""
        return rung_text(self.rungs[rung], self.rows(rung), max(self.rung_rows, default=0))

    def lines(self) -> list[str]:
        """The plan as a person reads it."""
        names = {"recipe": "recipe", "propose": "proposals", "race": "race", "answer": "answer"}
        what = {
            "recipe": f"{GRID} trainings of the baseline, {self.recipe_epochs} epochs each",
            "propose": f"{self.searches} searches of {self.search_text}, {self.scored} architectures scored",
            "race": ", ".join(f"{n} x {self.rung_text(i)}" for i, n in enumerate(self.places)),
            "answer": f"winner and baseline, {SEEDS} seeds of {self.epochs} epochs each",
        }
        sizes = ", ".join(f"{name} {value}" for name, value in self.size.items())
        return [
            *(
                f"  {names[part]:<12} {time_text(self.seconds[part]):>12}   {what[part]}"
                for part in names
                if part in self.seconds
            ),
            *([f"  {'networks':<12} {'':>12}   {sizes}"] if sizes else []),
        ]


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
    """
    planner = _Planner(speed, workers, rows, classes, tests, shares, most_epochs)
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
    taken = f" (to measure its speed took {time_text(spent)})" if round(spent) else ""
    raise TooSmall(
        f"a budget of {time_text(seconds + spent)} is too small for this data on this machine{taken}: "
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

    @property
    def least_rows(self) -> int:
        return min(self.rows, max(FEWEST_ROWS, 20 * self.classes))

    @property
    def least_training(self) -> float:
        """Seconds of the shortest training that can answer."""
        return FEWEST_EPOCHS * (self.least_rows * self.speed.train + KEPT_EPOCH)

    @property
    def testing(self) -> float:
        """Seconds in which a network meets the test part."""
        return JUDGING * self.tests * self.speed.train

    def plan(self, seconds: float, each: float) -> Plan:
        """The plan for trainings of the answer that take so many seconds each."""
        work, row = self.workers * SLACK * seconds, self.speed.train  # seconds of one process
        examples = min(self.rows, max(self.least_rows, int((each / FEWEST_EPOCHS - KEPT_EPOCH) / row)))
        epochs = max(FEWEST_EPOCHS, min(self.most_epochs, int(each / (examples * row + KEPT_EPOCH))))
        judges = judge_share(self.rows, examples)
        taught = taught_rows(self.rows, examples, judges)
        rungs, rung_rows = _rungs(epochs, taught, min(taught, self.least_rows))
        judging = JUDGING * judges * self.rows
        costs = [(e * r + judging) * row + PER_TRAINING for e, r in zip(rungs, rung_rows, strict=True)]
        race = self.shares["race"] * work
        beside = [CONTROLS * (2 if i == 0 else 1) for i in range(len(rungs))]
        # A rung that has no time for two candidates besides the controls is left out, the longest first.
        fewest = [(FEWEST_PLACES + c) * cost for c, cost in zip(beside, costs, strict=True)]
        count = max((n for n in range(1, len(rungs) + 1) if sum(fewest[:n]) <= TOLERATED * race), default=1)
        rungs, rung_rows, costs, beside = rungs[:count], rung_rows[:count], costs[:count], beside[:count]
        # Every rung gets the same share of the race.
        counts = [race / count / cost - c for cost, c in zip(costs, beside, strict=True)]
        places = tuple(max(FEWEST_PLACES, min(MOST_PLACES // NARROWING**i, int(n))) for i, n in enumerate(counts))
        searches = self.workers if seconds < 1_800 else 2 * self.workers
        propose, search, score = self.shares["propose"] * work, self.speed.search, self.speed.score
        search_epochs, search_rows = search_length(0.8 * propose / searches / search, examples, self.least_rows)
        scored = max(0, min(1_000, int(0.2 * propose / max(score, 1e-6))))
        recipe = _recipe_rung(costs, TOLERATED * self.shares["recipe"] * work)
        answer = epochs * (examples * row + KEPT_EPOCH) + PER_TRAINING + self.testing
        expected = {
            "recipe": GRID * costs[recipe] / self.workers,
            "propose": (searches * search_epochs * search_rows * search + scored * score) / self.workers,
            "race": sum((n + c) * cost for n, c, cost in zip(places, beside, costs, strict=True)) / self.workers,
            "answer": 2 * SEEDS * answer / self.workers,
        }
        return Plan(
            examples, epochs, rungs, places, searches, search_epochs, scored, rungs[recipe], expected, rung_rows,
            search_rows=search_rows, recipe_at=recipe, judge_share=judges,
        )  # fmt: skip


def _recipe_rung(costs: Sequence[float], seconds: float) -> int:
    """The longest rung whose trainings the recipe has time for; the shortest where it has time for none."""
    fitting = (rung for rung in range(len(costs) - 1, 0, -1) if GRID * costs[rung] <= seconds)
    return next(fitting, 0)


def search_length(passes: float, rows: int, least_rows: int, most_epochs: int = 50) -> tuple[int, int]:
    """Epochs and rows of a search that passes so many rows through the supernet.

    >>> search_length(90_000, 8_000, 400), search_length(20_000, 8_000, 400)
    ((11, 8000), (4, 5000))
    """
    epochs = min(most_epochs, int(passes / rows))
    if epochs >= LEAST_SEARCH:
        return epochs, rows
    return LEAST_SEARCH, max(min(rows, least_rows), int(passes / LEAST_SEARCH))


def training_seconds(seconds: float, workers: int, share: float) -> float:
    """Seconds of one process for each training of the answer, of a budget of which it has this share."""
    return share * workers * SLACK * seconds / (2 * SEEDS) - PER_TRAINING


def _rungs(epochs: int, rows: int, least_rows: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Epochs and rows of the rungs: of a ninth, a third and all of the cost of the trainings that answer.

    A shorter schedule has fewer epochs, and where these would be too few, fewer rows.
    """
    found = [(epochs, rows)]
    for part in (NARROWING, NARROWING**2):
        e = max(min(LEAST_RUNG, epochs), round(epochs / part))
        few = epochs / part < LEAST_RUNG
        r = max(least_rows, round(rows * epochs / (part * e))) if few else rows
        if e * r <= CHEAPER * found[0][0] * found[0][1]:
            found.insert(0, (e, r))
    return tuple(e for e, _ in found), tuple(r for _, r in found)


def judge_share(rows: int, examples: int) -> float:
    """The share of the rows that judge where trainings learn from so many: more would take time and tell little.

    >>> judge_share(8_000, 8_000), judge_share(50_000, 1_000)
    (0.25, 0.04)
    """
    return min(JUDGE_SHARE, max(JUDGE_ROWS, examples) / rows)


def taught_rows(rows: int, examples: int, judges: float = JUDGE_SHARE) -> int:
    """Of `rows` those that a training of the race learns from, if it may take so many and a share judges."""
    return min(examples, round((1 - judges) * rows))


def rung_text(epochs: int, rows: int, most: int) -> str:
    """The trainings of a rung in words; the rows are named where other rungs have more.

    >>> rung_text(6, 5000, 5000), rung_text(3, 1200, 5000)
    ('6 epochs', '3 epochs of 1,200 rows')
    """
    return f"{epochs} epoch{'' if epochs == 1 else 's'}" + (f" of {rows:,} rows" if rows < most else "")


def plan_of_trainings(
    trainings: int, *, rows: int, epochs: int = FEWEST_EPOCHS, controls: int = CONTROLS, recipes: int = GRID
) -> Plan:
    """The plan for a number of trainings, in which no clock plays a role; `controls` is how many run along, `recipes`
    how many choose the recipe.
    """
    short = max(1, round(epochs / NARROWING))
    rungs = tuple(sorted({short, epochs}))
    left = trainings - recipes - 2 * SEEDS - controls * (len(rungs) + 1)
    if left < FEWEST_RACED * len(rungs):
        least = trainings - left + FEWEST_RACED * len(rungs)
        raise TooSmall(f"{trainings} trainings are too few for recipe, race and answer: the least is {least}")
    last = max(2, left // (NARROWING + 1)) if len(rungs) > 1 else 0
    places = (left - last, last) if len(rungs) > 1 else (left,)
    return Plan(rows, epochs, rungs, places, 2, max(2, epochs), SCORED, short)
