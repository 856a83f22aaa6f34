"""The race: every candidate a line over the rungs, a table of them, and how well a rung predicted the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from nasight.data import Units
from nasight.report._charts import axis, line
from nasight.report._section import Chart, Section
from nasight.report._svg import COLORS
from nasight.report.finding._candidate import RacedCandidate, hover, proposer_words, size_lines

WINNER, RUNNING, CONTROL, LEFT, FAILED = COLORS[5], COLORS[0], COLORS[6], "#7f8993", COLORS[3]
RANKS = {"winner": 1, "control": 2, "running": 3, "time": 4, "behind": 5, "failed": 6}
"""The order of the legend; the winner is drawn last, so that nothing covers it."""
APART = 0.035
"""How far apart candidates of one accuracy are drawn; the rungs are 1 apart."""
FADING = ((0.14, 0.5), (0.26, 0.26), (0.36, 0.1))
"""The tail of one that left: how far it reaches, and how dark it is there."""
FAR = 3.0
"""A spread that is this many times that of the better half calls for a closer look at them."""
SHOWN = 16
"""Candidates in the table that is open; the others can be unfolded."""


@dataclass(frozen=True)
class RungAgreement:
    """How well a rung predicted the next."""

    before: str
    """The trainings of the rung in words, such as "6 epochs"."""
    after: str
    """Those of the next one."""
    candidates: int
    """Trained on both."""
    tau: float
    """Kendall's, of their accuracies."""
    p: float
    """The probability of such a tau, or a larger one, by chance."""
    predicts: bool
    """Whether that is small enough to rely on."""


