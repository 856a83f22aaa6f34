"""What a search says while it runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from nasight.searching import Progress, SearchSettings

# An operation's kernel is square: its side says it.
SHORT = (
    ("nor_conv", "conv"),
    ("sep_conv", "sep"),
    ("dil_conv", "dil"),
    ("max_pool", "max"),
    ("avg_pool", "avg"),
    ("skip_connect", "skip"),
)


def epoch_line(row: Mapping[str, Any], epochs: int) -> str:
    return f"epoch {row['epoch'] + 1}/{epochs}: train {_score(row, 'train')}, {figures(row)}, {row['architecture']}"


def _score(row: Mapping[str, Any], part: str) -> str:
    """The score of a part, with its unit."""
    from nasight.data import Units

    return Units(row.get("metric", "accuracy")).text(row[f"{part}_accuracy"], digits=1)


def figures(row: Mapping[str, Any]) -> str:
    discrete = "no network" if row["discrete_accuracy"] is None else _score(row, "discrete")
    return f"valid {_score(row, 'valid')}, discretized {discrete}, entropy {row['entropy']:.3f}"


def compact(architecture: str) -> str:
    """A cell in as few letters as tell it: `conv3 · skip conv1 · avg3 conv3 skip` are the six edges, node by node."""
    text = architecture
    for long, short in SHORT:
        text = text.replace(long, short)
    text = re.sub(r"_?(\d)x\1\b", r"\1", text)
    if re.fullmatch(r"\|.*~\d\|", text):
        return re.sub(r"~\d", "", text).strip("|").replace("|+|", " · ").replace("|", " ")
    cells = re.findall(r"(normal|reduce)=\[(.*?)\]", text)
    if text.startswith("Genotype(") and cells:
        edges = ((kind, re.findall(r"'(\w+)', (\d+)", entries)) for kind, entries in cells)
        return " · ".join(f"{kind} " + " ".join(f"{op}<{source}" for op, source in each) for kind, each in edges)
    return text


class Lines(Progress):
    """One plain line per epoch, on standard error; of other pieces, one at every tenth of them."""

    tenths = 0

    def begin(self, settings: SearchSettings, steps: int, done: int) -> None:
        self.epochs = settings.epochs
        if done:
            typer.echo(f"resuming after {done} of {settings.epochs * steps} steps", err=True)

    def epoch(self, row: Mapping[str, Any]) -> None:
        typer.echo(epoch_line(row, self.epochs), err=True)

    def count(self, noun: str, done: int, total: int) -> None:
        if total and done * 10 // total > self.tenths:
            self.tenths = done * 10 // total
            typer.echo(f"{done} of {total} {noun}", err=True)

    def note(self, text: str) -> None:
        typer.echo(text, err=True)


class _BarAndCell(Bars):
    """The bar, and under it the lines of the last epoch, cut at the terminal's width."""

    lines: tuple[str, ...] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for line in self.lines:
            yield Text(line, no_wrap=True, overflow="ellipsis")


class Bar(Progress):
    """A bar with the time left; under it, in place, the last epoch's figures and its cell."""

    def __init__(self, console: Console | None = None) -> None:
        self.bars = _BarAndCell(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
            transient=True,
        )
        self.last_line = ""
        self.task: TaskID | None = None

    def begin(self, settings: SearchSettings, steps: int, done: int) -> None:
        self.epochs = settings.epochs
        self.task = self.bars.add_task(settings.method, total=settings.epochs * steps, completed=done)
        self.bars.start()

    def step(self, epoch: int, step: int) -> None:
        if self.task is not None:
            self.bars.advance(self.task)

    def count(self, noun: str, done: int, total: int) -> None:
        if self.task is None:
            self.task = self.bars.add_task(noun, total=total)
            self.bars.start()
        self.bars.update(self.task, completed=done, total=total)

    def note(self, text: str) -> None:
        self.bars.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def epoch(self, row: Mapping[str, Any]) -> None:
        self.last_line = epoch_line(row, self.epochs)
        self.bars.lines = (
            f"epoch {row['epoch'] + 1}/{self.epochs}: {figures(row)}",
            f"cell {compact(row['architecture'])}",
        )
        if row["epoch"] + 1 == self.epochs:
            self.close()

    def close(self) -> None:
        """Take the bar away and leave the last epoch's line; the cursor comes back after an interrupt too."""
        self.bars.stop()
        if self.last_line:
            self.bars.console.print(self.last_line, highlight=False, markup=False, soft_wrap=True)
            self.last_line = ""
