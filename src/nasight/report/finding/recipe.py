"""How all candidates were trained, and the recipes among which that was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nasight.data import Units
from nasight.report._section import Section


@dataclass(frozen=True)
class TriedRecipe:
    """Settings of a training that were tried on the reference."""

    lr: float
    """Learning rate."""
    weight_decay: float
    """Decay of the weights."""
    augmentation: str
    """Random changes of images."""
    accuracy: float | None
    """In percent; None: the training failed."""
    epochs: int | None = None
    """Of the training; None: unknown."""
    whole: bool = False
    """Whether it was as long as those of the race; else it was a short one."""
    chosen: bool = False
    """Whether all candidates were trained like this."""


@dataclass(frozen=True)
class RecipeValues:
    """The recipe of a find."""

    chosen: TriedRecipe
    """How all candidates were trained; its accuracy is that of the reference."""
    tried: Sequence[TriedRecipe]
    """In the order in which they were tried; empty where an earlier leg chose."""
    batch_size: int
    """Examples per step."""
    images: bool = True
    """Whether examples are images, which random changes are for."""
    units: Units = field(default_factory=Units)
    """In which scores are written."""
    own: Sequence[TriedRecipe] = ()
    """Learning rates that were tried on the user's own baseline, which has the best of them."""

    @property
    def epochs(self) -> int | None:
        """Of the short trainings by which it was chosen; None: unknown."""
        return next((recipe.epochs for recipe in self.tried if not recipe.whole), None)

    @property
    def checked(self) -> bool:
        """Whether whole trainings compared random changes."""
        return any(recipe.whole for recipe in self.tried)


TEMPLATE = """
{% set chosen = values.chosen %}
<p>All networks of the space were trained with
a learning rate of <strong>{{ "%g"|format(chosen.lr) }}</strong>, a weight decay of
<strong>{{ "%g"|format(chosen.weight_decay) }}</strong>
{%- if values.images %}, random changes of images: <strong>{{ chosen.augmentation }}</strong>{% endif %},
{{ values.batch_size }} examples per step.
{% if values.tried %}
That was chosen on the space's reference before any candidate was seen, one setting after the other
{%- if values.epochs %}, by {{ "short " if values.checked }}trainings of {{ values.epochs }} epochs{% endif %}.
{% if values.checked %}Random changes slow a network down at first and help it later, so whole trainings compared
them.{% endif %}</p>
<div class="scroll"><table>
  <thead><tr>
    {% if values.images %}<th scope="col">random changes</th>{% endif %}
    <th scope="col" class="n">learning rate</th>
    <th scope="col" class="n">weight decay</th>
    {% if values.checked %}<th scope="col">training</th>{% endif %}
    <th scope="col" class="n">{{ values.units.axis }}</th>
    <th scope="col"></th>
  </tr></thead>
  <tbody>
  {% for recipe in values.tried %}
  <tr>
    {% if values.images %}<td>{{ recipe.augmentation }}</td>{% endif %}
    <td class="n">{{ "%g"|format(recipe.lr) }}</td>
    <td class="n">{{ "%g"|format(recipe.weight_decay) }}</td>
    {% if values.checked %}<td>{{ "whole" if recipe.whole else "short" }}, {{ recipe.epochs }} epochs</td>{% endif %}
    <td class="n">{{ values.units.number(recipe.accuracy) if recipe.accuracy is not none else "failed" }}</td>
    <td>{% if recipe.chosen %}<span class="tag safe">chosen</span>{% endif %}</td>
  </tr>
  {% endfor %}
  </tbody></table></div>
{% else %}
An earlier leg of this find (its budget before more time was given) chose it.</p>
{% endif %}
{% if values.own %}
<p>Your baseline has the best of three learning rates of its own, since the others were chosen on another network:
{% for recipe in values.own -%}
{{ "%g"|format(recipe.lr) }} ({{ values.units.text(recipe.accuracy) if recipe.accuracy is not none else "failed" }}
{%- if recipe.chosen %}, chosen{% endif %}){{ "." if loop.last else ", " }}
{%- endfor %}</p>
{% endif %}
"""

SECTION = Section(
    name="recipe",
    title="Recipe",
    heading="Recipe: how all were trained",
    values=RecipeValues,
    template=TEMPLATE,
    empty="No recipe was chosen yet. <code>nasight find --resume {{ subject }}</code>",
)
