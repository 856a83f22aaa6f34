"""Test loss and accuracy of cells that were trained alike."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, pstdev
from typing import Protocol

from nasight.anatomy import Design
from nasight.report._panels import Panel, Series, panels_svg
from nasight.training import TrainingCurve

MOST = 7
"""Lines of one panel that colors tell apart; of more cells the original and those spread over the widths are drawn."""


class ComparedCells(Protocol):
    """Cells that were trained alike: the first is the original, the others are its variants."""

    @property
    def designs(self) -> Sequence[Design]:
        """The cells."""
        ...

    @property
    def lrs(self) -> Sequence[float]:
        """The learning rates that each was trained with."""
        ...

    def of(self, place: int, lr: float) -> list[TrainingCurve]:
        """The trainings of the design at this place with a learning rate, one per seed."""
        ...


def curves_svg(compared: ComparedCells) -> str:
    """Mean test loss and accuracy against the steps at each learning rate; bands show the spread of the seeds.

    `compared` is anything that holds the trainings of cells, such as a `nasight.studies.Comparison`.
    """
    chosen = _chosen(compared)
    panels = []
    for lr in compared.lrs:
        for what, label in (("loss", "test loss"), ("accuracy", "test accuracy, %")):
            series = [_series(compared, place, lr, what) for place in chosen]
            panels.append(Panel(f"{label}, lr {lr:g}", "steps", label, series, kind="line"))
    return panels_svg(panels)


def _chosen(compared: ComparedCells) -> list[int]:
    """The first design, and the others from the widest to the narrowest."""
    graphs = [design[design.main] for design in compared.designs]
    order = sorted(range(1, len(graphs)), key=lambda i: (-graphs[i].width, graphs[i].depth))
    if len(order) > MOST - 1:
        order = [order[round(k * (len(order) - 1) / (MOST - 2))] for k in range(MOST - 1)]
    return [0, *order]


def _series(compared: ComparedCells, place: int, lr: float, what: str) -> Series:
    design, runs = compared.designs[place], compared.of(place, lr)
    graph = design[design.main]
    common = min(len(training.curve) for training in runs)  # a curve that broke off is drawn as far as it goes

    def values(point: int) -> list[float]:
        return [_value(training, point, what) for training in runs]

    return Series(
        f"{design.name} ({graph.width:g}c, {graph.depth})",
        [runs[0].curve[point].step for point in range(common)],
        [mean(values(point)) for point in range(common)],
        [pstdev(values(point)) for point in range(common)],
    )


def _value(training: TrainingCurve, point: int, what: str) -> float:
    return training.curve[point].loss if what == "loss" else training.curve[point].accuracy
