"""What a find did not try, so that nobody reads more into its answer than is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log10

from markupsafe import Markup

from nasight.report._section import Section

MANY = 10**12
"""Counts from here on are written as powers of ten."""


@dataclass(frozen=True)
class UntriedValues:
    """How much of what could be tried was tried."""

    space: str
    """What was searched, such as "the space mlp"."""
    architectures: int | None
    """How many it has; None: unknown."""
    searches: int
    """Weight-sharing searches, each of which holds them all."""
    scored: int
    """Architectures that were scored without training."""
    raced: int
    """Architectures that were trained in the race, controls not counted."""
    finished: int
    """Of them, those on the last rung."""
    compared: int
    """Networks that were trained with several seeds for the answer."""
    seeds: int
    """How many."""
    rows: int
    """Training rows there are."""
    examples: int
    """Training rows that the longest trainings used, those that judge the race among them."""
    fewest: int | None
    """Rows that the trainings of the first rung learned from; None: unknown."""
    judged_rows: int | None
    """Of them, those that judge recipe and race; None: unknown."""
    test_rows: int | None
    """Rows that judge the answer; None: unknown."""
    size: Mapping[str, int]
    """Of the networks; empty where the space has no sizes."""
    target: str | None
    """The preset of the later training that the find was for."""
    target_size: Mapping[str, int]
    """Of its networks."""
    longest: int
    """Epochs of the winner's longest training in the race."""
    epochs: int
    """Of its trainings that answer."""
    max_params: int | None
    """The limit; None: there was none."""
    max_latency: float | None
    """The limit in milliseconds per example; None: there was none."""
    most_products: float | None = None
    """Multiply-adds per example of the largest networks that there was time for; None: for all."""

    @property
    def count(self) -> str:
        """How many architectures the space has, in writing."""
        return "" if self.architectures is None else count_text(self.architectures)

    @property
    def untrained(self) -> str | None:
        """The share of architectures that no training has seen, in percent; None: unknown."""
        if self.architectures is None or self.architectures < self.raced:
            return None
        share = 100 * (1 - self.raced / self.architectures)
        return "more than 99.9" if share > 99.9 and share < 100 else f"{share:.3g}" if share < 100 else "almost 100"


def count_text(number: int) -> str:
    """A count in writing; the largest ones as powers of ten.

    >>> count_text(15625), count_text(3 * 10**18)
    ('15,625', Markup('about 3.0 · 10<sup>18</sup>'))
    """
    if number < MANY:
        return f"{number:,}"
    power = int(log10(number))
    return Markup("about {} · 10<sup>{}</sup>").format(f"{number / 10**power:.1f}", power)


TEMPLATE = """
{% macro sizes(size) %}
{% for name, value in size.items() %}{{ name }} {{ value|number }}{{ ", " if not loop.last }}{% endfor %}
{% endmacro %}
<ul class="advice">
  <li><strong>Architectures.</strong>
  {% if values.count %}
  {{ values.space[:1]|upper }}{{ values.space[1:] }} has {{ values.count }}.
  {% else %}
  How many {{ values.space }} has is not known here.
  {% endif %}
  {% if values.searches %}
  {{ values.searches }} search{{ "es" if values.searches != 1 }} held all of them at once, with shared weights.
  {% endif %}
  {{ values.scored|number }} were scored without training, {{ values.raced|number }} were trained in the race
  {%- if values.finished < values.raced %}, {{ values.finished|number }} of them to the last rung{% endif %}.
  {% if values.untrained %}
  {{ values.untrained }} % were never trained by themselves: a better one may be among them.
  {% endif %}
  </li>
  {% if values.max_params or values.max_latency %}
  <li><strong>Limits.</strong> Only architectures
  {%- if values.max_params %} of at most {{ values.max_params|number }} parameters{% endif %}
  {%- if values.max_params and values.max_latency %} and{% endif %}
  {%- if values.max_latency %} of at most {{ "%g"|format(values.max_latency) }} ms per example{% endif %}
  were candidates.</li>
  {% endif %}
  {% if values.most_products %}
  <li><strong>Larger networks.</strong> Only networks of up to
  {{ "%.3g"|format(values.most_products / 1e6) }} million multiply-adds per example were candidates. A budget of far
  more time also tries larger ones.</li>
  {% endif %}
  <li><strong>Rows.</strong>
  {% if values.examples < values.rows %}
  No training used more than {{ values.examples|number }} of {{ values.rows|number }} training rows; with more rows the
  order may be another.
  {% else %}
  The trainings of the answer used all {{ values.rows|number }} training rows.
  {% endif %}
  {% if values.fewest %}
  Those of the first rung learned from {{ values.fewest|number }}.
  {% endif %}
  {% if values.judged_rows %}
  In the race {{ values.judged_rows|number }} of them judged and the others taught.
  {% endif %}
  {% if values.test_rows %}
  The answer is judged by {{ values.test_rows|number }} test rows, which chose nothing.
  {% endif %}
  </li>
  <li><strong>Length.</strong> The winner's longest training in the race had {{ values.longest }}
  epoch{{ "s" if values.longest != 1 }}, those of the answer {{ values.epochs }}. Longer trainings may rank otherwise.
  {% if values.epochs < values.longest %}
  The answer's are shorter than the longest of the race, so both networks may be trained too little: a larger budget
  helps.
  {% endif %}
  </li>
  {% if values.size %}
  <li><strong>Size.</strong> All were trained with {{ sizes(values.size)|trim }}; larger networks may rank otherwise.
  {% if values.target %}
  The target, preset {{ values.target }} with {{ sizes(values.target_size)|trim }}, was not trained.
  {% endif %}
  </li>
  {% endif %}
  <li><strong>Recipes.</strong> All networks of the space were trained with one recipe, the best for the
  reference. Another architecture may prefer another one.</li>
  <li><strong>Seeds.</strong> {{ values.compared }} network{{ "s were" if values.compared != 1 else " was" }} trained
  with {{ values.seeds }} seeds for the answer; the candidates of the race with one.</li>
</ul>
"""

SECTION = Section(
    name="untried",
    title="Not tried",
    heading="What was not tried",
    values=UntriedValues,
    template=TEMPLATE,
    empty="Nothing is known of what was tried.",
)
