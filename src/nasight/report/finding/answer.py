"""The answer of a find on one screen: the sentence, both sides, the interval, the cost, and what to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev

from nasight.anatomy import Design
from nasight.data import Units
from nasight.report._cell import drawings
from nasight.report._section import Section
from nasight.report._svg import text
from nasight.report.finding._candidate import proposer_words

WIDTH, INSET, DIGIT = 360.0, 62.0, 7.5
DOT = 5.5
LOOKS = {True: "safe", False: "plain", None: "plain"}
"""Whether the winner is better -> the class of the verdict."""
WORDS = {
    True: "above zero: the winner is better",
    False: "below zero: the baseline is better",
    None: "holds zero: not decided",
}


@dataclass(frozen=True)
class TrainedSide:
    """The winner or the baseline of a find, trained with several seeds."""

    name: str
    """What it is, such as "a plain network"."""
    architecture: str
    """As text."""
    accuracies: Sequence[float]
    """On the test part in percent, one per seed."""
    parameters: int
    """Of its network."""
    proposed_by: Sequence[str]
    """Who proposed it, the first one first."""
    taken: bool
    """Whether the answer says to take it."""
    multiply_adds: int | None = None
    """Per example; None: unknown."""
    epochs: int | None = None
    """Of each training; None: it has none."""
    seconds: float | None = None
    """That each took; None: unknown."""

    @property
    def training(self) -> str:
        """The length of its trainings in words."""
        epochs = "" if self.epochs is None else f"{self.epochs} epoch{'' if self.epochs == 1 else 's'}"
        return " in ".join(filter(None, [epochs, "" if self.seconds is None else f"{self.seconds:.3g} s"]))

    @property
    def proposers(self) -> str:
        """Who proposed it, in words."""
        return "; ".join(map(proposer_words, self.proposed_by))


@dataclass(frozen=True)
class FoundValues:
    """What a find found."""

    heading: str
    """What was looked for, and where."""
    sentence: str
    """The answer."""
    better: bool | None
    """Whether the winner is better than the baseline; None: the interval holds zero."""
    winner: TrainedSide
    """The best that was raced."""
    baseline: TrainedSide
    """What it is compared with; the winner itself where nothing beat it."""
    difference: float
    """Winner less baseline, in points."""
    interval: tuple[float, float]
    """Of the difference."""
    level: float
    """Of the interval, in percent."""
    time: str
    """What the find took, as a person says it."""
    budget: str
    """What it was given."""
    trainings: int
    """From scratch, all of them."""
    test_rows: int | None
    """Rows that judge the answer; None: unknown."""
    design: Design | None
    """The winner's cells; None where it is not made of cells."""
    command: str
    """The command that uses it."""
    units: Units = field(default_factory=Units)
    """In which scores are written."""
    figures: Sequence[str] = ()
    """Further figures of the network that is taken, a line each."""
    figures_network: str = ""
    """Which network that is: they are of one seed, the scores of a side of several."""
    warning: str | None = None
    """What to know about its score, such as that the most frequent class would score as high."""
    target: str | None = None
    """Whether the training that is meant in the end was reached; None: the find's own is meant."""
    described: Sequence[str] = ()
    """The winner in words, a line for each of its parts; empty: its text says it all."""
    shallow: str | None = None
    """What to know of a winner whose cell is shallow."""
    cautions: Sequence[str] = ()
    """What to know of the interval, a sentence each."""

    @property
    def same(self) -> bool:
        """Whether no candidate was left to compare the baseline with."""
        return self.winner.architecture == self.baseline.architecture

    @property
    def sides(self) -> tuple[TrainedSide, ...]:
        """The winner and the baseline, or the one that is both."""
        return (self.baseline,) if self.same else (self.winner, self.baseline)

    @property
    def taken(self) -> TrainedSide:
        """What the answer says to take."""
        return next(side for side in (self.winner, self.baseline) if side.taken)

    @property
    def state(self) -> str:
        """The class of the verdict."""
        return LOOKS[self.better]

    @property
    def words(self) -> str:
        """What the interval says."""
        return WORDS[self.better]

    @property
    def drawings(self) -> list[tuple[str, str]]:
        """What each of the winner's cells is called, and its drawing."""
        return drawings(self.design)

    def dots(self, side: TrainedSide) -> str:
        """The accuracies of a side, a dot per seed; both sides have one scale."""
        return dots_svg(side.accuracies, [a for each in self.sides for a in each.accuracies], self.units)

    def score(self, side: TrainedSide) -> str:
        """The score of a side, with its unit and spread."""
        middle, spread = mean(side.accuracies), stdev(side.accuracies) if len(side.accuracies) > 1 else 0.0
        return f"{self.units.metric} {self.units.number(middle)} ± {self.units.number(spread)}"

    @property
    def bar(self) -> str:
        """The interval of the difference beside zero."""
        scale = 1 if self.units.percent else 100
        digits = 2 if self.units.percent else 4
        return interval_svg(self.difference / scale, *(end / scale for end in self.interval), digits=digits)


