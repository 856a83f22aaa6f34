"""One section of a page: what it shows, how it is written, what moves in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nasight.errors import RequestError

Chart = Mapping[str, Any]
"""A Plotly figure as plain values: {"data": [...], "layout": {...}}."""
FRAME_IDS = ("charts", "theme")
"""Names that the page around the sections needs for itself."""


@dataclass(frozen=True)
class Section:
    """One section of a page, complete: its values, its texts, its charts and its script.

    The texts are Jinja templates; what they show is escaped. They can use

    values                 what the section shows
    subject                what the page is about, as a command names it: the folder of a run
    chart(name, label)     the place of a figure of `charts`; the label says what it shows to those who cannot see it
    svg(drawing)           a drawing as it is
    x|number, x|number(4)  1234567 as 1,234,567 and 0.12345 as 0.12, or with four digits
    xs|spread, xs|spread(4)  several numbers as mean ± standard deviation

    >>> hello = Section("hello", "Hello", "<p>Hello {{ values.name }}, from {{ subject }}</p>")
    >>> hello.heading
    'Hello'
    """

    name: str
    """Small letters, digits and hyphens: the id of its element, and its name in `SECTIONS`."""
    title: str
    """The word for it in the list of sections."""
    template: str
    """What is below its heading."""
    script: str = ""
    """The body of a JavaScript function of `section` (its element), `charts` (its figures by name) and
    `draw(element, figure)`, which draws a figure and again when the theme changes."""
    charts: Callable[[Any], Mapping[str, Any]] | None = None
    """From the values to its figures by name: each a `Chart` or a `plotly.graph_objects.Figure`."""
    values: type[Any] = dict
    """The type of its values."""
    empty: str = "Nothing to show."
    """The text in place of `template` where there are no values: how to get them."""
    heading: str = ""
    """Its heading, if that is not the title; it is written with and without values."""
    gather: Callable[[Any], Any | None] | None = None
    """From the subject of a report (`nasight.studies.Subject`) to the values, or None where there are none. The page
    itself never calls it."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.name) or self.name in FRAME_IDS:
            raise RequestError(
                f"a section is named with small letters, digits and hyphens, and not {' or '.join(FRAME_IDS)}; "
                f"got {self.name!r}"
            )
        if not self.heading:
            object.__setattr__(self, "heading", self.title)
