"""Accuracy against parameters and against latency of all that was raced, and the fronts of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nasight.data import Units
from nasight.report._charts import axis
from nasight.report._section import Chart, Section
from nasight.report._svg import COLORS
from nasight.report.finding._candidate import hover, proposer_words, size_lines

FRONT, OTHER, CONTROL = COLORS[5], "#8a939c", COLORS[6]
WIDE = 8.0
"""Counts whose largest is this many times the smallest are drawn on a logarithmic axis."""


@dataclass(frozen=True)
class FrontPoint:
    """A raced architecture: its cost, and its accuracy."""

    number: int | None
    """Of the candidate, as in the race's table; None: it was in the race of an earlier leg."""
    architecture: str
    """As text."""
    parameters: int
    """Of its network."""
    accuracy: float
    """In percent, as it is or would be on the last rung."""
    proposed_by: str
    """Who proposed it first."""
    latency: float | None = None
    """Milliseconds per example; None: not measured."""
    epochs: int | None = None
    """Of its longest training, where that is not on the last rung, so that the accuracy is an estimate."""
    winner: bool = False
    """Whether it won the race."""
    best: bool = False
    """Whether no other point is at least as good and smaller."""
    outside: bool = False
    """Whether it is no architecture of the space, such as a plain network."""
    multiply_adds: int | None = None
    """Per example; None: unknown."""
    best_latency: bool = False
    """Whether no other point is at least as good and faster."""

    @property
    def proposer(self) -> str:
        """Who proposed it first, in words."""
        return proposer_words(self.proposed_by)


Cost = Callable[[FrontPoint], float]


@dataclass(frozen=True)
class FrontValues:
    """All that was raced, by its cost."""

    points: Sequence[FrontPoint]
    """From small to large."""
    length: str
    """Of the trainings on the last rung, such as "6 epochs"."""
    take: str
    """The command that trains a point within limits."""
    units: Units = field(default_factory=Units)
    """In which scores are written."""

    @property
    def front(self) -> list[FrontPoint]:
        """The points on the front."""
        return [point for point in self.points if point.best]

    @property
    def timed(self) -> list[FrontPoint]:
        """The points whose latency is known, from fast to slow; none where there is but one."""
        known = [point for point in self.points if point.latency is not None]
        return sorted(known, key=lambda point: (point.latency, -point.accuracy)) if len(known) > 1 else []

    @property
    def counted(self) -> bool:
        """Whether multiply-adds of the front are known."""
        return any(point.multiply_adds is not None for point in self.front)


TEMPLATE = """
{% set metric = values.units.metric %}
<p>{{ metric[:1]|upper }}{{ metric[1:] }} against the number of parameters.
{{ values.length }} The line joins the networks for which no smaller one is as good. The star is the winner of the race.
{% if values.points|rejectattr("epochs", "none")|list %}
Hollow points left the race earlier: their {{ metric }} is an estimate, what they had plus what others gained on
average.
{% endif %}
</p>
<figure>
  {{ chart("front", "Score against parameters of all that was raced, the front joined: " ~ metric, id="chart-front") }}
  <figcaption>Point at a dot to see its multiply-adds, latency and architecture.</figcaption>
</figure>
{% if values.timed %}
<figure>
  {{ chart("latency", "Score against latency of all that was raced, the front joined: " ~ metric, id="chart-latency") }}
  <figcaption>The same against milliseconds for one example on one thread of the machine of this find. The line joins
  the networks for which no faster one is as good.</figcaption>
</figure>
{% endif %}
<div class="scroll"><table>
  <thead><tr>
    <th scope="col" class="n">no.</th>
    <th scope="col" class="n">parameters{% if values.counted %}<br><small>multiply-adds</small>{% endif %}</th>
    <th scope="col" class="n">{{ values.units.axis }}</th>
    <th scope="col" class="n">latency, ms</th>
    <th scope="col">proposed by</th>
    <th scope="col">architecture</th>
  </tr></thead>
  <tbody>
  {% for point in values.front %}
  <tr>
    <th scope="row" class="n">{{ point.number if point.number else "" }}</th>
    <td class="n">{{ point.parameters|number }}
      {%- if point.multiply_adds is not none %}<br><small>{{ point.multiply_adds|number }}</small>{% endif %}</td>
    <td class="n">{{ "≈ " if point.epochs }}{{ values.units.number(point.accuracy) }}</td>
    <td class="n">{{ point.latency|number if point.latency is not none else "" }}</td>
    <td class="who">{{ point.proposer }}</td>
    <td class="code arch">{{ point.architecture }}</td>
  </tr>
  {% endfor %}
  </tbody></table></div>
<p>A smaller or faster one: <code>{{ values.take }}</code></p>
"""


