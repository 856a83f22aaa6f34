"""Curves and clouds are plain SVG."""

import re
from xml.etree import ElementTree

from nasight.report import Panel, Series, panels_svg


def lines(svg: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline points="([^"]*)"', svg)
    return [[(float(x), float(y)) for x, y in (p.split(",") for p in points.split())] for points in found]


def test_a_step_holds_its_value_until_the_next_one() -> None:
    svg = panels_svg([Panel("t", "calls", "error", [Series("a", [1, 2, 4], [9, 5, 5])], log_x=True)])
    ElementTree.fromstring(svg)
    ((first, held, dropped, *_),) = lines(svg)
    assert held == (dropped[0], first[1])
    assert dropped[1] > first[1]  # a lower error is drawn lower


def test_a_name_has_one_color_in_all_panels_and_markup_in_names_is_escaped() -> None:
    series = [Series("a<b", [1, 2], [1, 2], [0.1, 0.1]), Series("c", [1, 2], [2, 1])]
    svg = panels_svg([Panel("p", "x", "y", series), Panel("q", "x", "y", series[::-1], kind="line")])
    strokes = re.findall(r'stroke="(#\w+)" stroke-width', svg)
    assert strokes[0] == strokes[3]
    assert strokes[1] == strokes[2]
    assert len(set(strokes)) == 2
    ElementTree.fromstring(svg)


def test_one_point_and_no_point_are_drawn() -> None:
    svg = panels_svg([Panel("p", "x", "y", [Series("a", [3], [7])], kind="points"), Panel("q", "x", "y", [])])
    assert len(re.findall("<circle", svg)) == 1
    assert "q: no points" in svg
