"""Scores without training: the found architecture among random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nasight.report._charts import axis
from nasight.report._section import Chart, Section
from nasight.report._svg import COLORS


@dataclass(frozen=True)
class ScoredMetric:
    """One score of the found architecture and of random ones."""

    metric: str
    """The name of the score."""
    direction: str
    """Whether "high" or "low" is better."""
    found: float
    """The score of the found architecture."""
    random: Sequence[float]
    """The scores of random architectures."""

    @property
    def beaten(self) -> float | None:
        """Percent of the random architectures that have a worse score; None where there are none."""
        sign = 1 if self.direction == "high" else -1
        worse = sum(sign * value < sign * self.found for value in self.random)
        return 100 * worse / len(self.random) if self.random else None


@dataclass(frozen=True)
class KernelsValues:
    """Scores without training."""

    scores: Sequence[ScoredMetric]
    """One for each metric."""


TEMPLATE = """
<div class="scroll"><table>
  <thead><tr>
    <th scope="col">score</th>
    <th scope="col" class="n">found</th>
    <th scope="col">better is</th>
    <th scope="col" class="n">random ones it beats</th>
  </tr></thead>
  <tbody>
  {% for score in values.scores %}
  <tr>
    <th scope="row">{{ score.metric }}</th>
    <td class="n">{{ score.found|number(1 if score.found > 100 else 4) }}</td>
    <td>{{ score.direction }}</td>
    <td class="n">{{ score.beaten|number(0) }} % of {{ score.random|length }}</td>
  </tr>
  {% endfor %}
  </tbody></table></div>
<div class="grid">
{% for score in values.scores %}
  <figure>
    {{ chart("score-" ~ score.metric, "Score " ~ score.metric ~ " of random architectures and of the found one") }}
    <figcaption>{{ score.metric }} of random architectures; the line is the found one.</figcaption>
  </figure>
{% endfor %}
</div>
"""


def charts(values: KernelsValues) -> dict[str, Chart]:
    """For each metric the scores of random architectures, and a line at that of the found one."""
    return {f"score-{score.metric}": _scores_chart(score) for score in values.scores}


def _scores_chart(score: ScoredMetric) -> Chart:
    return {
        "data": [
            {"type": "histogram", "x": sorted(score.random), "name": "random cells", "marker": {"color": COLORS[0]},
             "hovertemplate": "%{x}: %{y} cells<extra></extra>"}
        ],
        "layout": {
            "xaxis": axis(score.metric),
            "yaxis": axis("cells"),
            "shapes": [{"type": "line", "x0": score.found, "x1": score.found, "yref": "paper", "y0": 0, "y1": 1,
                        "line": {"color": "#d55e00", "width": 3}}],
            "annotations": [{"x": score.found, "yref": "paper", "y": 1.08, "text": "found", "showarrow": False}],
            "height": 260,
            "showlegend": False,
        },
    }  # fmt: skip


SECTION = Section(
    name="kernels",
    title="Kernels",
    heading="Kernels: scores without training",
    values=KernelsValues,
    template=TEMPLATE,
    charts=charts,
    empty="Not computed. <code>nasight explain {{ subject }} --deep</code>",
)
