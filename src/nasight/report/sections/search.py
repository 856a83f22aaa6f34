"""How the search went: accuracy, loss and entropy over the epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nasight.data import Units
from nasight.report._charts import DASHES, axis, line
from nasight.report._section import Chart, Section
from nasight.report._svg import COLORS
from nasight.report._weights import History

CURVES = (
    ("supernet, held out", "valid", COLORS[5]),
    ("discretized, held out", "discrete", COLORS[6]),
    ("supernet, training", "train", COLORS[2]),
)
"""(name of a line, what its key in a row of the history begins with, color)"""


@dataclass(frozen=True)
class SearchValues:
    """How the search went."""

    history: History
    """One row per epoch, at least one: epoch, entropy, drop, and accuracy and loss of valid, discrete and train."""
    augmentation: str | None = None
    """Random changes of images, in words; None: not known, or no images."""

    @property
    def last(self) -> Mapping[str, Any]:
        """The row of the last epoch."""
        return self.history[-1]


TEMPLATE = """
<p>The supernet mixes all architectures; discretized is the arg max alone, with the same shared weights. At the end
{% if values.last.drop is none %}
the arg max was no network
{% else %}
discretizing cost {{ values.last.drop|number }} points
{% endif %}
and the entropy was {{ values.last.entropy|number(3) }} nats per decision.
{% if values.augmentation %}Random changes of images: {{ values.augmentation }}.{% endif %}</p>
<figure>
  {{ chart("search", "Accuracy, loss, drop by discretizing and entropy over the epochs", id="chart-search") }}
  <figcaption>Point at an epoch: all four panels show it. Click a name to hide its lines.</figcaption>
</figure>
<details><summary>The figures</summary><div class="scroll"><table>
  <thead><tr>
    <th scope="col" class="n">epoch</th>
    <th scope="col" class="n">supernet, %</th>
    <th scope="col" class="n">discretized, %</th>
    <th scope="col" class="n">drop</th>
    <th scope="col" class="n">entropy</th>
  </tr></thead>
  <tbody>
  {% for row in values.history %}
  <tr>
    <th scope="row" class="n">{{ row.epoch + 1 }}</th>
    <td class="n">{{ row.valid_accuracy|number }}</td>
    <td class="n">{{ row.discrete_accuracy|number }}</td>
    <td class="n">{{ row.drop|number }}</td>
    <td class="n">{{ row.entropy|number(3) }}</td>
  </tr>
  {% endfor %}
  </tbody></table></div></details>
"""


def charts(values: SearchValues) -> dict[str, Chart]:
    """Accuracy, loss, drop and entropy over the epochs, one above the other: hovering one shows all four."""
    epochs = [row["epoch"] + 1 for row in values.history]

    def of(key: str) -> list[float | None]:
        return [row[key] for row in values.history]

    data = [
        line(name, epochs, of(f"{key}_{what}"), color, yaxis=place, legendgroup=name, showlegend=place == "y",
             line={"dash": DASHES[i]})
        for place, what in (("y", "accuracy"), ("y2", "loss"))
        for i, (name, key, color) in enumerate(CURVES)
    ]  # fmt: skip
    data.append(line("drop by discretizing, points", epochs, of("drop"), COLORS[3], yaxis="y3", line={"dash": "dot"}))
    data.append(line("entropy, nats per decision", epochs, of("entropy"), COLORS[0], yaxis="y4"))
    layout = {
        "xaxis": axis("epoch", anchor="y4"),
        "yaxis": axis(Units(values.last.get("metric", "accuracy")).axis, domain=[0.76, 1]),
        "yaxis2": axis("loss, nats", domain=[0.51, 0.73]),
        "yaxis3": axis("drop", domain=[0.26, 0.48]),
        "yaxis4": axis("entropy", domain=[0, 0.22], rangemode="tozero"),
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "height": 760,
    }
    return {"search": {"data": data, "layout": layout}}


SECTION = Section(
    name="search",
    title="Search",
    heading="Search{% if values %}: {{ values.history|length }} epochs{% endif %}",
    values=SearchValues,
    template=TEMPLATE,
    charts=charts,
    empty="No epoch is finished. <code>nasight search --resume {{ subject }}</code>",
)
