"""A claim of a paper: what it says, how it is measured here, and the rule that decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nasight.data import Dataset
from nasight.studies.reproducing._rules import FEW, Rule

Measure = Callable[[Dataset, int], dict[str, float]]
"""What is measured on a data set with a seed, by name; a function of a module, so that it can be sent to workers."""


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims.

    Parameters
    ----------
    name : what a user types.
    paper : GAEA, Simplex, FeatureMaps, EigenNAS or Cells.
    sentence : what is claimed.
    measured : what is measured, with its unit.
    measure : measures it with one seed; claims with the same function share its work.
    figure : the measured value that the rule is about.
    rule : when the claim holds.
    scale : how this differs from what the paper did.
    seconds : about how long it takes on one core with its own number of seeds.
    beside : other measured values to show, as means over the seeds.
    seeds : how many there are by default.
    chance : whether anything is drawn; if not, one seed is enough and no other number is taken.
    """

    name: str
    paper: str
    sentence: str
    measured: str
    measure: Measure
    figure: str
    rule: Rule
    scale: str
    seconds: int
    beside: tuple[str, ...] = ()
    seeds: int = FEW
    chance: bool = True

    @property
    def piece(self) -> str:
        """The name of its measurement in a run folder."""
        return self.measure.__name__

    def to_dict(self) -> dict[str, Any]:
        """What `nasight reproduce --list --json` prints of it."""
        names = ("name", "paper", "sentence", "measured", "seeds", "seconds", "scale")
        return {**{name: getattr(self, name) for name in names}, "rule": self.rule.text}