@dataclass(frozen=True)
class FindRaceValues:
    """The race of a find."""

    rungs: Sequence[str]
    """The trainings of each rung in words, such as "6 epochs"."""
    candidates: Sequence[RacedCandidate]
    """All of them, by their number."""
    agreements: Sequence[RungAgreement]
    """For each rung but the last."""
    seed_deviation: float | None
    """The standard deviation of an accuracy over seeds, in points; None: unknown."""
    judged_rows: int | None
    """Rows that judge the race; None: unknown."""
    equal_time: bool = False
    """Whether all trainings of a rung took about the same time; else they had the same epochs."""
    whole: bool = False
    """Whether all trainings of the race were as long as those of the answer, so that nobody left early."""
    units: Units = field(default_factory=Units)
    """In which scores are written."""

    @property
    def tables(self) -> list[Sequence[RacedCandidate]]:
        """The candidates of the table that is open, and of the one to be unfolded."""
        cut = SHOWN if len(self.candidates) > SHOWN + 4 else len(self.candidates)
        return [self.candidates[:cut], self.candidates[cut:]]

    @property
    def counted(self) -> bool:
        """Whether multiply-adds of a candidate are known."""
        return any(candidate.multiply_adds is not None for candidate in self.candidates)

    @property
    def left(self) -> bool:
        """Whether the table says why candidates left: not where nobody could leave and nobody failed."""
        return not self.whole or any(candidate.why for candidate in self.candidates)

    @property
    def by_cost(self) -> bool:
        """Whether candidates are drawn over what an example costs: they have no rungs to be drawn over."""
        return self.whole and all(candidate.multiply_adds for candidate in self.candidates)

    @property
    def closer(self) -> tuple[float, float] | None:
        """Accuracies between which the better half is; None where the others are not far below."""
        known = [a for c in self.candidates for a in c.accuracies if a is not None]
        better = self.candidates[: (len(self.candidates) + 1) // 2]
        high = max(known, default=0.0)
        low = min((a for c in better for a in c.accuracies if a is not None), default=0.0)
        margin = 0.06 * (high - low) or 0.5
        if not known or high - min(known) <= FAR * (high - low):
            return None
        return self.units.drawn(low - margin), self.units.drawn(high + margin)

    @property
    def trained(self) -> int:
        """How many candidates were trained, controls not counted."""
        return sum(c.trained and not c.control for c in self.candidates)

    @property
    def too_slow(self) -> int:
        """How many candidates were not trained, since their fewest epochs take far longer than a training."""
        return sum(not c.control for c in self.candidates) - self.trained

    @property
    def finished(self) -> int:
        """How many candidates, controls not counted, are trained on the last rung."""
        return sum(c.reached == len(self.rungs) - 1 for c in self.candidates if not c.control)


TEMPLATE = """
{% macro table(candidates) %}
<div class="scroll"><table>
  <thead><tr>
    <th scope="col" class="n">no.</th>
    <th scope="col">proposed by</th>
    <th scope="col" class="n">parameters{% if values.counted %}<br><small>multiply-adds</small>{% endif %}</th>
    {% for rung in values.rungs %}
    <th scope="col" class="n">{{ rung }}{{ ", %" if values.units.percent }}</th>
    {% endfor %}
    {% if values.left %}<th scope="col" class="nowrap">left because</th>{% endif %}
    <th scope="col">architecture</th>
  </tr></thead>
  <tbody>
  {% for c in candidates %}
  <tr{% if c.reason %} class="gone"{% endif %}>
    <th scope="row" class="n">{{ c.number }}</th>
    <td class="who">{{ c.proposers }}
      {%- if c.role %} <span class="tag {{ "safe" if c.role == "winner" else "unknown" }}">{{ c.role }}</span>
      {%- elif c.control %} <span class="tag plain">control</span>{% endif %}</td>
    <td class="n">{{ c.parameters|number }}
      {%- if c.multiply_adds is not none %}<br><small>{{ c.multiply_adds|number }}</small>{% endif %}</td>
    {% for accuracy in c.accuracies %}
    <td class="n">{{ values.units.number(accuracy) if accuracy is not none else "" }}</td>
    {% endfor %}
    {% if values.left %}<td class="nowrap">{{ c.why }}</td>{% endif %}
    <td class="code arch">{{ c.architecture }}</td>
  </tr>
  {% endfor %}
  </tbody></table></div>
{% endmacro %}
<p>{{ values.trained }} candidate{{ "s" if values.trained != 1 }} and
{% set controls = values.candidates|selectattr("control")|list|length %}
{{ controls }} control{{ "s" if controls != 1 }} were trained from scratch, those of the space with one recipe, the
{{ "trainings of a rung" if values.rungs|length > 1 else "trainings" }} on the same rows in the same order
{%- if values.judged_rows %}, and judged by {{ values.judged_rows|number }} other rows{% endif %}.
{% if values.whole and values.equal_time %}
All trainings take about as long as those of the answer: as {{ values.rungs[0] }} of the reference. Slower networks have
fewer epochs, faster ones more. Short trainings favor fast networks, so there were none, and nobody left early.
{% elif values.whole %}
All trainings have {{ values.rungs[0] }}. Short trainings favor what starts fast, so none were shorter, and nobody
left early.
{% else %}
Every rung is a whole training of its length.
{% if values.equal_time %}
All trainings of a rung take about the same time: its epochs are those of the reference, slower networks have fewer and
faster ones more.
{% endif %}
Candidates that are clearly behind leave. The best of the others continue
while there is time: {{ values.finished }} of the candidates reached the last rung. Controls never leave.
{% endif %}
{% if values.too_slow %}
{{ values.too_slow }} more {{ "was" if values.too_slow == 1 else "were" }} not trained: two epochs would have taken far
longer than the first training of others.
{% endif %}
</p>
{% if values.closer %}
<p><button type="button" id="closer" aria-pressed="false" data-range="{{ values.closer|list }}">Enlarge the better half
</button></p>
{% endif %}
<figure>
  {% set over = " over what an example costs" if values.by_cost else "" if values.whole else " over the rungs" %}
  {{ chart("race", "Score of each candidate" ~ over ~ ": " ~ values.units.metric, id="chart-race") }}
  <figcaption>Point at a dot to see who it is{{ " and why it left" if not values.whole }}; drag to enlarge a part,
  double click to go back.
  {% if not values.by_cost %}Candidates of equal {{ values.units.metric }} are drawn beside each other.{% endif %}
  </figcaption>
</figure>
{% if values.agreements %}
<h3>How well a short training predicts a longer one</h3>
{% for a in values.agreements %}
<p>From {{ a.before }} to {{ a.after }}:
{% if a.candidates < 3 %}
only {{ a.candidates }} were trained on both, too few to tell.
{% else %}
{{ a.candidates }} were trained on both, and their order has a Kendall's tau of {{ "%+.2f"|format(a.tau) }}
(1: the same order, 0: none in common; p = {{ "below 0.001" if a.p < 0.001 else "%.3f"|format(a.p) }}).
{% if a.predicts %}
That is more than chance: the shorter training says something about the longer one.
{% else %}
That cannot be told from chance: one that left after {{ a.before }} might have come back.
{% endif %}
{% endif %}
</p>
{% endfor %}
<p class="note">Only those that went on can be compared, and they were close to each other, which makes tau smaller
{%- if values.seed_deviation is not none %}. Another seed alone moves the {{ values.units.metric }} by about
{{ values.units.difference(values.seed_deviation) }} (standard deviation, from the controls){% endif %}.</p>
{% endif %}
<h3>All candidates</h3>
{{ table(values.tables[0]) }}
{% if values.tables[1] %}
<details><summary>The other {{ values.tables[1]|length }} candidates</summary>{{ table(values.tables[1]) }}</details>
{% endif %}
"""


SCRIPT = """
  const button = section.querySelector("#closer"), place = section.querySelector("#chart-race");
  if (!button) return;
  const whole = charts.race, range = JSON.parse(button.dataset.range);
  const near = { ...whole, layout: { ...whole.layout, yaxis: { ...whole.layout.yaxis, range } } };
  button.addEventListener("click", () => {
    const pressed = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(pressed));
    button.textContent = pressed ? "Show all" : "Enlarge the better half";
    draw(place, pressed ? near : whole);
  });
"""


def charts(values: FindRaceValues) -> dict[str, Chart]:
    """Accuracy over the rungs: the winner, those in the race, the controls, and those that left, fading."""
    known, units = [a for c in values.candidates for a in c.accuracies if a is not None], values.units
    spread = (max(known) - min(known) if known else 0.0) or 1.0
    floor = (min(known) if known else 0.0) - 0.08 * spread
    raw = _places(values.candidates, floor)
    if values.by_cost:
        costs = {c.number: (c.multiply_adds or 0) / 1e6 for c in values.candidates}
        raw = {key: (costs[key[0]], y) for key, (_, y) in raw.items()}
    places = {key: (x, units.drawn(y)) for key, (x, y) in raw.items()}
    kinds: dict[str, list[RacedCandidate]] = {}
    for candidate in values.candidates:
        kinds.setdefault(_kind(candidate), []).append(candidate)
    data = [trace for kind in ("time", "behind") for trace in _tails(kinds.get(kind, ()), places)]
    looks: dict[str, tuple[str, str, dict[str, Any], float]] = {
        "behind": ("left: surely behind", LEFT, {"symbol": "x", "size": 7}, 0.7),
        "time": ("left: no time", LEFT, {"symbol": "circle-open", "size": 8}, 0.85),
        "failed": ("failed", FAILED, {"symbol": "x", "size": 9}, 0.9),
        "running": ("candidates" if values.whole else "to the last rung", RUNNING, {"size": 8}, 1.0),
    }
    for kind, (name, color, marker, opacity) in looks.items():
        if kind in kinds:
            width = 1.6 if kind != "running" else 2.4
            trace = _traced(name, kinds[kind], places, values.rungs, units, color, marker, opacity=opacity, width=width)
            data.append({**trace, "legendrank": RANKS[kind]})
    for i, control in enumerate(kinds.get("control", ())):
        which = proposer_words(control.proposed_by[0])
        name = f"control: {which}{' (baseline)' if control.role == 'baseline' else ''}"
        marker = {"symbol": "diamond", "size": 9}
        dash, width = ("dash", "dot")[i % 2], 3.0 if control.role == "baseline" else 2.0
        trace = _traced(name, [control], places, values.rungs, units, CONTROL, marker, dash=dash, width=width)
        data.append({**trace, "legendrank": RANKS["control"]})
    for winner in kinds.get("winner", ()):
        marker = {"symbol": "star", "size": 13}
        trace = _traced("winner", [winner], places, values.rungs, units, WINNER, marker, width=4.0)
        data.append({**trace, "legendrank": RANKS["winner"]})
    last = len(values.rungs) - 1
    rungs: dict[str, Any] = {
        "tickvals": list(range(last + 1)), "ticktext": list(values.rungs), "range": [-0.3, last + 0.45],
    }  # fmt: skip
    layout = {
        "xaxis": axis("million multiply-adds per example", type="log", dtick="D2", zeroline=False)
        if values.by_cost
        else axis("", **rungs, showgrid=False, zeroline=False),
        "yaxis": axis(values.units.axis, zeroline=False),
        "hovermode": "closest",
        "height": 460,
    }  # fmt: skip
    return {"race": {"data": data, "layout": layout}}


def _kind(candidate: RacedCandidate) -> str:
    if candidate.control:
        return "control"
    return "winner" if candidate.role == "winner" else candidate.reason or "running"


Places = Mapping[tuple[int, int], tuple[float, float]]
"""(number of a candidate, rung) -> where it is drawn."""


def _places(candidates: Sequence[RacedCandidate], floor: float) -> Places:
    """Where each accuracy is drawn: equal ones beside each other, a training that failed on the floor."""
    alike: dict[tuple[int, float], list[int]] = {}
    for candidate in candidates:
        for rung, accuracy in enumerate(candidate.accuracies):
            failed = candidate.reason == "failed" and candidate.left_at == rung
            if accuracy is not None or failed:
                height = floor if accuracy is None else round(accuracy, 6)
                alike.setdefault((rung, height), []).append(candidate.number)
    return {
        (number, rung): (rung + APART * (i - (len(numbers) - 1) / 2), height)
        for (rung, height), numbers in alike.items()
        for i, number in enumerate(numbers)
    }


def _traced(
    name: str,
    candidates: Sequence[RacedCandidate],
    places: Places,
    rungs: Sequence[str],
    units: Units,
    color: str,
    marker: Mapping[str, Any],
    *,
    opacity: float = 1.0,
    width: float = 2.0,
    dash: str = "solid",
) -> dict[str, Any]:
    """The lines of some candidates as one trace, with gaps between them."""
    xs, ys, texts = list[float | None](), list[float | None](), list[str]()
    for candidate in candidates:
        for rung, training in enumerate(rungs):
            if (candidate.number, rung) in places:
                x, y = places[candidate.number, rung]
                xs.append(x)
                ys.append(y)
                texts.append(_hover(candidate, rung, training, units))
        xs.append(None)
        ys.append(None)
        texts.append("")
    return {
        **line(escape(name, quote=False), [], [], color, line={"width": width, "dash": dash}, opacity=opacity),
        "x": xs, "y": ys, "text": texts, "marker": dict(marker), "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _hover(candidate: RacedCandidate, rung: int, training: str, units: Units) -> str:
    accuracy = candidate.accuracies[rung]
    how = "its training failed" if accuracy is None else f"{units.text(accuracy)} after {training}"
    left = f"left here: {candidate.why}" if candidate.reason and candidate.left_at == rung else ""
    who = f"no. {candidate.number}: {candidate.proposers}{' (control)' if candidate.control else ''}"
    return hover(who, how, left, *size_lines(candidate), architecture=candidate.architecture)


def _tails(candidates: Sequence[RacedCandidate], places: Places) -> list[dict[str, Any]]:
    """From the last dots of those that left to the right, in pieces that grow lighter."""
    ends = [places[c.number, c.reached] for c in candidates if c.reached is not None]
    traces, start = [], 0.0
    for reach, opacity in FADING if ends else ():
        traces.append(
            {"type": "scatter", "mode": "lines", "line": {"color": LEFT, "width": 1.6}, "opacity": opacity,
             "x": [x for end in ends for x in (end[0] + start, end[0] + reach, None)],
             "y": [y for end in ends for y in (end[1], end[1], None)], "hoverinfo": "skip", "showlegend": False}
        )  # fmt: skip
        start = reach
    return traces


SECTION = Section(
    name="race",
    title="Race",
    heading="Race{% if values %} of {{ values.candidates|length - values.too_slow }} networks"
    "{% if values.rungs|length > 1 %} over {{ values.rungs|length }} rungs{% endif %}{% endif %}",
    values=FindRaceValues,
    template=TEMPLATE,
    script=SCRIPT,
    charts=charts,
    empty="Nothing was raced yet. <code>nasight find --resume {{ subject }}</code>",
)
