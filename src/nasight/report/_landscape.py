"""Pictures of a landscape: contour lines and a heat map as SVG that needs nothing else, and a surface to turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from nasight.anatomy import Landscape
from nasight.errors import RequestError
from nasight.report._svg import STYLE, text

Values = np.ndarray[Any, np.dtype[np.float64]]
SIDE, LEFT, TOP, BAR, RIGHT, BOTTOM = 400.0, 62.0, 40.0, 16.0, 74.0, 48.0
# From dark to light with even steps of lightness: read alike in print and with any kind of color vision.
RAMP = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
LEVELS, SHADES = 14, 48
SPAN = 300.0
"""Levels reach over at most this ratio, below the value that all but the highest twentieth stay under."""


def contour_svg(found: Landscape, title: str = "Loss around the trained network") -> str:
    """Contour lines of the loss as SVG, each level a constant factor above the one before; lighter is higher.

    `title` is written above them.
    Where the loss is beyond the highest level (far from the network it often explodes) the picture is blank.
    """
    levels = _levels(found.losses)
    parts = []
    for i, level in enumerate(levels):
        color = _color(i / max(1, len(levels) - 1))
        path = "".join(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" for (x0, y0), (x1, y1) in _segments(found.losses, level))
        parts.append(
            f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.6" stroke-linecap="round">'
            f"<title>loss {level:.3g}</title></path>"
        )
    marks = [(level, (i + 0.5) / len(levels)) for i, level in enumerate(levels) if i % 2 == 0 or len(levels) < 8]
    bar = [(i / len(levels), (i + 1) / len(levels), _color(i / max(1, len(levels) - 1))) for i in range(len(levels))]
    return _framed(found, title, "loss", parts, bar, marks)


def variance_svg(found: Landscape, title: str = "Gradient deviation around the trained network") -> str:
    """The root of the gradient variance as an SVG heat map, as the paper draws it; lighter is larger.

    White is infinite. `title` is written above it; a landscape without variances is refused.
    """
    return heat_map_svg(found, np.sqrt(_variances(found)), title, "root of the gradient variance")


def heat_map_svg(found: Landscape, values: Values, title: str, label: str) -> str:
    """One value at each point of the grid as an SVG heat map, in shades over a logarithmic scale.

    Parameters
    ----------
    found : the landscape whose grid it is.
    values : (points, points), as the losses of the landscape; what is above the top of the scale has its color.
    title : what is written above it.
    label : what the values are.
    """
    levels = _levels(values)
    low, high = levels[0], levels[-1]
    wide = math.log(high / low) if high > low else 1.0
    step, parts = SIDE / len(values), []
    for i, row in enumerate(values):
        shades = [_shade(value, low, wide) for value in row]
        start = 0
        for j in range(1, len(shades) + 1):
            if j == len(shades) or shades[j] != shades[start]:  # one rectangle for a run of one shade
                if shades[start] is not None:
                    x, y = LEFT + start * step, TOP + (len(values) - 1 - i) * step
                    fill = _color((shades[start] or 0) / (SHADES - 1))
                    width = (j - start) * step
                    parts.append(
                        f'<rect x="{x:.2f}" y="{y:.2f}" width="{width + 0.3:.2f}" height="{step + 0.3:.2f}" '
                        f'fill="{fill}"/>'
                    )
                start = j
    marks = [(low * math.exp(wide * share), share) for share in (0, 0.25, 0.5, 0.75, 1)]
    bar = [(i / SHADES, (i + 1) / SHADES, _color(i / (SHADES - 1))) for i in range(SHADES)]
    cells = ['<g shape-rendering="crispEdges">', *parts, "</g>"]
    return _framed(found, title, label, cells, bar, marks, inset=step / 2)


def surface(found: Landscape, of: str = "losses") -> dict[str, Any]:
    """Plotly's figure of a surface, as plain values; heights above the top level are cut off there.

    `of` is "losses" or "variances", of which the root is drawn.
    """
    if of not in ("losses", "variances"):
        raise RequestError(f"a surface is of losses or variances, got {of!r}")
    values = found.losses if of == "losses" else np.sqrt(_variances(found))
    name = "loss" if of == "losses" else "root of the gradient variance"
    top = _levels(values)[-1]
    heights = [[min(float(v), top) for v in row] for row in values]
    grid = found.grid.tolist()
    axes = {"xaxis": {"title": {"text": "first direction"}}, "yaxis": {"title": {"text": "second direction"}}}
    ramp = [[i / (len(RAMP) - 1), f"rgb{color}"] for i, color in enumerate(RAMP)]
    return {
        "data": [{"type": "surface", "x": grid, "y": grid, "z": heights, "colorscale": ramp, "name": name}],
        "layout": {"title": {"text": name}, "scene": {**axes, "zaxis": {"title": {"text": name}}}},
    }


def landscape_pictures(found: Landscape) -> dict[str, str]:
    """The pictures of a landscape as texts, by the names of their files.

    contour.svg and surface.html; with variances variance.svg and variance_surface.html too.
    """
    texts = {"contour.svg": contour_svg(found), "surface.html": _html(surface(found))}
    if found.variances is not None:
        texts["variance.svg"] = variance_svg(found)
        texts["variance_surface.html"] = _html(surface(found, "variances"))
    return texts


def _html(figure: dict[str, Any]) -> str:
    from plotly.io import to_html

    page: str = to_html(figure, include_plotlyjs=True, full_html=True, validate=False)
    return page


def _variances(found: Landscape) -> Values:
    if found.variances is None:
        raise RequestError("this landscape was computed without gradient variances; compute it with variance=True")
    return found.variances


def _levels(values: Values) -> list[float]:
    """Levels a constant factor apart, up to what nineteen of twenty finite values stay under."""
    finite = values[np.isfinite(values) & (values > 0)]
    if not finite.size:
        raise RequestError("a landscape without one finite value above 0 cannot be drawn")
    high = float(np.quantile(finite, 0.95))
    low = max(float(finite.min()), high / SPAN)
    if high <= low:
        return [low]
    # The lowest level lies a little above the lowest point, where it is a line and not a dot.
    return [low * (high / low) ** ((i + 0.5) / (LEVELS - 0.5)) for i in range(LEVELS)]


def _shade(value: float, low: float, wide: float) -> int | None:
    if not math.isfinite(value):
        return None
    share = math.log(max(value, low) / low) / wide
    return min(SHADES - 1, int(share * SHADES))


def _segments(values: Values, level: float) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Marching squares: the pieces of one contour line, in the picture's coordinates."""
    step, rows = SIDE / (len(values) - 1), values.tolist()
    found = []
    for i in range(len(rows) - 1):
        for j in range(len(rows) - 1):
            corners = (rows[i][j], rows[i][j + 1], rows[i + 1][j + 1], rows[i + 1][j])  # around the square
            if not all(map(math.isfinite, corners)) or min(corners) >= level or max(corners) < level:
                continue
            places = ((j, i), (j + 1, i), (j + 1, i + 1), (j, i + 1))
            crossings = [
                _between(places[k], places[(k + 1) % 4], corners[k], corners[(k + 1) % 4], level)
                for k in range(4)
                if (corners[k] >= level) != (corners[(k + 1) % 4] >= level)
            ]
            # A saddle has four crossings: as listed they cut off corners 1 and 3, turned they cut off 0 and 2.
            if len(crossings) == 4 and (sum(corners) / 4 >= level) != (corners[0] >= level):
                crossings = [crossings[0], crossings[3], crossings[1], crossings[2]]
            points = [(LEFT + x * step, TOP + SIDE - y * step) for x, y in crossings]
            found += list(zip(points[::2], points[1::2], strict=True))
    return found


