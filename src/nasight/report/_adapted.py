"""Accuracies of published cells and their random connections (Cells, Figure 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nasight.report._panels import Panel, Series, panels_svg


def accuracies_svg(rows: Sequence[Mapping[str, Any]]) -> str:
    """A panel for each cell and learning rate: a line for the original, a point for each of its random connections.

    Parameters
    ----------
    rows : with name, lr, index, accuracy and difference (its low and high end, or None); index 0 is the original.
        The bar through a point is the interval of its difference from the original.
    """
    groups: dict[tuple[str, float], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["name"], row["lr"]), []).append(row)
    rates = {lr for _, lr in groups}
    panels = []
    for (name, lr), (original, *others) in groups.items():
        ends = [row["difference"] for row in others]
        spread = None if None in ends else [(end["high"] - end["low"]) / 2 for end in ends]
        series = [
            Series("original", [0, len(others)], [original["accuracy"]] * 2),
            Series("random connections", [r["index"] for r in others], [r["accuracy"] for r in others], spread,
                   kind="points"),
        ]  # fmt: skip
        title = name if len(rates) == 1 else f"{name}, lr {lr:g}"
        label = "random connections, narrow to wide"
        panels.append(Panel(title, label, "test accuracy, %", series, kind="line"))
    return panels_svg(panels)
