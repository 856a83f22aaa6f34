"""A search at a glance: accuracy over the epochs, and how the weights of every decision moved."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import torch

from nasight.search import Run

# Okabe and Ito's palette: distinguishable with any kind of colour vision.
COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#999999")
WIDTH, MARGIN, GAP, COLUMNS = 960, 24, 26, 4
PANEL_WIDTH = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
PANEL_HEIGHT, TOP, TITLE, LINE = 110.0, 64.0, 18.0, 20.0
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.big{font-size:17px;font-weight:600}.dim{fill:#666}"
    ".axis{stroke:#999;fill:none}.frame{fill:#fff}"
)


def picture(run: Run) -> str:
    """The search as one SVG text, from its history alone."""
    history, result = run.history, run.result
    decisions = _decisions(run, history)
    rows = 1 + (len(decisions) + COLUMNS - 1) // COLUMNS
    bottom = TOP + rows * (PANEL_HEIGHT + TITLE + 18) + 16
    height = bottom + LINE + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
        f"<title>{escape(result['method'])} on {escape(result['space'])}</title><style>{STYLE}</style>",
        f'<rect class="frame" width="{WIDTH}" height="{height:.0f}"/>',
        _text(MARGIN, 28, _headline(result), "big"),
        _text(MARGIN, 48, _shortened(f"found: {result['architecture']}", 130), "dim"),
        _curves(history, MARGIN, TOP),
    ]
    for index, (name, chosen, options, series) in enumerate(decisions):
        row, column = divmod(index, COLUMNS)
        x = MARGIN + column * (PANEL_WIDTH + GAP)
        y = TOP + (row + 1) * (PANEL_HEIGHT + TITLE + 18)
        parts.append(_areas(name, chosen, options, series, x, y))
    parts.append(_legend(decisions, bottom))
    return "\n".join([*parts, "</svg>", ""])


Panel = tuple[str, str, tuple[str, ...], list[list[float]]]


def _decisions(run: Run, history: Sequence[dict[str, Any]]) -> list[Panel]:
    """(name, option with the largest weight, options, weights of every epoch) of each decision."""
    panels = []
    for group in run.space.groups():
        if group.exclusive:
            epochs = [group.split(torch.tensor(row["weights"][group.name])) for row in history]
            for i, (name, options) in enumerate(zip(group.rows, group.options, strict=True)):
                series = [rows[i].tolist() for rows in epochs]
                panels.append((name, options[int(epochs[-1][i].argmax())], options, series))
    return panels


def _headline(result: dict[str, Any]) -> str:
    accuracy = "no network" if result["accuracy"] is None else f"{result['accuracy']:.1f} % with shared weights"
    return f"{result['method']} ({result['objective']}) on {result['space']}, {result['data']}: {accuracy}"


def _curves(history: Sequence[dict[str, Any]], x: float, y: float) -> str:
    """Accuracy of the supernet and of the derived architecture, percent against epochs."""
    parts = [_text(x, y + 12, "validation accuracy, %", "")]
    width = 2 * PANEL_WIDTH + GAP
    top, wide = y + TITLE, width - 40
    parts.append(f'<path class="axis" d="M{x + 30:.1f} {top} v{PANEL_HEIGHT} h{wide:.1f}"/>')
    parts += [_text(x + 26, top + PANEL_HEIGHT * (1 - v / 100) + 4, str(v), "dim", "end") for v in (0, 50, 100)]
    names = (("valid_accuracy", "supernet", COLOURS[5]), ("discrete_accuracy", "derived architecture", COLOURS[6]))
    for index, (key, label, colour) in enumerate(names):
        points = [
            (x + 30 + wide * (i + 0.5) / len(history), top + PANEL_HEIGHT * (1 - row[key] / 100))
            for i, row in enumerate(history)
            if row[key] is not None
        ]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in points]
        parts.append(f'<rect x="{x + width + GAP:.1f}" y="{top + 20 * index}" width="14" height="4" fill="{colour}"/>')
        last = next((row[key] for row in reversed(history) if row[key] is not None), None)
        value = "" if last is None else f": {last:.1f} %"
        parts.append(_text(x + width + GAP + 20, top + 20 * index + 7, f"{label}{value}", ""))
    entropy = f"entropy of a decision: {history[0]['entropy']:.2f} to {history[-1]['entropy']:.2f} nats"
    parts.append(_text(x + width + GAP, top + 47, entropy, ""))
    parts.append(_text(x + width + GAP, top + 67, f"{len(history)} epochs", "dim"))
    return "\n".join(parts)


def _areas(name: str, chosen: str, options: tuple[str, ...], series: list[list[float]], x: float, y: float) -> str:
    """The weights of one decision, stacked to 1, over the epochs."""
    parts, top = [_text(x, y + 12, _shortened(f"{name}: {chosen}", 34), "")], y + TITLE
    step = PANEL_WIDTH / max(len(series) - 1, 1)
    points = series if len(series) > 1 else [series[0], series[0]]
    below = [0.0] * len(points)
    for option in range(len(options)):
        above = [b + row[option] for b, row in zip(below, points, strict=True)]
        edge = [f"{x + i * step:.1f},{top + PANEL_HEIGHT * (1 - v):.1f}" for i, v in enumerate(above)]
        back = [f"{x + i * step:.1f},{top + PANEL_HEIGHT * (1 - v):.1f}" for i, v in enumerate(below)]
        colour = COLOURS[option % len(COLOURS)]
        shape = " ".join([*edge, *reversed(back)])
        parts.append(f'<polygon points="{shape}" fill="{colour}"><title>{escape(options[option])}</title></polygon>')
        below = above
    return "\n".join(parts)


def _legend(panels: Sequence[Panel], y: float) -> str:
    """The colours of the options, on as many lines as they take; a colour is an option's place in its decision."""
    parts, x = [_text(MARGIN, y, "weights, stacked to 1:", "dim")], MARGIN + 138.0
    for option, index in dict.fromkeys((o, i) for _, _, options, _ in panels for i, o in enumerate(options)):
        width = 32 + 7 * len(option)
        if x + width > WIDTH:
            x, y = MARGIN + 138.0, y + LINE
        colour = COLOURS[index % len(COLOURS)]
        parts.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(x + 17, y, option, ""))
        x += width
    return "\n".join(parts)


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