def dots_svg(values: Sequence[float], all_values: Sequence[float], units: Units | None = None) -> str:
    """Numbers as dots on a line that reaches over all values, a tick at their mean; equal ones are stacked."""
    units, low, high = units or Units(), min(all_values), max(all_values)
    pad = 0.08 * (high - low) or 0.5
    low, high = low - pad, high + pad

    def at(value: float) -> float:
        return 8 + (WIDTH - 16) * (value - low) / (high - low)

    middle, floor = sum(values) / len(values), 40.0
    parts = [f'<path class="ff-axis" d="M8 {floor} H{WIDTH - 8:.0f}"/>']
    parts.append(f'<path class="ff-mean" d="M{at(middle):.1f} {floor - 30} V{floor + 5}"/>')
    placed = list[float]()
    for value in values:
        x = at(value)
        above = sum(abs(x - other) < 2 * DOT for other in placed)
        placed.append(x)
        y = floor - 9 - 2 * DOT * min(above, 2)
        place = f'cx="{x:.1f}" cy="{y:.1f}" r="{DOT}"'
        parts.append(f'<circle class="ff-dot" {place}><title>{units.text(value)}</title></circle>')
    parts += [text(8, floor + 17, units.number(low)), text(WIDTH - 8, floor + 17, units.text(high), "end")]
    each = ", ".join(units.text(value) for value in values)
    return _drawing(62, f"{units.metric.capitalize()} with each seed: {each}", parts)


def interval_svg(middle: float, low: float, high: float, *, digits: int = 2) -> str:
    """A difference and its interval as a bar on a line, with zero marked."""
    ends = min(low, 0.0), max(high, 0.0)
    reach = ends[1] - ends[0] or 1.0

    def at(value: float) -> float:
        return INSET + (WIDTH - 2 * INSET) * (value - ends[0]) / reach if ends[1] > ends[0] else WIDTH / 2

    def room(value: float) -> float:
        """What a number needs so that it does not stand on the line at zero."""
        return 8 + DIGIT * len(f"{value:+.{digits}f}")

    y, zero, wide = 38.0, at(0.0), max(at(high) - at(low), 2.0)
    parts = [
        f'<path class="ff-axis" d="M8 {y} H{WIDTH - 8:.0f}"/>',
        f'<path class="ff-zero" d="M{zero:.1f} {y - 24} V{y + 24}"/>',
        f'<rect class="ff-bar" x="{at(low):.1f}" y="{y - 8}" width="{wide:.1f}" height="16" rx="3"/>',
        f'<circle class="ff-dot" cx="{at(middle):.1f}" cy="{y}" r="{DOT}"/>',
        text((zero if 0 < at(low) - zero < room(low) else at(low)) - 6, y - 12, f"{low:+.{digits}f}", "end"),
        text((zero if 0 < zero - at(high) < room(high) else at(high)) + 6, y - 12, f"{high:+.{digits}f}"),
        text(zero, y + 38, "0", "middle"),
        text(zero - 12, y + 38, "← baseline better", "end") if zero > 120 else "",
        text(zero + 12, y + 38, "winner better →") if zero < WIDTH - 110 else "",
    ]
    return _drawing(
        80, f"Difference {middle:+.{digits}f}, interval from {low:+.{digits}f} to {high:+.{digits}f}", parts
    )


