"""How far what a search proposes is from the best of its space, epoch by epoch (GAEA, Figure 2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nasight.errors import RequestError
from nasight.runs import RunFolder
from nasight.tables._module_table import ModuleTable
from nasight.tables._table import Table


@dataclass(frozen=True, slots=True)
class RegretCurve:
    """Runs of one kind: at each epoch the mean and the spread (standard deviation) of their regrets, in points."""

    label: str
    space: str
    runs: int
    epochs: list[int]
    mean: list[float]
    spread: list[float]
    missing: int
    """Proposals, of all epochs and runs, that are not in the table and are left out."""


@dataclass(frozen=True)
class Regret:
    """Test accuracy of the best architecture of a space less that of the architecture proposed."""

    table: str
    dataset: str
    optimum: dict[str, float]
    """Space -> the best test accuracy that the table has of it, %."""
    curves: list[RegretCurve]
    left_out: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def regret(runs: Iterable[str | Path], table: Table, *, dataset: str = "c10") -> Regret:
    """Look up what searches proposed at the end of every epoch.

    Runs of one method, objective, data set and space make one curve. Which epochs count is up to the shortest of them.

    Parameters
    ----------
    runs : folders of `nasight search`; those that cannot be looked up are left out, with the reason.
    table : `load("nasbench101")` for NAS-Bench-1Shot1's spaces, `load()` for NAS-Bench-201.
    dataset : whose test accuracies count: c10, c100 or in16.
    """
    column = table.column(f"{dataset}_test{table.full}")
    proposed: dict[tuple[str, str], list[list[float]]] = {}
    left_out: dict[str, str] = {}
    for run in runs:
        try:
            key, values = _proposed(RunFolder.open(run, kind="search"), table, column)
            proposed.setdefault(key, []).append(values)
        except RequestError as error:
            left_out[str(run)] = str(error)
    if not proposed:
        why = next(iter(left_out.values()), "no runs were given")
        raise RequestError(f"no run can be looked up in table {table.name!r}: {why}")
    optimum = {space: _optimum(table, space, dataset) for space in dict.fromkeys(space for space, _ in proposed)}
    curves = [_curve(label, space, values, optimum[space]) for (space, label), values in proposed.items()]
    return Regret(table.name, dataset, optimum, curves, left_out)


def _proposed(folder: RunFolder, table: Table, column: np.ndarray) -> tuple[tuple[str, str], list[float]]:
    """(space, label) of a run, and the test accuracy of its proposal at each epoch, NaN where the table has none."""
    settings = folder.about.get("settings")
    if not isinstance(settings, dict) or not folder.history:
        raise RequestError(f"the search in {folder.path} has no epochs to look up")
    space = str(settings.get("space"))
    if not table.covers(space):
        raise RequestError(
            f"the search in {folder.path} is of space {space!r}, which table {table.name!r} does not list"
        )
    values = []
    for row in folder.history:
        try:
            values.append(float(column[table.index(str(row["architecture"]))]))
        except (RequestError, KeyError):
            values.append(float("nan"))
    return (space, f"{settings.get('method')} ({settings.get('objective')})"), values


def _optimum(table: Table, space: str, dataset: str) -> float:
    return table.optimum_of(space, dataset) if isinstance(table, ModuleTable) else table.optimum(dataset)


def _curve(label: str, space: str, values: list[list[float]], best: float) -> RegretCurve:
    length = min(map(len, values))
    regrets = best - np.array([row[:length] for row in values])  # (runs, epochs)
    known = ~np.isnan(regrets)
    some = np.flatnonzero(known.any(0))
    mean = [float(regrets[known[:, e], e].mean()) for e in some]
    spread = [float(regrets[known[:, e], e].std(ddof=1)) if known[:, e].sum() > 1 else 0.0 for e in some]
    return RegretCurve(label, space, len(values), some.tolist(), mean, spread, int((~known).sum()))
