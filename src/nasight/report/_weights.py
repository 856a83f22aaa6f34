"""The weights of every decision over the epochs of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import torch

from nasight.report._svg import COLORS
from nasight.spaces import Group

History = Sequence[Mapping[str, Any]]
"""One row per epoch, as a search writes them: `Run.history`."""


@dataclass(frozen=True)
class DecisionWeights:
    """The weights of one decision, epoch by epoch."""

    name: str
    """The decision."""
    options: tuple[str, ...]
    """What it chooses from."""
    rows: tuple[tuple[float, ...], ...]
    """One row per epoch with one weight per option; a row sums to one."""

    @property
    def chosen(self) -> str:
        """The option with the largest weight at the end."""
        last = self.rows[-1]
        return self.options[last.index(max(last))]


def decision_weights(history: History, groups: Sequence[Group]) -> list[DecisionWeights]:
    """The weights of every decision of which one option is chosen in the end; none where there is no epoch."""
    found = []
    for group in groups if history else ():
        if group.exclusive:
            epochs = [group.split(torch.tensor(row["weights"][group.name])) for row in history]
            for i, (name, options) in enumerate(zip(group.rows, group.options, strict=True)):
                found.append(DecisionWeights(name, options, tuple(tuple(rows[i].tolist()) for rows in epochs)))
    return found


def areas(decision: DecisionWeights, x: float, y: float, width: float, height: float) -> list[str]:
    """The weights over the epochs as SVG polygons stacked to 1, in a box with its upper left corner at (x, y)."""
    rows = decision.rows if len(decision.rows) > 1 else 2 * decision.rows
    step = width / (len(rows) - 1)

    def edge(heights: Sequence[float]) -> list[str]:
        return [f"{x + i * step:.1f},{y + height * (1 - value):.1f}" for i, value in enumerate(heights)]

    parts, below = [], [0.0] * len(rows)
    for i, option in enumerate(decision.options):
        above = [floor + row[i] for floor, row in zip(below, rows, strict=True)]
        points = " ".join([*edge(above), *reversed(edge(below))])
        color = COLORS[i % len(COLORS)]
        parts.append(f'<polygon points="{points}" fill="{color}"><title>{escape(option)}</title></polygon>')
        below = above
    return parts
