"""How the search went: score, loss and entropy over the epochs."""

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
    def units(self) -> Units:
        """In which scores and losses are written."""
        return Units.of(self.last)

    @property
    def last(self) -> Mapping[str, Any]:
        """The row of the last epoch."""
        return self.history[-1]


TEMPLATE = """
<p>The supernet mixes all architectures; discretized is the arg max alone, with the same shared weights. At the end
{% if values.last.drop is none %}
the arg max was no network
{% else %}
discretizing cost {{ values.units.difference(values.last.drop) }}
{% endif %}
and the entropy was {{ values.last.entropy|number(3) }} nats per decision.
{% if values.augmentation %}Random changes of images: {{ values.augmentation }}.{% endif %}</p>
<figure>
  {{ chart("search", "Score, loss, drop by discretizing and entropy over the epochs", id="chart-search") }}
  <figcaption>Point at an epoch: all four panels show it. Click a name to hide its lines.</figcaption>
</figure>
<details><summary>The figures</summary><div class="scroll"><table>
  <thead><tr>
    <th scope="col" class="n">epoch</th>
    <th scope="col" class="n">supernet, {{ values.units.axis if values.units.metric != "accuracy" else "%" }}</th>
    <th scope="col" class="n">discretized</th>
    <th scope="col" class="n">drop</th>
    <th scope="col" class="n">entropy</th>
  </tr></thead>
  <tbody>
  {% for row in values.history %}
  <tr>
    <th scope="row" class="n">{{ row.epoch + 1 }}</th>
    {% for score in (row.valid_accuracy, row.discrete_accuracy, row.drop) %}
    <td class="n">{{ values.units.number(score) if score is not none else "" }}</td>
    {% endfor %}
    <td class="n">{{ row.entropy|number(3) }}</td>
  </tr>
  {% endfor %}
  </tbody></table></div></details>
"""


def charts(values: SearchValues) -> dict[str, Chart]:
    """Accuracy, loss, drop and entropy over the epochs, one above the other: hovering one shows all four."""
    epochs = [row["epoch"] + 1 for row in values.history]

    units = values.units

    def of(key: str) -> list[float | None]:
        return [row[key] for row in values.history]

    def scores(key: str) -> list[float | None]:
        return [None if score is None else units.drawn(score) for score in of(key)]

    data = [
        line(name, epochs, read(f"{key}_{what}"), color, yaxis=place, legendgroup=name, showlegend=place == "y",
             line={"dash": DASHES[i]})
        for place, what, read in (("y", "accuracy", scores), ("y2", "loss", of))
        for i, (name, key, color) in enumerate(CURVES)
    ]  # fmt: skip
    data.append(
        line(
            f"drop by discretizing{', points' if units.percent else ''}",
            epochs,
            scores("drop"),
            COLORS[3],
            yaxis="y3",
            line={"dash": "dot"},
        )
    )
    data.append(line("entropy, nats per decision", epochs, of("entropy"), COLORS[0], yaxis="y4"))
    layout = {
        "xaxis": axis("epoch", anchor="y4"),
        "yaxis": axis(units.axis, domain=[0.76, 1]),
        "yaxis2": axis(units.loss_axis, domain=[0.51, 0.73]),
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
