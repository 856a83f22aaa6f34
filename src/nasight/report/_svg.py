"""What drawings share: the palette, the style, a line of text."""

from __future__ import annotations

from html import escape

# Okabe and Ito's palette: distinguishable with any kind of color vision.
COLORS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#999999")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.big{font-size:17px;font-weight:600}.dim{fill:#666}"
    ".axis{stroke:#999;fill:none}.frame{fill:#fff}"
)


def text(x: float, y: float, words: str, anchor: str = "start", *, kind: str = "") -> str:
    """A line of text, escaped; `kind` is a class of `STYLE`."""
    shown = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{shown} text-anchor="{anchor}">{escape(words)}</text>'
