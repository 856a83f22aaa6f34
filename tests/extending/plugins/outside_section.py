"""A report section from outside: how many epochs the leading architecture has led."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from nasight.report import Section


def gather(subject: Any) -> dict[str, Any] | None:
    """Values of a run with epochs; None: there is nothing to show."""
    found = [row["architecture"] for row in subject.run.history]
    if not found:
        return None
    led = next((i for i, text in enumerate(reversed(found)) if text != found[-1]), len(found))
    return {"led": led, "epochs": len(found), "changes": [int(a != b) for a, b in pairwise(found)]}


def charts(values: dict[str, Any]) -> dict[str, Any]:
    return {"changes": {"data": [{"type": "bar", "y": values["changes"]}], "layout": {"height": 200}}}


SECTION = Section(
    name="lead",
    title="Lead",
    template="<p id='led'>The arg max has not changed for {{ values.led }} of {{ values.epochs }} epochs.</p>"
    "{{ chart('changes', 'Epochs in which the arg max changed') }}",
    script="document.getElementById('led').dataset.seen = 'yes';",
    charts=charts,
    gather=gather,
)
