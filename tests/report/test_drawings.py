"""Drawings are made of plain values: nothing has to be run for them."""

from dataclasses import dataclass
from xml.etree import ElementTree

from nasight.anatomy import Design, read_cells
from nasight.report import curves_svg, picture
from nasight.spaces import Group
from nasight.training import Point, TrainingCurve

SVG = "{http://www.w3.org/2000/svg}"


def row(epoch: int, *weights: list[float]) -> dict[str, object]:
    accuracies = {"valid_accuracy": 40.0, "discrete_accuracy": None if epoch == 0 else 35.0}
    return {"epoch": epoch, "entropy": 1.0, "weights": {"choices": weights[0], "edges": [[0.5, 0.5]]}, **accuracies}


RESULT = {"method": "<m>", "objective": "erm", "space": "s&t", "data": "digits", "accuracy": None, "architecture": "a"}


def test_a_search_is_drawn_from_its_history_its_result_and_its_groups() -> None:
    ragged = Group("choices", ("first", "second"), (("a", "b"), ("a", "b", "c<d")))
    edges = Group("edges", ("kept",), (("x", "y"),), exclusive=False)
    history = [row(0, [0.5, 0.5, 0.2, 0.3, 0.5]), row(1, [0.9, 0.1, 0.1, 0.8, 0.1])]
    root = ElementTree.fromstring(picture(history, RESULT, (ragged, edges)))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "<m> (erm) on s&t, digits: no network" in texts
    assert "first: a" in texts
    assert "second: b" in texts
    assert "kept: x" not in texts
    names = [element.text for element in root.iter(f"{SVG}title")][1:]
    assert names == ["a", "b", "a", "b", "c<d"]


def test_one_epoch_is_drawn_as_wide_as_many() -> None:
    group = Group("choices", ("first",), (("a", "b"),))
    root = ElementTree.fromstring(picture([row(0, [[0.25, 0.75]])], RESULT, (group,)))
    lower, upper = (element.attrib["points"].split() for element in root.iter(f"{SVG}polygon"))
    xs = sorted({float(point.split(",")[0]) for point in lower})
    assert xs[1] - xs[0] > 100
    assert upper[2:] == lower[1::-1]  # the second area stands on the first


@dataclass(frozen=True)
class Pair:
    """Two cells trained alike, as a study would hold them."""

    designs: tuple[Design, ...]
    lrs: tuple[float, ...] = (0.1,)

    def of(self, place: int, lr: float) -> list[TrainingCurve]:
        points = tuple(Point(step, 2.0 - step / 100, 10.0 + step + place) for step in (0, 50, 100))
        short = points[:2]
        return [TrainingCurve("a", lr, seed, 100, points if seed else short, not seed, 1.0) for seed in (0, 1)]


def test_curves_are_drawn_of_anything_that_holds_trainings() -> None:
    svg = curves_svg(Pair((read_cells("DARTS_V1"), read_cells("DARTS_V2"))))
    root = ElementTree.fromstring(svg)
    lines = [element.attrib["points"].split() for element in root.iter(f"{SVG}polyline")]
    assert len(lines) == 4  # two cells, loss and accuracy
    assert {len(line) for line in lines} == {2}  # as far as the curve that broke off
    assert "DARTS_V2 (3.5c, 3)" in svg
