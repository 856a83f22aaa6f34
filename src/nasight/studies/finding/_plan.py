"""How a budget is divided: from measured speeds to epochs, rungs, places and searches."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
FEWEST_EPOCHS, MOST_EPOCHS = 6, 100
FEWEST_ROWS = 400
LEAST_RUNG = 3
"""Epochs of the shortest whole schedule that ranks at all."""
NARROWING = 3
FEWEST_RACED = 4
SCORED = 30
CONTROLS = 2
"""The space's reference and a plain network; on the lowest rung each is trained twice."""
MOST_PLACES = 200
SLACK = 0.93
"""Clocks are noisy: so much of the budget is planned with."""
PER_TRAINING = 0.4
"""Seconds that a training takes besides its steps."""


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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Plan:
        return cls(**{**value, "rungs": tuple(value["rungs"]), "places": tuple(value["places"])})

    def lines(self) -> list[str]:
        """The plan as a person reads it."""
        names = {"recipe": "recipe", "propose": "proposals", "race": "race", "answer": "answer"}
        what = {
            "recipe": f"{GRID} trainings of the baseline, {self.recipe_epochs} epochs each",
            "propose": f"{self.searches} searches of {self.search_epochs} epochs, {self.scored} architectures scored",
            "race": ", ".join(f"{n} x {e} epochs" for n, e in zip(self.places, self.rungs, strict=True)),
            "answer": f"winner and baseline, {SEEDS} seeds of {self.epochs} epochs each",
        }
        return [
            f"  {names[part]:<12} {time_text(self.seconds[part]):>12}   {what[part]}"
            for part in names
            if part in self.seconds
        ]


def plan(
    speed: Speed,
    seconds: float,
    *,
    workers: int,
    rows: int,
    classes: int,
    spent: float = 0.0,
    shares: Mapping[str, float] = SHARES,
) -> Plan:
    """The plan for a budget of seconds; one that is too small for anything useful says what the least is.

    Parameters
    ----------
    speed : what was measured.
    seconds : the budget that is left.
    workers : processes that train at once.
    rows : training rows there are.
    classes : classes there are.
    spent : seconds of the budget that went into loading and measuring.
    shares : of the budget, see `SHARES`.
    """
    work = workers * SLACK * seconds  # seconds of one process
    least_rows = min(rows, max(FEWEST_ROWS, 20 * classes))
    each = shares["answer"] * work / (2 * SEEDS) - PER_TRAINING
    per_row = speed.train
    if each < FEWEST_EPOCHS * least_rows * per_row:
        least = 2 * SEEDS * (FEWEST_EPOCHS * least_rows * per_row + PER_TRAINING) / shares["answer"] / workers
        taken = f" (to measure its speed took {time_text(spent)})" if round(spent) else ""
        raise TooSmall(
            f"a budget of {time_text(seconds + spent)} is too small for this data on this machine{taken}: "
            f"the least is about {time_text(math.ceil(1.02 * least / SLACK + spent))}"
        )
    examples = min(rows, int(each / (FEWEST_EPOCHS * per_row)))
    epochs = max(FEWEST_EPOCHS, min(MOST_EPOCHS, int(each / (examples * per_row))))
    rungs = tuple(sorted({e for k in (NARROWING**2, NARROWING, 1) if (e := round(epochs / k)) >= LEAST_RUNG}))
    epoch = examples * per_row
    race = shares["race"] * work
    # Every rung gets the same share of the race.
    beside = [CONTROLS * (2 if i == 0 else 1) for i in range(len(rungs))]
    counts = [race / len(rungs) / (e * epoch + PER_TRAINING) - c for e, c in zip(rungs, beside, strict=True)]
    places = tuple(max(2, min(MOST_PLACES // NARROWING**i, int(count))) for i, count in enumerate(counts))
    searches = workers if seconds < 1_800 else 2 * workers
    propose = shares["propose"] * work
    search_epochs = max(2, min(50, int(0.8 * propose / searches / (examples * speed.search))))
    scored = max(0, min(1_000, int(0.2 * propose / max(speed.score, 1e-6))))
    recipe_epochs = rungs[max(0, len(rungs) - 2)] if len(rungs) > 1 else max(LEAST_RUNG, epochs // NARROWING)
    expected = {
        "recipe": GRID * (recipe_epochs * epoch + PER_TRAINING) / workers,
        "propose": (searches * search_epochs * examples * speed.search + scored * speed.score) / workers,
        "race": sum((n + c) * (e * epoch + PER_TRAINING) for n, c, e in zip(places, beside, rungs, strict=True))
        / workers,
        "answer": 2 * SEEDS * (epochs * epoch + PER_TRAINING) / workers,
    }
    return Plan(examples, epochs, rungs, places, searches, search_epochs, scored, recipe_epochs, expected)


def plan_of_trainings(trainings: int, *, rows: int, epochs: int = FEWEST_EPOCHS, controls: int = CONTROLS) -> Plan:
    """The plan for a number of trainings, in which no clock plays a role; `controls` is how many run along."""
    short = max(1, round(epochs / NARROWING))
    rungs = tuple(sorted({short, epochs}))
    left = trainings - GRID - 2 * SEEDS - controls * (len(rungs) + 1)
    if left < FEWEST_RACED * len(rungs):
        least = trainings - left + FEWEST_RACED * len(rungs)
        raise TooSmall(f"{trainings} trainings are too few for recipe, race and answer: the least is {least}")
    last = max(2, left // (NARROWING + 1)) if len(rungs) > 1 else 0
    places = (left - last, last) if len(rungs) > 1 else (left,)
    return Plan(rows, epochs, rungs, places, 2, max(2, epochs), SCORED, short)
