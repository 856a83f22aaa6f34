"""Weight-sharing runs, looked up in a table by what they found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from nasight.errors import RequestError
from nasight.runs import RunFolder
from nasight.tables._table import Table


@dataclass(frozen=True, slots=True)
class FoundCell:
    """The end of one search run."""

    run: str
    label: str
    cell: int
    seconds: float


def look_up(runs: Iterable[str | Path], table: Table) -> tuple[list[FoundCell], dict[str, str]]:
    """What each run found, and the reasons why others are left out (unfinished, of another space, no run)."""
    found: list[FoundCell] = []
    left_out: dict[str, str] = {}
    for run in runs:
        try:
            found.append(_found(RunFolder.open(run, kind="search"), table))
        except RequestError as error:
            left_out[str(run)] = str(error)
    if left_out and not found:
        run, reason = next(iter(left_out.items()))
        raise RequestError(f"none of {len(left_out)} runs can be looked up; {run}: {reason}")
    return found, left_out


def _found(folder: RunFolder, table: Table) -> FoundCell:
    result = folder.result
    if result is None:
        raise RequestError(
            f"the search in {folder.path} is not finished; resume it with --resume {quote(str(folder.path))}"
        )
    try:
        if not table.covers(str(result["space"])):
            raise RequestError(
                f"the search in {folder.path} is of space {result['space']!r}, which table {table.name!r} does not list"
            )
        label = f"{result['method']} ({result['objective']}), {result['data']}"
        return FoundCell(str(folder.path), label, table.index(str(result["architecture"])), float(result["seconds"]))
    except KeyError as error:
        raise RequestError(f"{folder.path}/result.json is damaged: it lacks {error}") from None
