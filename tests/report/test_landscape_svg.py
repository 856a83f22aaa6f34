"""Pictures of landscapes: lines lie where the loss has their level, and what is infinite stays blank."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest

from nasight.anatomy import Landscape
from nasight.errors import RequestError
from nasight.report import contour_svg, landscape_pictures, surface, variance_svg
from nasight.report._landscape import LEFT, SIDE, TOP, _segments

GRID = np.linspace(-1, 1, 41)
SVG = "{http://www.w3.org/2000/svg}"


def bowl(variances: bool = True) -> Landscape:
    losses = 0.01 + GRID[None] ** 2 + GRID[:, None] ** 2
    losses[0, 0] = math.inf
    return Landscape(GRID, losses, losses**2 if variances else None, {})


def test_a_contour_of_a_round_bowl_is_a_circle() -> None:
    ends = [point for segment in _segments(bowl().losses, 0.26) for point in segment]
    radii = [math.hypot((x - LEFT) / SIDE * 2 - 1, (y - TOP) / SIDE * 2 - 1) for x, y in ends]
    assert len(radii) > 100
    assert radii == pytest.approx([0.5] * len(radii), abs=2e-3)


def test_second_direction_points_up_and_first_to_the_right() -> None:
    losses = 10 + GRID[None] + 3 * GRID[:, None]
    ends = [point for segment in _segments(losses, 13.5) for point in segment]
    # The line from (0.5, 1) to (1, 5/6).
    assert min(ends) == pytest.approx((LEFT + 0.75 * SIDE, TOP), abs=1e-6)
    assert max(ends) == pytest.approx((LEFT + SIDE, TOP + SIDE / 12), abs=1e-6)


def test_lines_through_a_saddle_do_not_cross() -> None:
    found = _segments(np.array([[1.0, 0.0], [0.0, 1.2]]), 0.5)
    # The middle, 0.55, is above: the low corners (bottom right, top left) are cut off.
    assert len(found) == 2
    sides = {(max(x for x, _ in s) == LEFT + SIDE, min(y for _, y in s) == TOP) for s in found}
    assert sides == {(True, False), (False, True)}


def test_svgs_are_well_formed_and_infinite_points_are_blank() -> None:
    found = bowl()
    contour, heat = (ElementTree.fromstring(draw(found)) for draw in (contour_svg, variance_svg))
    assert len(contour.findall(f"{SVG}path")) > 10
    cells = heat.findall(f"{SVG}g/{SVG}rect")
    step = SIDE / 41
    bottom = [c for c in cells if abs(float(c.attrib["y"]) - (TOP + 40 * step)) < 0.01]
    assert min(float(c.attrib["x"]) for c in bottom) == pytest.approx(LEFT + step, abs=0.01)


def test_plotly_accepts_the_surface_as_it_is() -> None:
    for of in ("losses", "variances"):
        go.Figure(surface(bowl(), of))
    with pytest.raises(RequestError, match="losses or variances, got 'hessian'"):
        surface(bowl(), "hessian")


def test_there_are_pictures_of_what_there_is() -> None:
    found = landscape_pictures(bowl())
    assert list(found) == ["contour.svg", "surface.html", "variance.svg", "variance_surface.html"]
    assert found["contour.svg"] == contour_svg(bowl())
    assert "<html>" in found["surface.html"]
    assert list(landscape_pictures(bowl(variances=False))) == ["contour.svg", "surface.html"]
    with pytest.raises(RequestError, match="without gradient variances"):
        variance_svg(bowl(variances=False))


def test_a_landscape_of_infinite_losses_is_refused() -> None:
    with pytest.raises(RequestError, match="without one finite value above 0"):
        contour_svg(Landscape(GRID, np.full((41, 41), math.inf), None, {}))
