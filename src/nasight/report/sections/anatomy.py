"""Width and depth of the found cells among those of their space, and the loss around the retrained network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nasight.anatomy import CellDistribution, CellGraph, Landscape, Standing
from nasight.report._cell import cell_svg
from nasight.report._charts import axis
from nasight.report._landscape import contour_svg, surface, variance_svg
from nasight.report._section import Chart, Section

DRAWN = 4
"""At most this many published cells are drawn beside the found one."""


@dataclass(frozen=True)
class PlacedCell:
    """A cell and the space that it is compared with."""

    name: str
    """Its kind (such as "normal"), or the name under which it was published."""
    graph: CellGraph
    """The cell."""
    space: CellDistribution | None
    """How many cells of its space have each width and depth; None where they are not counted."""

    @property
    def standing(self) -> Standing | None:
        """Where it stands in its space."""
        return None if self.space is None else self.space.standing(self.graph)


@dataclass(frozen=True)
class LandscapeValues:
    """The loss around the retrained network."""

    landscape: Landscape
    """The losses, and where they were computed the gradient variances, on a plane through it."""
    data: str
    """The data that they were computed on."""
    part: str
    """The part of the data: train or test."""
    largest: float | None = None
    """The largest eigenvalue of the Hessian, where it was computed."""
    trace: float | None = None
    """The trace of the Hessian, where it was computed."""

    @property
    def contour(self) -> str:
        """The loss as contour lines."""
        return contour_svg(self.landscape)

    @property
    def deviation(self) -> str | None:
        """The root of the gradient variance as a heat map."""
        return None if self.landscape.variances is None else variance_svg(self.landscape)


@dataclass(frozen=True)
class AnatomyValues:
    """Width, depth and standing of the cells, published ones beside them, and the landscape where there is one."""

    cells: Sequence[PlacedCell]
    """The found cells by their kind, the one that a network repeats first; empty where there are none."""
    published: Sequence[PlacedCell]
    """Published cells of the same search space."""
    landscape: LandscapeValues | None
    """The loss around the retrained network; None: not computed."""
    train_command: str
    """The command that trains what was found."""
    deep_command: str
    """The command that computes the landscape."""

    @property
    def drawn(self) -> list[tuple[PlacedCell, str]]:
        """The published cells to be drawn, with their drawings."""
        return [(c, cell_svg(c.graph, title=c.name, standalone=False)) for c in self.published[:DRAWN]]


TEMPLATE = """
{% if values.cells %}
<div class="scroll"><table>
  <thead><tr>
    <th scope="col">cell</th>
    <th scope="col" class="n">width</th>
    <th scope="col" class="n">depth</th>
    <th scope="col">among all cells of its space</th>
  </tr></thead>
  <tbody>
  {% for cell in values.cells %}
  {% set standing = cell.standing %}
  <tr>
    <th scope="row">{{ cell.name }}</th>
    <td class="n">{{ "%g"|format(cell.graph.width) }} c</td>
    <td class="n">{{ cell.graph.depth }}</td>
    <td>
    {% if standing %}
      {{ standing.as_wide_and_shallow|number(1) }} % of {{ standing.cells|number }} are at least as wide and at most as
      deep (widest {{ "%g"|format(standing.largest_width) }} c, shallowest {{ standing.smallest_depth }})
    {% else %}
      not counted for a cell of this form
    {% endif %}
    </td>
  </tr>
  {% endfor %}
  </tbody></table></div>
{% if values.cells[0].space %}
<figure>
  {{ chart("standing", "How many cells of the space have each width and depth, and where the found cell is") }}
  <figcaption>Width and depth of all cells of the space; the star is the found one
  {%- if values.published %}, diamonds are published ones{% endif %}.</figcaption>
</figure>
{% endif %}
{% else %}
<p>Architectures of this space are not made of cells, so they have no width and depth in the sense of this section.</p>
{% endif %}
{% if values.published %}
<h3>Beside published cells</h3>
<div class="grid">
{% for cell, drawing in values.drawn %}
  <figure>{{ svg(drawing) }}
  <figcaption>{{ cell.name }}: width {{ "%g"|format(cell.graph.width) }} c, depth {{ cell.graph.depth }}</figcaption>
  </figure>
{% endfor %}
</div>
{% endif %}
<h3>Loss around the retrained network</h3>
{% if values.landscape %}
{% set around = values.landscape %}
{% set deviation = around.deviation %}
<p>On {{ around.landscape.settings.examples|number }} examples of the {{ around.part }} part of {{ around.data }},
in a plane of two random filter-normalized directions.
{% if around.largest is not none %}
The top eigenvalue of the Hessian is {{ around.largest|number }}, its trace {{ around.trace|number(0) }}.
{% endif %}
</p>
<div class="grid">
  <figure>
    {{ chart("surface-loss", "Surface of the loss around the network") }}
    <figcaption>Loss; turn it with the mouse.</figcaption>
  </figure>
  {% if deviation %}
  <figure>
    {{ chart("surface-variance", "Surface of the gradient's deviation around the network") }}
    <figcaption>Root of the gradient variance.</figcaption>
  </figure>
  {% endif %}
  <figure class="plate">{{ svg(around.contour) }}<figcaption>The loss as contour lines.</figcaption></figure>
  {% if deviation %}
  <figure class="plate">{{ svg(deviation) }}<figcaption>The root of the gradient variance.</figcaption></figure>
  {% endif %}
