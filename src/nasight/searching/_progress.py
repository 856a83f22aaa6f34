"""Who is told how a search goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasight.searching._settings import SearchSettings


class Progress:
    """Told of every step and every epoch; the default says nothing."""

    def begin(self, settings: SearchSettings, steps: int, done: int) -> None:
        """A search of settings.epochs * steps steps begins, `done` of them behind it."""

    def step(self, epoch: int, step: int) -> None:
        """A step was made."""

    def epoch(self, row: Mapping[str, Any]) -> None:
        """An epoch ended with this row of history."""

    def count(self, noun: str, done: int, total: int) -> None:
        """Of the pieces that a search without epochs consists of (`noun` names them), this many are done."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""

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

    def count(self, noun: str, done: int, total: int) -> None:
        for part in self.parts:
            part.count(noun, done, total)

    def note(self, text: str) -> None:
        for part in self.parts:
            part.note(text)

    def close(self) -> None:
        for part in self.parts:
            part.close()