def charts(values: FrontValues) -> dict[str, Chart]:
    """Accuracy against each cost: the front joined, the other points, and networks from outside the space."""
    best = [p for p in values.points if p.best]
    found: dict[str, Chart] = {
        "front": _chart(values.points, best, values.units, "parameters", lambda p: float(p.parameters))
    }
    if values.timed:
        fast = [p for p in values.timed if p.best_latency]
        found["latency"] = _chart(values.timed, fast, values.units, "ms per example", lambda p: p.latency or 0.0)
    return found


def _chart(
    points: Sequence[FrontPoint], front: Sequence[FrontPoint], units: Units, name: str, cost: Cost
) -> dict[str, Any]:
    others = [p for p in points if p not in front and not p.outside]
    outside = [p for p in points if p.outside]
    data = []
    if others:
        data.append(_cloud("other candidates", others, units, OTHER, "markers", cost))
    if outside:
        data.append(_cloud("not of the space", outside, units, CONTROL, "markers", cost, symbol="diamond"))
    if front:
        data.append(_cloud("front", front, units, FRONT, "lines+markers", cost))
    costs = [cost(p) for p in points]
    wide = bool(costs) and min(costs) > 0 and max(costs) / min(costs) > WIDE
    layout = {
        "xaxis": axis(name, zeroline=False, **({"type": "log", "dtick": "D2"} if wide else {})),
        "yaxis": axis(units.axis, zeroline=False),
        "hovermode": "closest",
        "height": 420,
    }
    return {"data": data, "layout": layout}


def _cloud(
    name: str,
    points: Sequence[FrontPoint],
    units: Units,
    color: str,
    mode: str,
    cost: Cost,
    symbol: str = "circle",
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": mode, "name": name, "x": [cost(p) for p in points],
        "y": [units.drawn(p.accuracy) for p in points], "text": [_hover(p, units) for p in points],
        "hovertemplate": "%{text}<extra></extra>", "line": {"color": color, "width": 2.4},
        "marker": {"color": color, "size": [16 if p.winner else 10 for p in points],
                   "line": {"width": 2, "color": color}, "symbol": [_symbol(p, symbol) for p in points]},
    }  # fmt: skip


def _symbol(point: FrontPoint, symbol: str) -> str:
    shape = "star" if point.winner else symbol
    return f"{shape}-open" if point.epochs else shape


def _hover(point: FrontPoint, units: Units) -> str:
    latency = "" if point.latency is None else f"{point.latency:.2f} ms per example"
    about = f"estimated from {point.epochs} epoch{'' if point.epochs == 1 else 's'}: " if point.epochs else ""
    return hover(
        f"no. {point.number}: {point.proposer}" if point.number else f"{point.proposer}, in an earlier leg",
        f"{about}{units.text(point.accuracy)}",
        *size_lines(point),
        latency,
        architecture=point.architecture,
    )


SECTION = Section(
    name="front",
    title="Front",
    heading="Front: {{ values.units.metric if values else 'score' }} against size",
    values=FrontValues,
    template=TEMPLATE,
    charts=charts,
    empty="No architecture of the space was raced.",
)
