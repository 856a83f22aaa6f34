"""The page: sections in one frame, with the style, the scripts and Plotly inside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from statistics import mean, stdev
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from nasight.errors import RequestError
from nasight.report._section import Section


def page(sections: Sequence[tuple[Section, Any]], *, title: str, subject: str = "RUN") -> str:
    """One HTML file that shows sections, holds all it needs and asks the network for nothing.

    Parameters
    ----------
    sections : each with its values, or with None where there are none: then it says how to get them. The heading of
        the first one is the heading of the page.
    title : what the browser's window is called.
    subject : what the page is about, as a command names it.

    >>> hello = Section("hello", "Hello", "<p>Hello {{ values.name }}</p>")
    >>> "<p>Hello &lt;you&gt;</p>" in page([(hello, {"name": "<you>"})], title="A greeting")
    True
    """
    _check(sections)
    environment = _environment(subject)
    charts = {section.name: _charts(section, values) for section, values in sections}
    return environment.from_string(_asset("page.html")).render(
        title=title,
        sections=[_shown(environment, section, values, charts[section.name]) for section, values in sections],
        charts=Markup(_json(charts)),
        style=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
        plotly=Markup(_plotly()),
    )


def _check(sections: Sequence[tuple[Section, Any]]) -> None:
    names = [section.name for section, _ in sections]
    twice = next((name for name in names if names.count(name) > 1), None)
    if not names or twice:
        raise RequestError(f"there are two sections {twice!r}" if twice else "a page needs at least one section")
    for section, values in sections:
        if values is not None and not isinstance(values, section.values):
            raise RequestError(f"section {section.name!r} shows {section.values.__name__}, got {type(values).__name__}")


def _environment(subject: str) -> Environment:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters |= {"number": _number, "spread": _spread}
    environment.globals |= {"subject": subject, "svg": Markup}
    return environment


def _shown(environment: Environment, section: Section, values: Any, charts: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a section, ready for the frame."""

    def chart(name: str, label: str, *, id: str = "") -> Markup:
        if name not in charts:
            raise RequestError(f"section {section.name!r} has no chart {name!r}, only {', '.join(charts) or 'none'}")
        named = Markup(' id="{}"').format(id) if id else ""
        place = Markup('<div class="chart"{} data-chart="{}" role="img" aria-label="{}"></div>')
        return place.format(named, name, label)

    def written(template: str) -> Markup:
        return Markup(environment.from_string(template).render(values=values, chart=chart))

    shown = {"name": section.name, "title": section.title, "heading": written(section.heading)}
    if values is None:
        return {**shown, "body": Markup('<p class="empty">{}</p>').format(written(section.empty)), "script": ""}
    return {**shown, "body": written(section.template), "script": Markup(_inside_script(section.script))}


def _charts(section: Section, values: Any) -> dict[str, Any]:
    figures: Mapping[str, Any] = {} if values is None or section.charts is None else section.charts(values)
    return {name: _plain(figure) for name, figure in figures.items()}


def _plain(figure: Any) -> Any:
    """A figure as plain values; Plotly's own class may hold arrays."""
    return json.loads(figure.to_json()) if hasattr(figure, "to_json") else figure


def _asset(name: str) -> str:
    return (files("nasight.report") / "page" / name).read_text("utf-8")


def _plotly() -> str:
    """Plotly's script, which its Python package brings along."""
    from plotly.offline import get_plotlyjs

    return _inside_script(str(get_plotlyjs()))


def _inside_script(text: str) -> str:
    """JavaScript that cannot end the script element it stands in."""
    return re.sub("</(?=script)", r"<\\/", text, flags=re.IGNORECASE)


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")


def _number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return "none"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 100):
        return f"{value:,}"
    return f"{value:,.{digits}f}"


def _spread(values: Sequence[float | None], digits: int = 2) -> str:
    """The mean, and behind it the standard deviation where there is one; what is None does not count."""
    known = [value for value in values if value is not None]
    if not known:
        return "none"
    shown = f"{mean(known):.{digits}f}"
    return f"{shown} ± {stdev(known):.{digits}f}" if len(known) > 1 else shown
