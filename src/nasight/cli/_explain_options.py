"""Options that `nasight explain` and `nasight trust ranking` share."""

from __future__ import annotations

from typing import Annotated

from nasight.cli._shared import choice, option
from nasight.options import LENGTH, WHAT

RunData = Annotated[str | None, option("Where the run's data is now, if not where it was.", group=WHAT)]
RunSpace = Annotated[str | None, option("The space, where it is code of your own: FILE.py:NAME.", group=WHAT)]
Level = Annotated[float, choice("The confidence level of verdicts and intervals.", metavar="0..1", group=WHAT)]
HeldOut = Annotated[
    int | None, option("At most this many held-out examples for the shared weights.", metavar="N", group=LENGTH)
]
Preset = Annotated[str, choice("How each architecture is trained: tiny or small.", group=LENGTH)]
Epochs = Annotated[int | None, option("Epochs of each training.", metavar="N", group=LENGTH)]
Seeds = Annotated[int, choice("Seeds of each training.", metavar="N", group=LENGTH)]