</div>
{% else %}
<p class="empty">Not computed. First retrain what was found, then ask for it:<br>
<code>{{ values.train_command }}</code><br><code>{{ values.deep_command }}</code></p>
{% endif %}
"""


def charts(values: AnatomyValues) -> dict[str, Chart]:
    """Where the found cell stands in its space, and the landscape as surfaces, where there are any."""
    found: dict[str, Chart] = {}
    if values.cells and values.cells[0].space is not None:
        space = values.cells[0].space
        same = {cell.name: cell.graph for cell in values.published if cell.space == space}
        found["standing"] = _standing_chart(space, values.cells[0].graph, same)
    if values.landscape is not None:
        landscape = values.landscape.landscape
        found["surface-loss"] = _small(surface(landscape))
        if landscape.variances is not None:
            found["surface-variance"] = _small(surface(landscape, "variances"))
    return found


def _standing_chart(space: CellDistribution, graph: CellGraph, others: Mapping[str, CellGraph]) -> Chart:
    """How many cells of the space have each width and depth, and where this one and the published ones are."""
    layout = {
        "xaxis": axis("width, in channels c", type="category"),
        "yaxis": axis("depth", type="category"),
        "height": 360,
        "legend": {"orientation": "h", "y": 1.15},
    }
    found = {
        "type": "scatter", "mode": "markers", "name": "found", "x": [f"{graph.width:g}"], "y": [str(graph.depth)],
        "hovertemplate": "found: width %{x}, depth %{y}<extra></extra>",
        "marker": {"size": 17, "color": "#d55e00", "symbol": "star", "line": {"width": 1}},
    }  # fmt: skip
    return {"data": [_shares(space), *_published(others), found], "layout": layout}


def _shares(space: CellDistribution) -> dict[str, Any]:
    widths, depths = sorted({w for w, _ in space.counts}), sorted({d for _, d in space.counts})
    share = [[100 * space.counts.get((w, d), 0) / space.cells for w in widths] for d in depths]
    return {
        "type": "heatmap", "x": [f"{w:g}" for w in widths], "y": [str(d) for d in depths], "z": share,
        "colorscale": [[0, "rgba(0,114,178,0.04)"], [1, "rgba(0,114,178,0.85)"]],
        "colorbar": {"title": {"text": "% of cells"}},
        "hovertemplate": "width %{x}, depth %{y}: %{z:.2f} % of cells<extra></extra>",
    }  # fmt: skip


def _published(cells: Mapping[str, CellGraph]) -> list[dict[str, Any]]:
    """A diamond at each place where there are published cells; pointing at it shows their names."""
    places: dict[tuple[str, str], list[str]] = {}
    for name, graph in cells.items():
        places.setdefault((f"{graph.width:g}", str(graph.depth)), []).append(name)
    marks = {
        "type": "scatter", "mode": "markers", "name": "popular cells", "x": [x for x, _ in places],
        "y": [y for _, y in places], "text": [", ".join(names) for names in places.values()],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"size": 10, "color": "#e69f00", "symbol": "diamond", "line": {"width": 1}},
    }  # fmt: skip
    return [marks] if places else []


def _small(figure: Chart) -> Chart:
    """A surface that fits into half a page: axes without words, which the caption says."""
    bare = {"title": {"text": ""}, "tickfont": {"size": 10}, "nticks": 4}
    eye = {"x": 1.3, "y": 1.3, "z": 0.9}
    scene = {"xaxis": bare, "yaxis": bare, "zaxis": bare, "camera": {"eye": eye}}
    data = [{**each, "colorbar": {"thickness": 12, "len": 0.8}} for each in figure["data"]]
    return {"data": data, "layout": {"scene": scene, "height": 400, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}}}


SECTION = Section(
    name="anatomy",
    title="Anatomy",
    values=AnatomyValues,
    template=TEMPLATE,
    charts=charts,
    empty="Nothing is known of the cells. <code>nasight explain {{ subject }}</code>",
)
