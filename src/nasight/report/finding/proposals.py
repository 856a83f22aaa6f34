"""Who proposed what, and the searches that proposed: what each found, and whether its choices can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nasight.data import Units
from nasight.report._section import Section
from nasight.report.finding._candidate import RacedCandidate, proposer_words


@dataclass(frozen=True)
class ProposingSearch:
    """One weight-sharing search of a find."""

    label: str
    """What the race calls it, such as "search 2"."""
    name: str
    """Its folder inside that of the find."""
    method: str
    """The method."""
    epochs: int
    """Of the search."""
    seconds: float
    """What it took."""
    architecture: str
    """Its arg max as text."""
    accuracy: float | None
    """Of the arg max with the shared weights on held-out rows, in percent; None: it is no network."""
    verdicts: Mapping[str, int] | None
    """How many decisions are safe, unsafe and unknown; None: not judged."""
    raced: RacedCandidate | None
    """The candidate of the same architecture; None: it was not raced."""
    page: str | None
    """The address of its own page, where it has one."""
    explain_command: str
    """The command that judges its decisions and makes that page."""


@dataclass(frozen=True)
class ProposerSummary:
    """What one proposer put into a race."""

    name: str
    """The proposer."""
    candidates: int
    """First proposed by it."""
    finished: int
    """Of them, those that reached the last rung."""
    best: int | None
    """The number of its best candidate; None: none of them has an accuracy."""

    @property
    def words(self) -> str:
        """The proposer in words."""
        return proposer_words(self.name)


@dataclass(frozen=True)
class ProposalsValues:
    """Who proposed what."""

    winner: Sequence[str]
    """Who proposed the winner, the first one first."""
    proposers: Sequence[ProposerSummary]
    """Those of candidates, not of controls."""
    searches: Sequence[ProposingSearch]
    """The weight-sharing searches."""
    scored: int
    """Architectures that were scored without training."""
    units: Units = field(default_factory=Units)
    """In which scores are written."""

    @property
    def left(self) -> bool:
        """Whether some left the race before its end."""
        return any(proposer.finished < proposer.candidates for proposer in self.proposers)

    @property
    def winner_words(self) -> str:
        """Who proposed the winner, in words."""
        return "; ".join(map(proposer_words, self.winner))


TEMPLATE = """
<p>The winner was proposed by: <strong>{{ values.winner_words }}</strong>.</p>
<div class="scroll"><table>
  <thead><tr>
    <th scope="col">proposer</th>
    <th scope="col" class="n">candidates</th>
    {% if values.left %}<th scope="col" class="n">reached the last rung</th>{% endif %}
    <th scope="col" class="n">its best is no.</th>
  </tr></thead>
  <tbody>
  {% for proposer in values.proposers %}
  <tr>
    <td>{{ proposer.words }}</td>
    <td class="n">{{ proposer.candidates }}</td>
    {% if values.left %}<td class="n">{{ proposer.finished }}</td>{% endif %}
    <td class="n">{{ proposer.best if proposer.best is not none else "" }}</td>
  </tr>
  {% endfor %}
  </tbody></table></div>
<h3>The searches with shared weights, and whether to trust them</h3>
{% if values.searches %}
<p>A search trains one network that holds all architectures, and takes the arg max of its architecture weights. It only
proposes: the race decides. A choice is safe where no alternative is as good under the shared weights.</p>
<div class="searches">
{% for search in values.searches %}
  <div class="side">
    <h4>{{ search.label|capitalize }} <span class="code">{{ search.name }}</span></h4>
    <p>{{ search.method }}, {{ search.epochs }} epochs, {{ search.seconds|number(0) }} s;
    {% if search.accuracy is none %}
    its arg max is no network.
    {% else %}
    its arg max has {{ values.units.text(search.accuracy) }} with shared weights.
    {% endif %}
    {% if search.raced %}
    {% set raced = search.raced %}
    Raced as no. {{ raced.number }}
    {%- if raced.why or values.left %}: {{ raced.why or "to the last rung" }}{% endif %}
    {%- if raced.role %}, <strong>{{ raced.role }}</strong>{% endif %}.
    {% else %}
    It was not raced.
    {% endif %}
    </p>
    {% if search.verdicts %}
    <p>Its choices:
    {% for verdict in ("safe", "unsafe", "unknown") %}
      <span class="tag {{ verdict }}">{{ search.verdicts[verdict] }} {{ verdict }}</span>
    {% endfor %}
    </p>
    {% else %}
    <p>Its choices were not judged.</p>
    {% endif %}
    <p class="code">{{ search.architecture }}</p>
    {% if search.page %}
    <p><a href="{{ search.page }}">Its own page</a></p>
    {% else %}
    <p>Decision by decision: <code>{{ search.explain_command }}</code></p>
    {% endif %}
  </div>
{% endfor %}
</div>
{% else %}
<p>None was run.</p>
{% endif %}
{% if values.scored %}
<p>{{ values.scored|number }} architectures drawn at random were scored without training; the best of them were
raced.</p>
{% endif %}
"""

SECTION = Section(
    name="proposals",
    title="Proposals",
    heading="Who proposed what",
    values=ProposalsValues,
    template=TEMPLATE,
    empty="Nothing was proposed yet. <code>nasight find --resume {{ subject }}</code>",
)
