"""What a find is going to do, and how a person reads that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nasight.studies.finding._budget import time_text

SEEDS = 3
"""How often winner and baseline are trained for the answer."""
GRID_STEPS = (3, 2, 2)
"""Trainings by which the recipe is chosen, one group after the other: random changes, learning rate, weight decay."""
GRID = sum(GRID_STEPS)
CHANGES = GRID_STEPS[0]
"""Whole trainings that compare random changes, where there is time for them."""
SHORT_STEPS = (3, 2)
"""Short trainings that choose the rest then: what the whole ones chose is among the first."""
GRID_RATES = 3
"""Learning rates that are tried on the user's own network."""
UNUSED = 0.35
"""A budget of which the plan leaves more is more than is of use."""
JUDGE_SHARE = 0.25
"""Of the training rows, those by which recipe and race are judged; fewer where there are many rows."""


@dataclass(frozen=True)
class Speed:
    """What was measured on this machine: seconds per image of one process on one core."""

    train: float
    """A training step, forward and backward, the mean over some architectures."""
    search: float
    """A step of the supernet, with the step of the architecture."""
    score: float
    """Seconds to score one architecture."""
    controls: float = 2.0
    """What a training of every control takes together, in trainings of the space."""
    reference: float = 1.0
    """What the reference takes, in parts of `train`."""
    slower: float = 1.0
    """What a large architecture takes, in parts of `train`: leaders are often large."""
    own: float = 0.0
    """How many times as long as one of the reference a training of the user's own baseline takes; 0: there is none."""
    boosting: float = 0.0
    """Seconds that gradient boosting would take for all rows and all of its trees; 0: it does not run along."""

    def paced(self, controls: int) -> Speed:
        """In units of the reference, where every training takes as long as one of it, those of the controls too."""
        return replace(self, train=self.train * self.reference, controls=float(controls), reference=1.0, slower=1.0)

    def on_rung(self, rung: int) -> float:
        """What a candidate takes, in parts of `train`: on the first rung all that are proposed, later the leaders."""
        return self.slower if rung else (1 + self.slower) / 2


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
    most_products: float | None = None
    """Multiply-adds per example that a candidate may have; None: there is time for all of them."""
    search_rows: int | None = None
    """Rows of the searches; None: `examples`."""
    recipe_at: int | None = None
    """The rung whose rows the trainings of the recipe have, in finds of an earlier version, which had no `recipe_rows`;
    None: the one before the last, where there are several."""
    recipe_rows: int | None = None
    """Rows that the short trainings of the recipe learn from; None: those of a rung."""
    recipe_whole: bool = False
    """Whether whole trainings compare random changes."""
    judge_share: float = JUDGE_SHARE
    """Of the training rows, those by which recipe and race are judged."""
    control_seeds: int | None = None
    """How often controls are trained on the first rung; None: by how many there are."""
    whole: bool = False
    """Whether all candidates of the race are trained as long as those that answer."""
    paced: bool = False
    """Whether all trainings of a rung take the same time: epochs are then those of the reference, and a slower network
    has fewer. Else all have the same epochs."""

    def rows(self, rung: int) -> int:
        """The rows of a rung."""
        return self.rung_rows[rung] if self.rung_rows else self.examples

    @property
    def taught_by_recipe(self) -> int:
        """Rows that the short trainings of the recipe learn from."""
        if self.recipe_rows is not None:
            return self.recipe_rows
        return self.rows(max(0, len(self.rungs) - 2) if self.recipe_at is None else self.recipe_at)

    @property
    def recipe_text(self) -> str:
        """The trainings of the recipe in words."""
        text = rung_text(self.recipe_epochs, self.taught_by_recipe, max(self.rung_rows, default=0))
        if not self.recipe_whole:
            return f"up to {GRID} trainings of the reference for {text}"
        return f"{CHANGES} trainings of the reference for {self.rung_text(-1)}, {sum(SHORT_STEPS)} for {text}"

    @property
    def search_text(self) -> str:
        """The length of the searches in words."""
        return rung_text(self.search_epochs, self.search_rows or self.examples, self.examples)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Plan:
        tuples = {key: tuple(value.get(key, ())) for key in ("rungs", "places", "rung_rows")}
        # In a plan of an earlier version whole trainings had the last word where short ones preferred no changes.
        known = {key: each for key, each in value.items() if key != "recipe_checked"}
        return cls(**{**known, **tuples})

    def rung_text(self, rung: int) -> str:
        """The trainings of a rung in words."""
        return rung_text(self.rungs[rung], self.rows(rung), max(self.rung_rows, default=0))

    def lines(self, budget: float | None = None) -> list[str]:
        """The plan as a person reads it; where it has no use for a part of the budget, that is said."""
        names = {"recipe": "recipe", "propose": "proposals", "race": "race", "answer": "answer"}
        what = {
            "recipe": self.recipe_text,
            "propose": f"{self.searches} searches of {self.search_text}, {self.scored} architectures scored",
            "race": ", ".join(f"{n} x {self.rung_text(i)}" for i, n in enumerate(self.places)),
            "answer": f"winner and baseline, {SEEDS} seeds each, of {rung_text(self.epochs, 0, 0)}",
        }
        same = "epochs are those of the reference: a slower network has fewer, and takes as long"
        sizes = ", ".join(f"{name} {value}" for name, value in self.size.items())
        return [
            *(
                f"  {names[part]:<12} {time_text(self.seconds[part]) if self.seconds else '':>12}   {what[part]}"
                for part in names
                if part in self.seconds or (part != "recipe" and not self.seconds)
            ),
            *([f"  {'networks':<12} {'':>12}   {sizes}{self._most_text()}"] if sizes else []),
            *([f"  {'equal time':<12} {'':>12}   {same}"] if self.paced else []),
            *self.unused_lines(budget or 0.0),
        ]

    def _most_text(self) -> str:
        if self.most_products is None:
            return ""
        return f"; at most {self.most_products / 1e6:.3g} million multiply-adds per example"

    def unused_lines(self, budget: float) -> list[str]:
        """What of the budget is in no part of the plan: a line, or none."""
        left = budget - sum(self.seconds.values())
        if left <= 0 or not self.seconds:
            return []
        if left < UNUSED * budget:
            return [
                f"  {'reserve':<12} {time_text(left):>12}   reading and measuring, and what takes longer than planned"
            ]
        use = "more candidates and more seeds where that helps; else it is not used"
        return [f"  {'not planned':<12} {time_text(left):>12}   {use}"]


def rung_text(epochs: int, rows: int, most: int) -> str:
    """The trainings of a rung in words; the rows are named where other rungs have more.

    >>> rung_text(6, 5000, 5000), rung_text(3, 1200, 5000)
    ('6 epochs', '3 epochs of 1,200 rows')
    """
    return f"{epochs} epoch{'' if epochs == 1 else 's'}" + (f" of {rows:,} rows" if rows < most else "")
