"""What several commands share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from nasight.errors import RequestError
from nasight.options import DEVICE, LEARNING, MACHINE, OUTPUT, SEED, SIZE, WHAT, settings_of


def plain(text: str) -> str:
    """A help text whose square brackets the terminal's markup leaves alone."""
    return text.replace("[", "\\[")


def examples(*lines: str) -> str:
    """The end of a help text: one example per line."""
    return "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *(plain(f"  {line}") for line in lines)])


def option(help: str, *names: str, metavar: str | None = None, group: str | None = None) -> Any:
    """An option whose default the help text says itself, or need not say."""
    return typer.Option(*names, help=plain(help), metavar=metavar, show_default=False, rich_help_panel=group)


def choice(help: str, *names: str, metavar: str | None = None, group: str | None = None) -> Any:
    """An option whose default is shown."""
    return typer.Option(*names, help=plain(help), metavar=metavar, rich_help_panel=group)


def setting(options: type, name: str, *names: str) -> Any:
    """The option of a setting that a function takes by this name: the same words, in the same group."""
    _, about = settings_of(options)[name]
    return option(about.help, *names, metavar=about.metavar, group=about.group)


DataFolder = Annotated[
    str | None,
    option(
        "Folder of the data sets (default: $NASIGHT_DATA, else your cache).",
        "--data-folder",
        "--folder",
        metavar="FOLDER",
        group=MACHINE,
    ),
]
Cluster = Annotated[
    str | None,
    option(
        "Spread it over a Dask cluster: tcp://HOST:PORT, FILE.json of a scheduler, or local:N to start N workers here.",
        metavar="ADDRESS",
        group=MACHINE,
    ),
]
Device = Annotated[str, option(DEVICE, metavar="NAME", group=MACHINE)]
Seed = Annotated[int, choice(SEED, metavar="N", group=MACHINE)]
Workers = Annotated[int | None, option("Processes (default: as many as cores).", metavar="N", group=MACHINE)]
Overwrite = Annotated[bool, choice("Replace a run that is in --out.", "--overwrite", group=OUTPUT)]
Json = Annotated[bool, choice("One JSON object on standard output and nothing else.", "--json", group=OUTPUT)]
DATA = "A data set by name, an .npz file, a table (.csv, .tsv, .jsonl, .parquet), or photos in a folder or .csv."
Resolution = Annotated[
    int | None,
    option(
        "Bring images to this many pixels per side (default: as they are; photos of several sizes: at most 64).",
        metavar="N",
        group=SIZE,
    ),
]
Fit = Annotated[
    str | None,
    option(
        "How photos of other proportions are brought to size: crop (default), inner (crop, tested on the middle 7/8), "
        "pad or stretch.",
        group=SIZE,
    ),
]
Strict = Annotated[bool, choice("Refuse photos that cannot be read (else a few are left out).", "--strict", group=WHAT)]
NoAugment = Annotated[bool, choice("No random changes of images: --augment none.", "--no-augment", group=LEARNING)]


def read_data(
    data: str | None,
    folder: str | None,
    *,
    resolution: int | None = None,
    fit: str | None = None,
    strict: bool = False,
    pixels: int | None = None,
    augment: bool | str | None = None,
) -> Any:
    """The data set, where the command line says how it is read; else its name, for what loads it later.

    Photos then have `pixels` per side and the random changes of published searches, where nothing else is said; see
    `nasight.data.load_at`.
    """
    if data is None or (resolution is None and fit is None and not strict):
        return data
    from nasight.data import load_at

    return load_at(pixels, data, folder=folder, resolution=resolution, fit=fit, strict=strict, augment=augment)


def photo_pixels(space: str | None, preset: str | None, layers: int | None = None) -> int | None:
    """Pixels per side of the photos for which this preset of the space was published; None where there are none."""
    if space is None or preset is None:
        return None
    from nasight.spaces import load

    return load(space, **given(layers=layers)).photo_pixels.get(preset)