def _between(a: tuple[int, int], b: tuple[int, int], at_a: float, at_b: float, level: float) -> tuple[float, float]:
    share = (level - at_a) / (at_b - at_a)
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def _framed(
    found: Landscape,
    title: str,
    label: str,
    parts: Sequence[str],
    bar: Sequence[tuple[float, float, str]],
    marks: Sequence[tuple[float, float]],
    inset: float = 0.0,
) -> str:
    """Axes, the network's own place in the middle, and the scale of the colors on the right.

    The ends of the grid are the edges of the frame, or `inset` within them.
    """
    width, height = LEFT + SIDE + 20 + BAR + RIGHT, TOP + SIDE + BOTTOM
    x0, x1, y0, y1 = LEFT, LEFT + SIDE, TOP + SIDE, TOP
    middle, center = LEFT + SIDE / 2, TOP + SIDE / 2
    shown = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="frame" width="{width:.0f}" height="{height:.0f}"/>',
        text(LEFT, 24, title),
        *parts,
        f'<path class="axis" d="M{x0} {y1}H{x1}V{y0}H{x0}Z"/>',
        f'<path d="M{middle - 6} {center}h12M{middle} {center - 6}v12" stroke="#d55e00" stroke-width="2"/>',
        text(middle, y0 + 36, "first direction", "middle"),
        f'<g transform="rotate(-90 16 {center})">{text(16, center, "second direction", "middle")}</g>',
    ]
    extent = float(found.grid[-1])
    for share in (0, 0.25, 0.5, 0.75, 1):
        tick = f"{extent * (2 * share - 1):g}"
        along = inset + share * (SIDE - 2 * inset)
        shown += [text(x0 + along, y0 + 17, tick, "middle"), text(x0 - 7, y0 - along + 4, tick, "end")]
    left = x1 + 20
    for low, high, color in bar:
        top = y0 - high * SIDE
        shown.append(
            f'<rect x="{left}" y="{top:.2f}" width="{BAR}" height="{(high - low) * SIDE + 0.3:.2f}" fill="{color}"/>'
        )
    shown += [text(left + BAR + 6, y0 - share * SIDE + 4, f"{value:.3g}") for value, share in marks]
    shown.append(text(left + BAR + RIGHT - 8, 24, label, "end"))
    return "\n".join([*shown, "</svg>", ""])


def _color(share: float) -> str:
    place = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    i = min(int(place), len(RAMP) - 2)
    mixed = (round(a + (place - i) * (b - a)) for a, b in zip(RAMP[i], RAMP[i + 1], strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)