def _drawing(height: float, title: str, parts: Sequence[str]) -> str:
    """A small drawing in the page's colors; its texts are numbers and words of this file."""
    box = f'viewBox="0 0 {WIDTH:.0f} {height:.0f}"'
    return f'<svg class="ff" {box} role="img"><title>{title}</title>{"".join(parts)}</svg>'


TEMPLATE = """
<p class="verdict answer {{ values.state }}">{{ "✓ " if values.better }}{{ values.sentence }}</p>
<div class="sides">
{% for side in values.sides %}
  <div class="side{{ " taken" if side.taken }}">
    <h2>{{ "Baseline" if side is sameas values.baseline else "Winner of the race" }}
      {% if side.taken %}<span class="tag safe">take this</span>{% endif %}</h2>
    <p class="large">{{ side.accuracies|spread ~ " %" if values.units.percent else values.score(side) }}</p>
    {{ svg(values.dots(side)) }}
    <p class="under">{{ side.parameters|number }} parameters
      {%- if side.multiply_adds is not none %}, {{ side.multiply_adds|number }} multiply-adds{% endif %}<br>
      {% if side.training %}each training: {{ side.training }}<br>{% endif %}
      {{ side.name if side is sameas values.baseline else "proposed by: " ~ side.proposers }}</p>
  </div>
{% endfor %}
  <div class="side">
    <h2>Difference and cost</h2>
    {% if values.same %}
    <p>Nothing that was raced beat the baseline, so there is no difference to measure.</p>
    {% else %}
    <p class="large">{{ values.units.difference(values.difference, sign=True) }}</p>
    {{ svg(values.bar) }}
    <p class="under">Interval of {{ "%g"|format(values.level) }} %
      {%- if values.test_rows %}, on {{ values.test_rows|number }} test rows{% endif %}, {{ values.words }}.</p>
    {% endif %}
    <p class="cost"><strong>{{ values.time }}</strong>, <strong>{{ values.trainings|number }}</strong> trainings;
      budget {{ values.budget }}</p>
  </div>
</div>
<div class="split">
  <div class="drawings">
  {% for name, drawing in values.drawings %}
    <figure>{{ svg(drawing) }}<figcaption>The {{ name }} of the {{ "baseline" if values.same else "winner" }}.
    </figcaption></figure>
  {% else %}
    <p class="note">The {{ "baseline" if values.same else "winner" }}:<br>
    <span class="code">{{ values.winner.architecture }}</span></p>
    {% if values.described %}
    <ul>{% for line in values.described %}<li>{{ line }}</li>{% endfor %}</ul>
    {% endif %}
  {% endfor %}
  </div>
  <div>
    <h2>Take {{ values.taken.name }}</h2>
    {% if values.target %}<p class="note">Target: {{ values.target }}.</p>{% endif %}
    {% if values.shallow %}
    <p class="note">It may be ahead only because it learns fast at first: {{ values.shallow }}.</p>
    {% endif %}
    {% for text in values.cautions %}<p class="note">{{ text[:1]|upper }}{{ text[1:] }}.</p>{% endfor %}
    {% if values.warning %}<p class="note">{{ values.warning[:1]|upper }}{{ values.warning[1:] }}.</p>{% endif %}
    <p>{{ "It" if values.taken.parameters else "The best network" }} is trained, and lies in
    <span class="code">model/</span> (seed 1 of {{ values.taken.accuracies|length }}). To use it on new files:</p>
    <div class="copy">
      <pre id="use">{{ values.command }}</pre>
      <button type="button" data-copy="use">Copy</button>
    </div>
    {% if values.figures %}
    <details><summary>Test figures {{ values.figures_network }}; {{ values.figures[0] }}</summary>
    <p class="under">{% for line in values.figures[1:] %}{{ line }}<br>{% endfor %}</p></details>
    {% endif %}
    {% for side in values.sides %}
    <details><summary>{{ "The baseline" if side is sameas values.baseline else "The winner" }} as text</summary>
    <p class="code">{{ side.architecture }}</p></details>
    {% endfor %}
  </div>
</div>
"""

SECTION = Section(
    name="answer",
    title="Answer",
    heading="{% if values %}{{ values.heading }}{% else %}Answer{% endif %}",
    values=FoundValues,
    template=TEMPLATE,
    empty="There is no answer yet. <code>nasight find --resume {{ subject }}</code>",
)