def rows_asked(text: str | None) -> int | str | None:
    """A number of rows, or "all"."""
    if text is None or text == "all":
        return text
    if not text.isdecimal():
        raise RequestError(f"--examples must be a number of rows, or all, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """The seconds of a time as `find --budget` reads it; here a number alone is seconds, and min is a minute too.

    >>> seconds("1h30m"), seconds("200min"), seconds("90")
    (5400.0, 12000.0, 90.0)
    """
    from nasight.studies import read_budget

    words = text.strip().lower()
    alone = re.fullmatch(r"\d+(\.\d*)?", words, re.ASCII)
    found = read_budget(float(words) if alone else re.sub("min(?![a-z])", "m", words))
    if found.more or found.seconds is None:
        raise RequestError(f"a time that is added, {text!r}, is for nasight find --resume; leave out the +")
    return found.seconds


CELLS = "Cells (nasbench201, nasbench1shot1: in each of three stages)."
Channels = Annotated[int | None, option("Channels of the first cell.", metavar="N", group=SIZE)]
Cells = Annotated[int | None, option(CELLS, metavar="N", group=SIZE)]
Width = Annotated[int | None, option("Width of the layers (mlp).", metavar="N", group=SIZE)]
Layers = Annotated[int | None, option("Layers (mlp).", metavar="N", group=SIZE)]


def given(**values: Any) -> dict[str, Any]:
    """Those that were given."""
    return {name: value for name, value in values.items() if value is not None}


def only_with_resume(context: typer.Context, allowed: Collection[str], why: str) -> None:
    """Refuse words beside --resume that what is resumed cannot obey."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in allowed and source is not None and source.name == "COMMANDLINE":
            raise RequestError(f"--{name.replace('_', '-')} cannot change with --resume: {why}")


@contextmanager
def interruptible() -> Iterator[None]:
    """What interrupted work has to say is said here: the parser keeps only the exit code of an interrupt."""
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo(f"nasight: {stop or 'interrupted'}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def resumable(folder: str | Path | None, command: str | None = None) -> Iterator[None]:
    """Say how interrupted work that is kept in a folder is resumed: with a command, or with the same again."""
    try:
        yield
    except KeyboardInterrupt:
        how = f"resume with: {command}" if command else f"the same command resumes what is in {folder}"
        if folder is not None:
            typer.echo(f"stopped; {how}", err=True)
        raise


@contextmanager
def counting(noun: str, ending: str, *, transient: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left on a terminal, a line `DONE of TOTAL ENDING` at every tenth otherwise."""
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
            typer.echo(f"{done} of {total} {ending}", err=True)

    yield line


@contextmanager
def counters() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """One bar after the other: given what is counted now, a function of how much of it is done."""
    with ExitStack() as stack:

        def begin(noun: str) -> Callable[[int, int], None]:
            stack.pop_all().close()
            return stack.enter_context(counting(noun, noun, transient=True))

        yield begin


def table(rows: Sequence[tuple[str, ...]], *, indent: str = "", right: bool = False) -> list[str]:
    """Rows as lines whose columns stand under each other; `right`: all but the first end under each other.

    >>> table([("a", "value"), ("b", "1")], indent="  ", right=True)
    ['  a  value', '  b      1']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: tuple[str, ...]) -> str:
        cells = enumerate(zip(row, widths, strict=True))
        padded = (cell.rjust(width) if right and i else cell.ljust(width) for i, (cell, width) in cells)
        return indent + "  ".join(padded).rstrip()

    return [line(row) for row in rows]


def count_text(number: int) -> str:
    """A count of multiply-adds with three digits.

    >>> count_text(574_123_456), count_text(9_500)
    ('574 M', '9.5 k')
    """
    for unit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{letter}"
    return str(number)


def size_text(of: Mapping[str, Any]) -> str:
    """Parameters and, where they are known, multiply-adds.

    >>> size_text({"parameters": 559386, "multiply_adds": 78561920}), size_text({"parameters": 1200})
    ('559,386 parameters, 78.6 M multiply-adds', '1,200 parameters')
    """
    products = of.get("multiply_adds")
    return f"{of['parameters']:,} parameters" + ("" if products is None else f", {count_text(products)} multiply-adds")


def multiplies_line(number: int | None, of: str = "example") -> list[str]:
    """A line of a summary; none where the multiply-adds are not known."""
    return [] if number is None else [f"  multiplies   {count_text(number)} (multiply-adds per {of})"]


def epochs_text(number: int) -> str:
    """1 -> '1 epoch', 2 -> '2 epochs'."""
    return f"{number} epoch{'' if number == 1 else 's'}"
