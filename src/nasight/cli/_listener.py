"""What reading data has to say, on standard error: sentences, and a bar on a terminal."""

from __future__ import annotations

import sys
from typing import Any

import typer


class Spoken:
    """Hears of the reading of data; see `nasight.data.listening`."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._what = ""
        self._said: set[str] = set()

    def note(self, text: str) -> None:
        """A line, once."""
        self._close()
        if text not in self._said:
            self._said.add(text)
            typer.echo(text, err=True)

    def progress(self, what: str, done: int, total: int) -> None:
        """A bar with the time left on a terminal, a line at the beginning otherwise."""
        if not sys.stderr.isatty():
            if what != self._what and done < total:
                typer.echo(f"{what} ...", err=True)
            self._what = what if done < total else ""
            return
        if self._bar is None or what != self._what:
            self._close()
            self._open(what, total)
        self._bar.update(self._task, completed=done)
        if done >= total:
            self._close()

    def _open(self, what: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._what, self._bar = what, Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(what, total=total)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar, self._what = None, ""
