"""What a find planned and what it did, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nasight.report._section import Section


@dataclass(frozen=True)
class Stage:
    """One stage of a find."""

    name: str
    """What it is called."""
    work: str
    """What was done in it."""
    planned: str
    """The time it was to take, as a person says it; empty: no time was planned."""
    took: str
    """The time it took; empty: unknown."""


@dataclass(frozen=True)
class CostValues:
    """The plan of a find against what was used."""

    stages: Sequence[Stage]
    """In their order."""
    time: str
    """All that was used."""
    budget: str
    """What there was."""
    workers: int
    """Processes that trained at once."""
    legs: int
    """How many budgets the find was given, one after the other; the stages are of the last one."""


TEMPLATE = """
<p>{{ values.time }} of {{ values.budget }}, with {{ values.workers }} process{{ "es" if values.workers != 1 }}.
{% if values.legs > 1 %}
This find was given {{ values.legs }} budgets, one after the other; the stages below are of the last one.
{% endif %}
</p>
<div class="scroll"><table>
  <thead><tr>
    <th scope="col">stage</th>
    <th scope="col">what was done</th>
    <th scope="col" class="n">planned</th>
    <th scope="col" class="n">took</th>
  </tr></thead>
  <tbody>
  {% for stage in values.stages %}
  <tr>
    <th scope="row">{{ stage.name }}</th>
    <td>{{ stage.work }}</td>
    <td class="n nowrap">{{ stage.planned }}</td>
    <td class="n nowrap">{{ stage.took }}</td>
  </tr>
  {% endfor %}
  </tbody></table></div>
"""

SECTION = Section(
    name="cost",
    title="Cost",
    heading="Cost: what was planned, and what was done",
    values=CostValues,
    template=TEMPLATE,
    empty="The plan of this find is not kept.",
)
