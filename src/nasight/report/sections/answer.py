"""What was found, what it is worth, and whether to believe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nasight.anatomy import Design
from nasight.data import Units
from nasight.report._cell import drawings
from nasight.report._section import Section
from nasight.trust import Advice

SYMBOLS = {"safe": "✓", "unsafe": "✗", "unknown": "?"}


@dataclass(frozen=True)
class RetrainedAccuracy:
    """The accuracy of the found network after training from scratch, in percent."""

    mean: float
    """Over the seeds."""
    spread: float | None
    """Standard deviation over the seeds; None for one seed."""
    seeds: int
    """How many trainings."""
    judged_by: str
    """The data that it was measured on, such as "the test part"."""


@dataclass(frozen=True)
class AnswerValues:
    """What was found, what it is worth, and whether to believe it."""

    heading: str
    """What was searched, how and on which data."""
    state: str
    """Whether to believe it: safe, unsafe or unknown."""
    verdict: str
    """The same in one sentence."""
    architecture: str
    """The architecture as text."""
    design: Design | None
    """Its cells; None where the architectures of the space are not made of cells."""
    retrained: RetrainedAccuracy | None
    """Its accuracy after training from scratch; None: not yet trained."""
    shared: float | None
    """Its accuracy alone with the shared weights on held-out data, percent."""
    supernet: float | None
    """The accuracy of all architectures mixed, percent."""
    parameters: int | None
    """Parameters of its network; None: unknown."""
    multiply_adds: int | None
    """Per example; None: unknown."""
    seconds: float
    """What the search took."""
    advice: Sequence[Advice]
    """What to do next."""
    train_command: str
    """The command that trains it."""
    units: Units = field(default_factory=Units)
    """In which scores are written."""
    figures: Sequence[str] = ()
    """Further figures of the found architecture with the shared weights, a line each."""
    warning: str | None = None
    """What to know about the score, such as that the most frequent class would score as high."""

    @property
    def symbol(self) -> str:
        """A sign for the state, for readers who do not see colors."""
        return SYMBOLS[self.state]

    @property
    def drawings(self) -> list[tuple[str, str]]:
        """What each cell is called, and its drawing."""
        return drawings(self.design)


TEMPLATE = """
<p class="verdict {{ values.state }}"><strong>{{ values.symbol }}</strong> {{ values.verdict }}</p>
<div class="split">
  <div class="drawings">
  {% for name, drawing in values.drawings %}
    <figure>{{ svg(drawing) }}<figcaption>The {{ name }} that was found.</figcaption></figure>
  {% else %}
    <p class="code">{{ values.architecture }}</p>
  {% endfor %}
  </div>
  <dl class="facts">
    {% set units = values.units %}
    <div><dt>{{ units.metric }}, retrained</dt><dd>
    {% set found = values.retrained %}
    {% if found %}
      {{ units.number(found.mean) }}{% if found.seeds > 1 %} ± {{ units.number(found.spread) }}{% endif %}
      {{- " %" if units.percent }}
      <small>{{ found.seeds }} seed{{ "s" if found.seeds > 1 }}, on {{ found.judged_by }}</small>
    {% else %}
      not yet <small class="code">{{ values.train_command }}</small>
    {% endif %}
    </dd></div>
    <div><dt>{{ units.metric }}, shared weights</dt><dd>{{ units.bare(values.shared) if values.shared is not none }}
      <small>this architecture alone, held-out data; all mixed:
      {{ units.bare(values.supernet) if values.supernet is not none }}</small></dd></div>
    <div><dt>size</dt><dd>
    {% if values.parameters %}
      {{ values.parameters|number }} <small>parameters</small>
      {% if values.multiply_adds %}<small>{{ values.multiply_adds|number }} multiply-adds per example</small>{% endif %}
    {% else %}
      unknown
    {% endif %}
    </dd></div>
    <div><dt>cost of the search</dt><dd>{{ values.seconds|number(0) }} s</dd></div>
  </dl>
</div>
{% if values.figures %}
<p class="under">With the shared weights, on held-out data:<br>
{% for line in values.figures %}{{ line }}<br>{% endfor %}</p>
{% endif %}
{% if values.warning %}<p class="note">{{ values.warning[:1]|upper }}{{ values.warning[1:] }}.</p>{% endif %}
{% if values.advice %}
<h2>What to do</h2>
<ul class="advice">
{% for advice in values.advice %}
  <li><strong>{{ advice.action }}</strong>: {{ advice.why }}
  {% if advice.command %}
    <br><code>{{ advice.command }}</code>
  {% endif %}
  </li>
{% endfor %}
</ul>
{% endif %}
<details><summary>The architecture as text</summary><p class="code">{{ values.architecture }}</p></details>
"""

SECTION = Section(
    name="answer",
    title="Answer",
    heading="{% if values %}{{ values.heading }}{% else %}Answer{% endif %}",
    values=AnswerValues,
    template=TEMPLATE,
    empty="There is no answer yet. <code>nasight explain {{ subject }}</code>",
)
