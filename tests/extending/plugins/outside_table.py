"""A table from outside: the four architectures of a small space, with numbers from a formula."""

from __future__ import annotations

from outside_space import Pooled

from nasight.tables import Table


def load(folder: object = None) -> Table:
    """The table, made when it is asked for."""
    space = Pooled()
    accuracy = [90.0 + 2 * (a["kernel"] == "wide") + (a["pool"] == "mean") for a in space]
    columns = {
        "params_M": [0.01 if a["kernel"] == "wide" else 0.002 for a in space],
        "c10_val12": [value - 5 for value in accuracy],
        "c10_val200": [value - 1 for value in accuracy],
        "c10_test200": accuracy,
        "c10_traintime200_s": [100.0] * len(accuracy),
    }
    return Table(space, columns, name="pooled-table", source="a formula")
