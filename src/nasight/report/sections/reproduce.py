"""How to make the same run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nasight.report._section import Section


@dataclass(frozen=True)
class ReproduceValues:
    """What the run follows from."""

    command: str
    """The command that makes it again."""
    seed: int
    """Everything random follows from it."""
    versions: Mapping[str, str]
    """The programs that made it and their versions, and when that was."""
    data: str
    """The name of the data."""
    inputs: Sequence[int]
    """The shape of an example."""
    classes: Sequence[str]
    """The names of the classes, labels or numbers."""
    fingerprint: str
    """A checksum of the data."""
    settings: Mapping[str, Any]
    """Every setting of the run."""
    noun: str = "classes"
    """What `classes` names."""


TEMPLATE = """
<div class="copy">
  <pre id="command">{{ values.command }}</pre>
  <button type="button" data-copy="command">Copy</button>
</div>
<div class="scroll"><table><tbody>
  <tr><th scope="row">seed</th><td>{{ values.seed }}</td></tr>
  {% for name, value in values.versions.items() %}
  <tr><th scope="row">{{ name }}</th><td>{{ value }}</td></tr>
  {% endfor %}
  <tr><th scope="row">data</th><td>
    {{ values.data }}, inputs {{ values.inputs|join(" × ") }}, {{ values.classes|length }}
    {{ values.noun[:-1] if values.classes|length == 1 else values.noun }}:
    {{ values.classes[:20]|join(", ") }}{{ ", …" if values.classes|length > 20 }}
  </td></tr>
  <tr><th scope="row">fingerprint</th><td class="code">{{ values.fingerprint }}</td></tr>
</tbody></table></div>
<details><summary>All settings</summary><div class="scroll"><table><tbody>
{% for name, value in values.settings.items() %}
<tr><th scope="row">{{ name }}</th><td class="code">{{ value }}</td></tr>
{% endfor %}
</tbody></table></div></details>
"""

SECTION = Section(
    name="reproduce",
    title="Reproduce",
    values=ReproduceValues,
    template=TEMPLATE,
    empty="Nothing is known of how it was made.",
)
