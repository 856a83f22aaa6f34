"""A search at a glance: accuracy over the epochs, and how the weights of every decision moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from nasight.data import Units
from nasight.report._svg import COLORS, STYLE, text
from nasight.report._weights import DecisionWeights, History, areas, decision_weights
from nasight.spaces import Group

WIDTH, MARGIN, GAP, COLUMNS = 960, 24, 26, 4
PANEL_WIDTH = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
PANEL_HEIGHT, TOP, TITLE, LINE = 110.0, 64.0, 18.0, 20.0


def picture(history: History, result: Mapping[str, Any], groups: Sequence[Group]) -> str:
    """A search as one SVG text.

    Parameters
    ----------
    history : one row per epoch, at least one: `Run.history`.
    result : what the search ended with: `Run.result`.
    groups : the weights that the search moved: `Run.space.groups()`.

    >>> from nasight.spaces import Group
    >>> row = {"epoch": 0, "entropy": 0.69, "valid_accuracy": 50.0, "discrete_accuracy": 40.0}
    >>> result = {"method": "darts", "objective": "erm", "space": "mine", "data": "digits", "accuracy": 40.0}
    >>> group = Group("choices", ("activation",), (("relu", "tanh"),))
    >>> text = picture([row | {"weights": {"choices": [[0.4, 0.6]]}}], result | {"architecture": "..."}, [group])
    >>> "activation: tanh" in text
    True
    """
    decisions = decision_weights(history, groups)
    rows = 1 + (len(decisions) + COLUMNS - 1) // COLUMNS
    bottom = TOP + rows * (PANEL_HEIGHT + TITLE + 18) + 16
    legend, lines = _legend(decisions, bottom)
    height = bottom + lines * LINE + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
        f"<title>{escape(result['method'])} on {escape(result['space'])}</title><style>{STYLE}</style>",
        f'<rect class="frame" width="{WIDTH}" height="{height:.0f}"/>',
        text(MARGIN, 28, _headline(result), kind="big"),
        text(MARGIN, 48, _shortened(f"found: {result['architecture']}", 130), kind="dim"),
        _curves(history, MARGIN, TOP),
    ]
    for index, decision in enumerate(decisions):
        row, column = divmod(index, COLUMNS)
        x = MARGIN + column * (PANEL_WIDTH + GAP)
        y = TOP + (row + 1) * (PANEL_HEIGHT + TITLE + 18)
        parts.append(text(x, y + 12, _shortened(f"{decision.name}: {decision.chosen}", 34)))
        parts += areas(decision, x, y + TITLE, PANEL_WIDTH, PANEL_HEIGHT)
    return "\n".join([*parts, legend, "</svg>", ""])


def _headline(result: Mapping[str, Any]) -> str:
    units = Units.of(result)
    found = result["accuracy"]
    accuracy = "no network" if found is None else f"{units.text(found, digits=1)} with shared weights"
    return f"{result['method']} ({result['objective']}) on {result['space']}, {result['data']}: {accuracy}"


def _curves(history: History, x: float, y: float) -> str:
    """Accuracy of the supernet and of the derived architecture, percent against epochs."""
    units = Units.of(history[-1])
    parts = [text(x, y + 12, f"validation {units.axis}")]
    width = 2 * PANEL_WIDTH + GAP
    top, wide = y + TITLE, width - 40
    parts.append(f'<path class="axis" d="M{x + 30:.1f} {top} v{PANEL_HEIGHT} h{wide:.1f}"/>')
    parts += [
        text(x + 26, top + PANEL_HEIGHT * (1 - v / 100) + 4, f"{units.drawn(v):g}", "end", kind="dim")
        for v in (0, 50, 100)
    ]
    names = (("valid_accuracy", "supernet", COLORS[5]), ("discrete_accuracy", "derived architecture", COLORS[6]))
    for index, (key, label, color) in enumerate(names):
        points = [
            (x + 30 + wide * (i + 0.5) / len(history), top + PANEL_HEIGHT * (1 - max(row[key], 0) / 100))
            for i, row in enumerate(history)
            if row[key] is not None
        ]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{color}"/>' for px, py in points]
        parts.append(f'<rect x="{x + width + GAP:.1f}" y="{top + 20 * index}" width="14" height="4" fill="{color}"/>')
        last = next((row[key] for row in reversed(history) if row[key] is not None), None)
        value = "" if last is None else f": {units.text(last, digits=1)}"
        parts.append(text(x + width + GAP + 20, top + 20 * index + 7, f"{label}{value}"))
    entropy = f"entropy of a decision: {history[0]['entropy']:.2f} to {history[-1]['entropy']:.2f} nats"
    parts.append(text(x + width + GAP, top + 47, entropy))
    parts.append(text(x + width + GAP, top + 67, f"{len(history)} epochs", kind="dim"))
    return "\n".join(parts)


def _legend(decisions: Sequence[DecisionWeights], y: float) -> tuple[str, int]:
    """The colors of the options, and how many lines they take; a color is an option's place in its decision."""
    parts, x, lines = [text(MARGIN, y, "weights, stacked to 1:", kind="dim")], MARGIN + 138.0, 1
    for option, index in dict.fromkeys((o, i) for decision in decisions for i, o in enumerate(decision.options)):
        width = 32 + 7 * len(option)
        if x + width > WIDTH:
            x, y, lines = MARGIN + 138.0, y + LINE, lines + 1
        color = COLORS[index % len(COLORS)]
        parts.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="12" height="12" fill="{color}"/>')
        parts.append(text(x + 17, y, option))
        x += width
    return "\n".join(parts), lines


def _shortened(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"
