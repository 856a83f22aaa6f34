"""The page: sections put into one template, with the style, the script and Plotly inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from nasight.report._diagnosis import Explanation
from nasight.report.page import _sections
from nasight.runs import write_atomic
from nasight.search import Run

NAME = "report.html"


def page(run: Run, explanation: Explanation, others: Sequence[Run] = (), counts: dict[str, Any] | None = None) -> str:
    """The report of a run as HTML; `others` are compared with it, `counts` are their verdicts by path."""
    charts: dict[str, Any] = {}
    sections = {
        "answer": _sections.answer(run, explanation),
        "trust": _sections.trust(run, explanation),
        "search": _sections.search(run),
        "anatomy": _sections.anatomy(run),
        "kernels": _sections.kernels(run),
        "compare": _sections.compare([run, *others], {**(counts or {}), str(run.path): explanation.counts}),
        "reproduce": _sections.reproduce(run),
    }
    _take_charts(sections, charts)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = _number
    template = environment.from_string(_asset("page.html"))
    return template.render(
        **sections,
        run=str(run.path),
        about=explanation.about,
        style=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
        plotly=Markup(_plotly()),
        charts=Markup(_json(charts)),
        svg=Markup,
    )


def write_page(text: str, path: str | Path) -> Path:
    """Write a page; a folder gets it as report.html."""
    place = Path(path)
    if place.is_dir():
        place = place / NAME
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(place, text.encode())
    return place


def _take_charts(sections: dict[str, Any], charts: dict[str, Any]) -> None:
    """Move the figures out of the sections to where the script finds them by name."""
    charts["search"] = sections["search"].pop("chart")
    charts["weights"] = sections["trust"].pop("charts")
    anatomy, kernels, compare = sections["anatomy"], sections["kernels"], sections["compare"]
    if anatomy["chart"] is not None:
        charts["standing"] = anatomy.pop("chart")
        anatomy["chart"] = True
    for name in ("loss", "variance"):
        if anatomy["landscape"] and name in anatomy["landscape"]:
            charts[f"surface-{name}"] = anatomy["landscape"].pop(name)
    for row in kernels["rows"] if kernels else ():
        charts[f"score-{row['metric']}"] = row.pop("chart")
    if compare:
        charts["compare"] = compare.pop("chart")


def _asset(name: str) -> str:
    return (files("nasight.report.page") / name).read_text("utf-8")


def _plotly() -> str:
    """Plotly's script, which its Python package brings along."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")


def _number(value: Any, digits: int = 2) -> str:
    if value is None:
        return "none"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 100):
        return f"{value:,}"
    return f"{value:,.{digits}f}"
