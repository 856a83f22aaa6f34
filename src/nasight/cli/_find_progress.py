"""What `nasight find` says on the way, on standard error."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import typer

PAUSE = 60.0
"""Seconds of trainings after which the best so far are told."""
STAGES = {
    "recipe": "Recipe: learning rate, weight decay and augmentation, chosen on the reference",
    "propose": "Proposals: searches, scores, open decisions, chance",
    "race": "Race: trainings of all candidates",
    "answer": "Answer: winner and baseline, new seeds, on the test part",
}


class FindProgress:
    """A line for each event of a find and, while trainings take long, one per minute.

    With `quiet` no line is written over again on a terminal.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.counts = not quiet and sys.stderr.isatty()
        self.trainings, self.ends, self.spoke = 0, math.inf, time.monotonic()
        self.seen: list[tuple[str, float]] = []
        self.events = {
            "note": self._note,
            "plan": self._plan,
            "stage": self._stage,
            "proposer": self._proposer,
            "training": self._training,
            "rung": self._rung,
            "leaders": self._leaders,
        }

    def __call__(self, event: str, values: Mapping[str, Any]) -> None:
        if event in self.events:
            self.events[event](values)

    def _note(self, values: Mapping[str, Any]) -> None:
        typer.echo(values["text"], err=True)

    def _plan(self, values: Mapping[str, Any]) -> None:
        typer.echo("\n".join(["Plan:", *values["plan"].lines(values["budget"])]), err=True)

    def _stage(self, values: Mapping[str, Any]) -> None:
        self._begin(values["left"])
        typer.echo(f"{STAGES[values['stage']]}{_left(values['left'])}", err=True)

    def _proposer(self, values: Mapping[str, Any]) -> None:
        typer.echo(f"  {values['what']}{_left(values['left'])}", err=True)

    def _training(self, values: Mapping[str, Any]) -> None:
        self.trainings += 1
        if values["accuracy"] is not None:
            self.seen.append((values["architecture"], values["accuracy"]))
        now = time.monotonic()
        text = f"  {self.trainings} trainings{_left(self.ends - now)}"
        if now - self.spoke >= PAUSE:
            self.spoke = now
            best = sorted(self.seen, key=lambda pair: -pair[1])[:3]
            typer.echo(f"{text}, best so far: {_scores(values, best)}", err=True)
        elif self.counts:
            typer.echo(f"\r{text}  ", nl=False, err=True)

    def _rung(self, values: Mapping[str, Any]) -> None:
        self._begin(values["left"])
        more = f"rung {values['rung'] + 1}: {values['running']} go on to {values['training']}"
        best = _scores(values, values["leaders"])
        typer.echo(f"  {more}{_left(values['left'])}\n    leaders: {best}", err=True)

    def _leaders(self, values: Mapping[str, Any]) -> None:
        typer.echo(f"  the race has ended, leaders: {_scores(values, values['leaders'])}", err=True)

    def _begin(self, left: float) -> None:
        """A stage or a rung begins, with so many seconds left: trainings of other lengths are not compared."""
        self.spoke = time.monotonic()
        self.ends, self.seen = self.spoke + left, []


def _scores(values: Mapping[str, Any], of: Sequence[tuple[str, float]]) -> str:
    from nasight.data import Units

    units = Units.of(values)
    return "; ".join(f"{name} {units.text(accuracy)}" for name, accuracy in of)


def _left(seconds: float) -> str:
    from nasight.studies import time_text

    return f" ({time_text(max(seconds, 0.0))} left)" if math.isfinite(seconds) else ""
