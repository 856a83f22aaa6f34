"""Searches on a cluster on paper, as a table for a terminal and as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasight.report._panels import Panel, Series, panels_svg


def simulation_rows(simulation: Mapping[str, Any]) -> list[list[str]]:
    """A row per method and number of workers, the heading first; `simulation` is `Simulation.to_dict()`."""
    regrets = list(simulation["standings"][0]["seconds"])
    heads = [f"s to {regret} below the best" for regret in regrets]
    rows = [["method", "workers", *heads, "test at the end, %", "trainings", "lost", "workers busy"]]
    for s in simulation["standings"]:
        mean, spread = s["test"]
        times = [_time(s["seconds"][r], s["reached"][r], s["trials"]) for r in regrets]
        counts = [f"{s['trainings']:,.0f}", f"{s['lost']:.1f}", f"{s['used']:.0%}"]
        rows.append([s["method"], f"{s['workers']:,}", *times, f"{mean:.2f} ± {spread:.2f}", *counts])
    return rows


def _time(seconds: float | None, reached: int, trials: int) -> str:
    """Median seconds, and how many trials got there where not all did."""
    text = "-" if seconds is None else f"{seconds:,.0f}"
    return text if reached == trials else f"{text} ({reached} of {trials})"


def simulation_text(simulation: Mapping[str, Any]) -> str:
    """The table as aligned lines."""
    rows, about = simulation_rows(simulation), simulation["settings"]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    head = (
        f"simulated cluster on {about['table']}, {about['dataset']}, {about['trials']} trials of "
        f"{about['budget']:,.0f} s; medians"
    )
    return "\n".join([head, "", *lines])


def simulation_svg(simulation: Mapping[str, Any]) -> str:
    """Seconds until a good cell is known, against the number of workers: a panel per regret, a line per method."""
    standings = simulation["standings"]
    panels = []
    for regret in standings[0]["seconds"]:
        series = []
        for name in dict.fromkeys(s["method"] for s in standings):
            mine = [s for s in standings if s["method"] == name and s["seconds"][regret] is not None]
            mine.sort(key=lambda s: s["workers"])
            if mine:
                series.append(Series(name, [s["workers"] for s in mine], [s["seconds"][regret] for s in mine]))
        panels.append(
            Panel(
                f"within {regret} points of the best", "workers", "median seconds", series,
                log_x=True, log_y=True, kind="line",
            )
        )  # fmt: skip
    return panels_svg(panels)
