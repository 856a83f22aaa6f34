"""Who is told how a search goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasight.search._settings import SearchSettings


class Progress:
    """Told of every step and every epoch; the default says nothing."""

    def begin(self, settings: SearchSettings, steps: int, done: int) -> None:
        """A search of settings.epochs * steps steps begins, `done` of them behind it."""

    def step(self, epoch: int, step: int) -> None:
        """A step was made."""

    def epoch(self, row: Mapping[str, Any]) -> None:
        """An epoch ended with this row of history."""

    def close(self) -> None:
        """The search ended, however it ended; it may not have begun."""


class Together(Progress):
    """Tells several."""

    def __init__(self, *parts: Progress) -> None:
        self.parts = parts

    def begin(self, settings: SearchSettings, steps: int, done: int) -> None:
        for part in self.parts:
            part.begin(settings, steps, done)

    def step(self, epoch: int, step: int) -> None:
        for part in self.parts:
            part.step(epoch, step)

    def epoch(self, row: Mapping[str, Any]) -> None:
        for part in self.parts:
            part.epoch(row)

    def close(self) -> None:
        for part in self.parts:
            part.close()
