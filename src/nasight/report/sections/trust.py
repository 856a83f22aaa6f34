"""Each decision of a search: its weights over the epochs, its verdict, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nasight.report._charts import axis
from nasight.report._section import Chart, Section
from nasight.report._svg import COLORS
from nasight.report._weights import DecisionWeights, History, areas, decision_weights
from nasight.spaces import Group

SPARK = (96, 26)
"""Width and height of the small picture of a decision's weights."""


@dataclass(frozen=True)
class JudgedDecision:
    """One decision and what is to be thought of it."""

    name: str
    """The decision."""
    choice: str
    """The option that was chosen."""
    verdict: str
    """safe, unsafe or unknown."""
    margin: float
    """How much worse (+) or better (-) the nearest alternative is, in nats of loss."""
    confidence: float
    """Of the verdict, between 0 and 1."""
    advice: str
    """What to do about it."""
    evidence: str
    """What the verdict follows from."""


@dataclass(frozen=True)
class TrustValues:
    """Each decision: its weights over the epochs, its margin, verdict and advice."""

    history: History
    """One row per epoch."""
    groups: Sequence[Group]
    """The architecture weights that the rows hold."""
    decisions: Sequence[JudgedDecision]
    """The verdicts, in the order of the decisions."""
    notes: Sequence[str]
    """What to keep in mind with them."""
    examples: int
    """Held-out examples that they were measured on."""
    level: float
    """Of each verdict, in percent."""
    several: bool
    """Whether several seeds were judged together."""
    loss: str = "nats"
    """The unit of the loss; nothing where it has none."""

    @cached_property
    def weights(self) -> Mapping[str, DecisionWeights]:
        """The weights of each decision over the epochs, by its name."""
        return {decision.name: decision for decision in decision_weights(self.history, self.groups)}

    def spark(self, name: str) -> str:
        """The weights of a decision as a small stack of areas; nothing where it has none of its own."""
        if name not in self.weights:
            return ""
        width, height = SPARK
        box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        parts = areas(self.weights[name], 0, 0, width, height)
        return f'<svg {box} aria-hidden="true">{"".join(parts)}</svg>'


TEMPLATE = """
<p>Each choice against its alternatives on {{ values.examples|number }} held-out examples, the other decisions as
found, each verdict at {{ values.level|number(0) }} %. The margin is how much worse (+) or better (−) the nearest
alternative is, in {{ "nats of loss" if values.loss == "nats" else "loss" }}.</p>
<div class="scroll"><table class="wide-last">
  <thead><tr>
    <th scope="col">decision</th>
    <th scope="col">weights over epochs</th>
    <th scope="col">choice</th>
    <th scope="col">verdict</th>
    <th scope="col" class="n">margin</th>
    <th scope="col" class="n">confidence</th>
    <th scope="col">advice</th>
  </tr></thead>
  <tbody>
  {% for d in values.decisions %}
  <tr>
    <th scope="row">{{ d.name }}</th>
    <td>{{ svg(values.spark(d.name)) }}</td>
    <td class="code nowrap">{{ d.choice }}</td>
    <td><span class="tag {{ d.verdict }}">{{ d.verdict }}</span></td>
    <td class="n">{{ "%+.3f"|format(d.margin) }}</td>
    <td class="n nowrap">{{ "above 99.9" if d.confidence > 0.999 else "%.1f"|format(100 * d.confidence) }} %</td>
    <td>{{ d.advice }}<details><summary>evidence</summary>{{ d.evidence }}</details></td>
  </tr>
  {% endfor %}
  </tbody></table></div>
{% if values.several %}
<p>Several seeds were given: a decision that flips with the seed is not safe whatever its margin.</p>
{% endif %}
{% for note in values.notes %}
<p class="note">{{ note }}</p>
{% endfor %}
{% if values.weights %}
<p><label for="decision">Weights of decision</label>
<select id="decision">{% for name in values.weights %}<option>{{ name }}</option>{% endfor %}</select></p>
<figure>
  <div class="chart" id="chart-weights" role="img"
    aria-label="Weights of the chosen decision over the epochs, stacked"></div>
  <figcaption>Weights of one decision over the epochs; a column sums to one.</figcaption>
</figure>
{% endif %}
"""

SCRIPT = """
  const chooser = section.querySelector("#decision"), place = section.querySelector("#chart-weights");
  if (!chooser) return;
  const choose = () => draw(place, charts[chooser.value]);
  chooser.addEventListener("change", choose);
  choose();
"""


def charts(values: TrustValues) -> dict[str, Chart]:
    """The weights of each decision over the epochs, by the name of the decision."""
    epochs = [row["epoch"] + 1 for row in values.history]
    return {name: _weights_chart(epochs, weights) for name, weights in values.weights.items()}


def _weights_chart(epochs: Sequence[int], weights: DecisionWeights) -> dict[str, Any]:
    data = [
        {"type": "scatter", "mode": "lines", "stackgroup": "one", "name": option, "x": list(epochs),
         "y": [row[i] for row in weights.rows], "line": {"color": COLORS[i % len(COLORS)], "width": 1},
         "hovertemplate": "%{y:.3f}"}
        for i, option in enumerate(weights.options)
    ]  # fmt: skip
    layout = {
        "xaxis": axis("epoch"),
        "yaxis": axis("weight", range=[0, 1]),
        "hovermode": "x unified",
        "title": {"text": weights.name, "y": 0.98, "yanchor": "top"},
        "height": 360,
    }
    return {"data": data, "layout": layout}


SECTION = Section(
    name="trust",
    title="Trust",
    heading="Trust: decision by decision",
    values=TrustValues,
    template=TEMPLATE,
    script=SCRIPT,
    charts=charts,
    empty="The decisions are not judged yet. <code>nasight explain {{ subject }}</code>",
)
