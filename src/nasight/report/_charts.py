"""Parts of Plotly figures as plain values; colors of text and lines are the page's, set where it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def line(name: str, x: Sequence[float], y: Sequence[float | None], color: str, **more: Any) -> dict[str, Any]:
    """A line with dots; `more` are Plotly's settings of a trace."""
    style = {"color": color, "width": 2.2, **more.pop("line", {})}
    return {"type": "scatter", "mode": "lines+markers", "name": name, "x": list(x), "y": list(y), "line": style,
            "marker": {"size": 5}, **more}  # fmt: skip


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a title; `more` are Plotly's settings of an axis."""
    return {"title": {"text": title}, "automargin": True, **more}
