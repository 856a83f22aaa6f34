"""Several runs side by side: a table with the spread over seeds, curves, cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nasight.anatomy import Design
from nasight.data import Units
from nasight.report._cell import drawings
from nasight.report._charts import DASHES, axis, line
from nasight.report._section import Chart, Section
from nasight.report._svg import COLORS
from nasight.report._weights import History

INKS = tuple(COLORS[i] for i in (5, 6, 2, 3, 0, 1, 7))
"""The palette without its yellow, which is too light for a line; the darkest colors first."""


@dataclass(frozen=True)
class MethodSummary:
    """The runs of one method; each list has one number per run, None where a run has none."""

    name: str
    """The method and its objective."""
    accuracy: Sequence[float | None]
    """Of the arg max with shared weights, percent."""
    retrained: Sequence[float]
    """Of the runs whose architecture was trained from scratch: its accuracy, percent."""
    entropy: Sequence[float | None]
    """Of the weights at the end, nats per decision."""
    seconds: Sequence[float]
    """What the search took."""
    counts: Sequence[Mapping[str, int]]
    """Of the runs that were judged: how many decisions are safe, unsafe and unknown."""


@dataclass(frozen=True)
class ComparedRun:
    """One run of a comparison."""

    label: str
    """Its method, objective and seed."""
    path: str
    """The name of its folder."""
    history: History
    """One row per epoch."""
    architecture: str
    """What it found, as text."""
    design: Design | None
    """What it found as cells; None where the architectures of its space are not made of cells."""

    @property
    def drawings(self) -> list[tuple[str, str]]:
        """What each cell is called, and its drawing."""
        return drawings(self.design)


@dataclass(frozen=True)
class CompareValues:
    """Several runs, summarized by their methods and one by one."""

    methods: Sequence[MethodSummary]
    """One for each method."""
    runs: Sequence[ComparedRun]
    """All runs."""
    units: Units = field(default_factory=Units)
    """In which their scores are written."""

    def drawn(self, scores: Sequence[float | None]) -> list[float | None]:
        """Scores as they are drawn."""
        return [None if score is None else self.units.drawn(score) for score in scores]


TEMPLATE = """
<div class="scroll"><table>
  <thead><tr>
    <th scope="col">method</th>
    <th scope="col" class="n">runs</th>
    <th scope="col" class="n">{{ values.units.metric }}, shared weights{{ ", %" if values.units.percent }}</th>
    <th scope="col" class="n">retrained{{ ", %" if values.units.percent }}</th>
    <th scope="col" class="n">entropy</th>
    <th scope="col" class="n">seconds</th>
    <th scope="col">decisions</th>
  </tr></thead>
  <tbody>
  {% for method in values.methods %}
  <tr>
    <th scope="row">{{ method.name }}</th>
    <td class="n">{{ method.seconds|length }}</td>
    <td class="n">{{ method.accuracy|spread if values.units.percent else values.drawn(method.accuracy)|spread(4) }}</td>
    <td class="n">{{ (method.retrained|spread if values.units.percent else values.drawn(method.retrained)|spread(4))
      if method.retrained else "not yet" }}</td>
    <td class="n">{{ method.entropy|spread(3) }}</td>
    <td class="n">{{ method.seconds|spread(1) }}</td>
    <td>
    {%- for count in method.counts -%}
      {{ count.safe }} safe, {{ count.unsafe }} unsafe, {{ count.unknown }} unknown{{ "; " if not loop.last }}
    {%- endfor -%}
    </td>
  </tr>
  {% endfor %}
  </tbody></table></div>
<figure>
  {{ chart("compare", "Discretized score and entropy of the runs over the epochs") }}
  <figcaption>{{ values.units.metric }} of the arg max with shared weights, and entropy, over the epochs.</figcaption>
</figure>
<div class="grid">
{% for run in values.runs %}
  <figure>
  {% for _, drawing in run.drawings %}
    {{ svg(drawing) }}
  {% else %}
    <p class="code">{{ run.architecture }}</p>
  {% endfor %}
    <figcaption>{{ run.label }}</figcaption>
  </figure>
{% endfor %}
</div>
"""


def charts(values: CompareValues) -> dict[str, Chart]:
    """The discretized accuracy and the entropy of the runs over the epochs."""
    data = []
    for i, run in enumerate(values.runs):
        name = f"{run.label}, {run.path}"
        epochs = [row["epoch"] + 1 for row in run.history]
        for key, place in (("discrete_accuracy", "y"), ("entropy", "y2")):
            known = [row.get(key) for row in run.history]
            known = values.drawn(known) if place == "y" else known
            look = {"legendgroup": name, "showlegend": place == "y", "line": {"dash": DASHES[i % len(DASHES)]}}
            data.append(line(name, epochs, known, INKS[i % len(INKS)], yaxis=place, **look))
    layout = {
        "xaxis": axis("epoch", anchor="y2"),
        "yaxis": axis(f"discretized {values.units.axis}", domain=[0.54, 1]),
        "yaxis2": axis("entropy, nats", domain=[0, 0.46], rangemode="tozero"),
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "height": 520,
    }
    return {"compare": {"data": data, "layout": layout}}


SECTION = Section(
    name="compare",
    title="Compare",
    values=CompareValues,
    template=TEMPLATE,
    charts=charts,
    empty="Name several runs, of other methods or seeds, to see them side by side: "
    "<code>nasight explain {{ subject }} OTHER_RUN</code>",
)
