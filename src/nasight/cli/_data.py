"""`nasight data`: which data sets are here, and how to get the others."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from nasight.cli._shared import DataFolder, Json, examples

if TYPE_CHECKING:
    from nasight.data import Available

app = typer.Typer(help="Which data sets are here, and how to get the others.", no_args_is_help=False)


@app.callback(invoke_without_command=True, epilog=examples("nasight data", "nasight data get cifar-10"))
def show(context: typer.Context, folder: DataFolder = None, as_json: Json = False) -> None:
    """Which data sets are here, and how to get the others."""
    if context.invoked_subcommand is not None:
        return
    from nasight.data import available

    rows = available(folder)
    if as_json:
        typer.echo(json.dumps({"datasets": [asdict(row) for row in rows]}))
    elif sys.stdout.isatty():
        _table(rows)
    else:
        for row in rows:
            typer.echo(f"{row.name}: {_where(row)}")


@app.command(epilog=examples("nasight data get cifar-10 --folder data"))
def get(
    name: Annotated[str, typer.Argument(help="fashion-mnist, mnist, cifar-10 or cifar-100.")],
    folder: DataFolder = None,
    mirror: Annotated[
        str | None, typer.Option(help="An address that holds the same files under the same names.", metavar="URL")
    ] = None,
    as_json: Json = False,
) -> None:
    """Download a data set from its owner; a broken download continues where it stopped."""
    from nasight.data import get as download

    with _progress(quiet=as_json) as progress:
        place = download(name, folder, mirror=mirror, progress=progress)
    typer.echo(json.dumps({"name": name, "where": str(place)}) if as_json else f"{name} is in {place}")


@app.command(epilog=examples("nasight data cache", "nasight data cache --clear", "nasight data cache --clear 3fa9"))
def cache(
    key: Annotated[str | None, typer.Argument(help="With --clear: only the entry whose key begins like this.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove what is in the cache.")] = False,
    as_json: Json = False,
) -> None:
    """The cache of decoded photos and arrays: what is in it, how large it is; --clear removes it."""
    from nasight.data import cache_entries, cache_folder, clear_cache
    from nasight.errors import RequestError

    if key is not None and not clear:
        raise RequestError(f"the key {key!r} says what to remove: nasight data cache --clear {key}")
    entries = clear_cache(key) if clear else cache_entries()
    total = sum(entry.size for entry in entries)
    if as_json:
        values = {"folder": str(cache_folder()), "cleared": clear, "bytes": total}
        typer.echo(json.dumps({**values, "entries": [asdict(entry) for entry in entries]}))
        return
    for entry in entries:
        what = f"{entry.rows:,} rows of {entry.source}" if entry.whole else "unfinished: the next reading resumes it"
        typer.echo(f"{entry.key}  {entry.size / 1e6:>9,.1f} MB  {what}")
    typer.echo(f"{'removed' if clear else cache_folder()}: {len(entries)} entries, {total / 1e6:,.1f} MB")


def _where(row: Available) -> str:
    size = f" ({row.size / 1e6:.0f} MB)" if row.size else ""
    return f"here, in {row.where}{size}" if row.here else f"not here{size}; get it with: {row.get}"


def _table(rows: list[Available]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("data set", "here", "where, or how to get it", "size")
    for row in rows:
        size = f"{row.size / 1e6:.0f} MB" if row.size else ""
        table.add_row(row.name, "yes" if row.here else "no", row.where if row.here else row.get, size)
    Console().print(table)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None] | None]:
    """A bar on a terminal, a line per file otherwise, both on standard error; nothing when quiet."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bars:
            tasks: dict[str, TaskID] = {}

            def draw(file: str, done: int, total: int | None) -> None:
                if file not in tasks:
                    tasks[file] = bars.add_task(file, total=total)
                bars.update(tasks[file], completed=done, total=total)

            yield draw
    else:
        seen: set[str] = set()

        def line(file: str, done: int, total: int | None) -> None:
            if file not in seen:
                seen.add(file)
                typer.echo(f"getting {file}" + (f" ({total / 1e6:.1f} MB)" if total else ""), err=True)

        yield line
