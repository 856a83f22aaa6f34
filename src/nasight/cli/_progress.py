"""What a search says while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from nasight.search import Progress
from nasight.search._settings import SearchSettings


def epoch_line(row: Mapping[str, Any], epochs: int) -> str:
    discrete = "no network" if row["discrete_accuracy"] is None else f"{row['discrete_accuracy']:.1f} %"
    return (
        f"epoch {row['epoch'] + 1}/{epochs}: train {row['train_accuracy']:.1f} %, valid {row['valid_accuracy']:.1f} %, "
        f"discretised {discrete}, entropy {row['entropy']:.3f}, {row['architecture']}"
    )


class Lines(Progress):
    """One plain line an epoch, on standard error."""

    def begin(self, settings: SearchSettings, steps: int, done: int) -> None:
        self.epochs = settings.epochs
        if done:
            typer.echo(f"resuming after {done} of {settings.epochs * steps} steps", err=True)

    def epoch(self, row: Mapping[str, Any]) -> None:
        typer.echo(epoch_line(row, self.epochs), err=True)


class Bar(Progress):
    """A bar with the time left, the last epoch's line above it."""

    def begin(self, settings: SearchSettings, steps: int, done: int) -> None:
        self.epochs = settings.epochs
        self.bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bars.add_task(settings.method, total=settings.epochs * steps, completed=done)
        self.last = settings.epochs * steps
        self.bars.start()

    def step(self, epoch: int, step: int) -> None:
        self.bars.advance(self.task)

    def epoch(self, row: Mapping[str, Any]) -> None:
        self.bars.console.print(epoch_line(row, self.epochs), highlight=False)
        if row["epoch"] + 1 == self.epochs:
            self.bars.stop()
