"""Curves and clouds as SVG that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from nasight.report._svg import COLORS, STYLE, text

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 470.0, 330.0, 62.0, 46.0, 40.0, 14.0
LEGEND = 20.0
# The palette's yellow is too light for a line on white.
INKS = tuple(color for color in COLORS if color != "#f0e442")


@dataclass(frozen=True)
class Series:
    """The points of one line, or of one cloud."""

    name: str
    """What the legend calls it; a name has one color in all panels."""
    x: Sequence[float]
    """Across, in ascending order."""
    y: Sequence[float]
    """Upwards, one for each x."""
    spread: Sequence[float] | None = None
    """Half the height of the band around a line, or of the bar through a point, one for each x."""
    kind: str | None = None
    """How it is drawn, where it is not as the panel says."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes and what is drawn between them."""

    title: str
    """What is written above it."""
    x_label: str
    """What is written below it."""
    y_label: str
    """What is written left of it."""
    series: Sequence[Series]
    """What is drawn; may be empty."""
    log_x: bool = False
    """Whether the axis below is logarithmic."""
    log_y: bool = False
    """Whether the axis on the left is logarithmic."""
    kind: str = "steps"
    """How it is drawn: "steps" (a value holds until the next point), "line" or "points" (a cloud)."""


def panels_svg(panels: Sequence[Panel]) -> str:
    """Panels side by side as SVG, with one legend below; a name has one color in all of them.

    >>> "<polyline" in panels_svg([Panel("Error", "calls", "%", [Series("random", [1, 2, 4], [9, 5, 5])])])
    True
    """
    names = list(dict.fromkeys(series.name for panel in panels for series in panel.series))
    colors = {name: INKS[i % len(INKS)] for i, name in enumerate(names)}
    width, height = WIDTH * len(panels), HEIGHT + LEGEND + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape('; '.join(panel.title for panel in panels))}</title><style>{STYLE}</style>",
        f'<rect class="frame" width="{width:.0f}" height="{height:.0f}"/>',
    ]
    for index, panel in enumerate(panels):
        parts += _panel(panel, colors, index * WIDTH)
    x = LEFT
    for name in names:
        parts.append(f'<rect x="{x:.1f}" y="{HEIGHT:.1f}" width="14" height="4" fill="{colors[name]}"/>')
        parts.append(text(x + 20, HEIGHT + 7, name))
        x += 40 + 7 * len(name)
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, colors: dict[str, str], left: float) -> list[str]:
    xs = [x for series in panel.series for x in series.x]
    ys = [
        y + sign * band
        for series in panel.series
        for y, band in zip(series.y, series.spread or [0.0] * len(series.y), strict=True)
        for sign in (-1, 1)
    ]
    if not xs:
        return [text(left + LEFT, TOP, f"{panel.title}: no points")]
    across, along = _scale(xs, panel.log_x), _scale(ys, panel.log_y)
    x0, x1, y0, y1 = left + LEFT, left + WIDTH - RIGHT, HEIGHT - BOTTOM, TOP

    def at(x: float, y: float) -> tuple[float, float]:
        return x0 + (x1 - x0) * across.share(x), y0 + (y1 - y0) * along.share(y)

    parts = [text(x0, 22, panel.title), f'<path class="axis" d="M{x0:.1f} {y1:.1f} V{y0:.1f} H{x1:.1f}"/>']
    parts += [text(at(tick, along.low)[0], y0 + 16, f"{tick:g}", "middle") for tick in across.ticks]
    parts += [text(x0 - 6, at(across.low, tick)[1] + 4, f"{tick:g}", "end") for tick in along.ticks]
    parts.append(text((x0 + x1) / 2, y0 + 34, panel.x_label, "middle"))
    turn = f"rotate(-90 {left + 14:.1f} {(y0 + y1) / 2:.1f})"
    parts.append(f'<g transform="{turn}">{text(left + 14, (y0 + y1) / 2, panel.y_label, "middle")}</g>')
    return parts + [
        mark for series in panel.series for mark in _marks(series, series.kind or panel.kind, colors[series.name], at)
    ]


def _marks(series: Series, kind: str, color: str, at: Callable[[float, float], tuple[float, float]]) -> list[str]:
    middle = list(zip(series.x, series.y, strict=True))
    if kind == "points":
        ends = [(at(x, y - s), at(x, y + s)) for (x, y), s in zip(middle, series.spread or [], strict=False)]
        bars = [f'<path d="M{x:.1f} {low:.1f} V{high:.1f}" stroke="{color}"/>' for (x, low), (_, high) in ends]
        dots = (at(*point) for point in middle)
        return bars + [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}" fill-opacity=".7"/>' for x, y in dots]
    parts = []
    if series.spread is not None:
        high = [(x, y + s) for (x, y), s in zip(middle, series.spread, strict=True)]
        low = [(x, y - s) for (x, y), s in zip(middle, series.spread, strict=True)]
        outline = [at(*p) for p in _path(high, kind)] + [at(*p) for p in reversed(_path(low, kind))]
        parts.append(f'<polygon points="{_join(outline)}" fill="{color}" fill-opacity=".15"/>')
    line = _join([at(*point) for point in _path(middle, kind)])
    return [*parts, f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2.2"/>']


def _path(points: list[tuple[float, float]], kind: str) -> list[tuple[float, float]]:
    if kind != "steps":
        return points
    stairs = points[:1]
    for x, y in points[1:]:
        stairs += [(x, stairs[-1][1]), (x, y)]
    return stairs


def _join(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


@dataclass(frozen=True)
class Scale:
    """Where a value lies between the ends of an axis, and the round values written on it."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def _scale(values: Sequence[float], log: bool) -> Scale:
    low, high = min(values), max(values)
    if log and low > 0:
        high = high if high > low else 2 * low
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [m * 10.0**p for p in powers for m in (1, 2, 5)]
        return Scale(low, high, True, tuple(t for t in ticks if low <= t <= high))
    pad = 0.04 * (high - low) or 0.5
    low, high = low - pad, high + pad
    rough = (high - low) / 5
    step = next(m * 10.0 ** math.floor(math.log10(rough)) for m in (1, 2, 5, 10)
                if m * 10.0 ** math.floor(math.log10(rough)) >= rough)  # fmt: skip
    first = math.ceil(low / step)
    ticks = [round(i * step, 10) for i in range(first, math.floor(high / step) + 1)]
    return Scale(low, high, False, tuple(ticks))
