"""What several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import typer


def option(help: str, *names: str, metavar: str | None = None) -> Any:
    """An option whose default the help text says itself, or need not say."""
    return typer.Option(*names, help=help, metavar=metavar, show_default=False)


DataFolder = Annotated[
    str | None,
    option("The data folder; else $NASIGHT_DATA, else your cache.", "--data-folder", "--folder", metavar="F"),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output and nothing else.")]


@contextmanager
def counting(noun: str, said: str, *, transient: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left on a terminal, a line `DONE of TOTAL SAID` at every tenth otherwise."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(noun), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=transient) as bars:
            task = bars.add_task(noun, total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)
        return
    tenths = 0

    def line(done: int, total: int) -> None:
        nonlocal tenths
        if total and done * 10 // total > tenths:
            tenths = done * 10 // total
            typer.echo(f"{done} of {total} {said}", err=True)

    yield line


@contextmanager
def counters() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """One bar after the other: given what is counted now, a function of how much of it is done."""
    with ExitStack() as stack:

        def begin(noun: str) -> Callable[[int, int], None]:
            stack.pop_all().close()
            return stack.enter_context(counting(noun, noun, transient=True))

        yield begin
