"""The commands, and what their endings mean: 0 done, 1 failed, 2 the request is wrong, 130 interrupted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from nasight import __version__
from nasight.cli import _cell, _data, _explain, _export, _kernel, _score, _search, _select, _table, _train, _trust
from nasight.errors import RequestError, RunError

app = typer.Typer(
    help="Neural architecture search with shared weights, and the insight to trust what it finds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(epilog=_search.EXAMPLES)(_search.search)
app.command()(_train.train)
app.command(epilog=_explain.EXAMPLES)(_explain.explain)
app.command(epilog=_score.EXAMPLES)(_score.score)
app.command(epilog=_kernel.EXAMPLES)(_kernel.kernel)
app.command(epilog=_select.EXAMPLES)(_select.select)
app.command(epilog=_cell.EXAMPLES)(_cell.cell)
app.command(epilog=_export.EXAMPLES)(_export.export)
app.add_typer(_data.app, name="data")
app.add_typer(_table.app, name="table")
app.add_typer(_trust.app, name="trust")


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"nasight {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; never returns."""
    sys.exit(_status(arguments))


def _status(arguments: Sequence[str] | None) -> int:
    try:
        outcome = app(list(arguments) if arguments is not None else None, standalone_mode=False)
        return int(outcome) if isinstance(outcome, int) else 0
    except RequestError as error:
        return _say(error, 2)
    except (RunError, OSError) as error:
        return _say(error, 1)
    except (KeyboardInterrupt, typer.Abort) as error:
        # The parser turns an interrupt into an Abort; what the search said is in its cause.
        return _say(str(error) or str(error.__cause__ or "") or "interrupted", 130)
    except Exception as error:
        # What the parser raises for a wrong flag formats itself; its class has no public name in every version.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        return _say(f"{message()} (see --help)", 2)


def _say(what: object, status: int) -> int:
    typer.echo(f"nasight: {what}", err=True)
    return status
