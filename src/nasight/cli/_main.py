"""The commands, and what their endings mean: 0 done, 1 failed, 2 the request is wrong, 130 interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from nasight.cli import (
    _cell,
    _data,
    _explain,
    _export,
    _find,
    _kernel,
    _predict,
    _reproduce,
    _score,
    _search,
    _select,
    _table,
    _train,
    _trust,
)
from nasight.cli._listener import Spoken
from nasight.errors import RequestError, RunError
from nasight.notes import listening
from nasight.version import VERSION

CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    help="Neural architecture search with shared weights, and the insight to trust what it finds.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings=CONTEXT,
    invoke_without_command=True,
)
app.command(epilog=_find.EXAMPLES, context_settings=CONTEXT)(_find.find)
app.command(epilog=_search.EXAMPLES, context_settings=CONTEXT)(_search.search)
app.command(epilog=_train.EXAMPLES, context_settings=CONTEXT)(_train.train)
app.command(epilog=_predict.EXAMPLES, context_settings=CONTEXT)(_predict.predict)
app.command(epilog=_explain.EXAMPLES, context_settings=CONTEXT)(_explain.explain)
app.command(epilog=_score.EXAMPLES, context_settings=CONTEXT)(_score.score)
app.command(epilog=_kernel.EXAMPLES, context_settings=CONTEXT)(_kernel.kernel)
app.command(epilog=_select.EXAMPLES, context_settings=CONTEXT)(_select.select)
app.command(epilog=_cell.EXAMPLES, context_settings=CONTEXT)(_cell.cell)
app.command(epilog=_reproduce.EXAMPLES, context_settings=CONTEXT)(_reproduce.reproduce)
app.command(epilog=_export.EXAMPLES, context_settings=CONTEXT)(_export.export)
for _name, _group in (("data", _data.app), ("table", _table.app), ("trust", _trust.app)):
    app.add_typer(_group, name=_name, context_settings=CONTEXT)


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Neural architecture search with shared weights, and the insight to trust what it finds."""
    if version:
        typer.echo(f"nasight {VERSION}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; never returns."""
    with _one_voice():
        status = _status(arguments)
    if os.environ.get("WORLD_SIZE", "1") != "1":
        from nasight.compute import end_rank

        end_rank(status)
    sys.exit(status)


RANKED = ("search", "train", "find")
"""Commands that several ranks carry out together."""


@contextmanager
def _one_voice() -> Iterator[None]:
    """Of the ranks that torchrun started, the first one speaks; what another says is lost, but for its own errors."""
    if not _follows():
        yield
        return
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        yield


def _follows() -> bool:
    """Whether this process is a rank other than the first."""
    return os.environ.get("WORLD_SIZE", "1") != "1" and os.environ.get("RANK", "0") != "0"


def _check_ranks(arguments: Sequence[str]) -> None:
    if os.environ.get("WORLD_SIZE", "1") == "1" or not arguments or arguments[0].startswith("-"):
        return
    if arguments[0] not in RANKED:
        raise RequestError(
            f"torchrun is for {', '.join(RANKED)}: nasight {arguments[0]} has no ranks (see --workers and --cluster)"
        )


def _status(arguments: Sequence[str] | None) -> int:
    try:
        _check_ranks(sys.argv[1:] if arguments is None else arguments)
        with listening(Spoken()):
            outcome = app(list(arguments) if arguments is not None else None, standalone_mode=False)
        return int(outcome) if isinstance(outcome, int) else 0
    except RequestError as error:
        return _say(error, 2)
    except (RunError, OSError) as error:
        return _say(error, 1)
    except MemoryError as error:
        return _say(f"memory ran out: {error or 'nothing is left'}; use less data or smaller sizes", 1)
    except (KeyboardInterrupt, typer.Abort) as error:
        # The parser turns an interrupt into an Abort; what the search said is in its cause.
        return _say(str(error) or str(error.__cause__ or "") or "interrupted", 130)
    except Exception as error:
        # What the parser raises for a wrong flag formats itself; its class has no public name in every version.
        message = getattr(error, "format_message", None)
        if message is None and "can't allocate memory" in str(error):
            # torch has no class of its own for it; the text says how much was asked for.
            asked = str(error).partition("can't allocate memory: ")[2].partition(". Error")[0]
            return _say(f"memory ran out: {asked or 'torch could not have more'}; use less data or smaller sizes", 1)
        if message is None:
            raise
        return _say(f"{message()} (see --help)", 2)


def _say(what: object, status: int) -> int:
    # What all ranks know the first one says. Before the ranks are joined, all of them fail alike.
    if _follows() and isinstance(what, Exception) and not getattr(what, "everywhere", False) and _joined():
        print(f"nasight: rank {os.environ['RANK']}: {what}", file=sys.__stderr__)
        return status
    typer.echo(f"nasight: {what}", err=True)
    return status


def _joined() -> bool:
    from torch import distributed

    return distributed.is_available() and distributed.is_initialized()
