"""A cell as SVG: inputs left, output right, every node in a lane of its own, its operations before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import permutations

from nasight.anatomy import CellGraph, Design

# Okabe and Ito's palette, one color per family of operations.
FAMILIES = (
    ("sep_conv", "#0072b2"),
    ("dil_conv", "#009e73"),
    ("nor_conv", "#0072b2"),
    ("conv", "#cc79a7"),
    ("max_pool", "#d55e00"),
    ("avg_pool", "#e69f00"),
    ("skip", "#8c8c8c"),
)
OTHER = "#56b4e9"
MARGIN, TITLE, PILL, STEP, LANE, GAP = 12.0, 46.0, 22.0, 25.0, 16.0, 58.0
LINK, NODE, INPUT, BAR = 8.0, 28.0, 68.0, 30.0
KINDS = {"normal": "normal cell", "reduce": "reduction cell"}
"""What kinds of cells are called, where that is not the name of the kind."""
CHARACTER = 7.3
LONGEST = 22
MOST_ORDERED = 6
"""With at most this many lanes every order is tried: 720, for each order of the inputs."""
STYLE = (
    ".nc text{font:13px system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif;fill:currentColor}"
    ".nc .nc-big{font-size:16px;font-weight:600}.nc .nc-mid{text-anchor:middle}.nc .nc-dim{opacity:.75}"
    ".nc .nc-edge{fill:none;stroke-width:2}.nc .nc-join{fill:none;stroke:currentColor;stroke-width:1.3;opacity:.45}"
    ".nc .nc-box{fill:currentColor;fill-opacity:.07;stroke:currentColor;stroke-width:1.4}"
)
THEME = "svg.nc{color:#1f2328}@media (prefers-color-scheme:dark){svg.nc{color:#e6edf3}}"

Point = tuple[float, float]


def cell_svg(graph: CellGraph, *, title: str = "cell", standalone: bool = True) -> str:
    """One cell as SVG: inputs left, output right.

    Parameters
    ----------
    graph : the cell.
    title : what is written above it.
    standalone : whether it follows the reader's light or dark theme by itself; within a page, text has its color.

    >>> from nasight.anatomy import read_cells
    >>> "width 3.5c, depth 3" in cell_svg(read_cells("DARTS_V2")["normal"], title="DARTS")
    True
    """
    return _document([(title, graph)], title, standalone)


def design_svg(design: Design, *, standalone: bool = True) -> str:
    """All cells of a design as one SVG, one below the other; `standalone` as in `cell_svg`.

    >>> from nasight.anatomy import read_cells
    >>> "DARTS_V2, reduce cell" in design_svg(read_cells("DARTS_V2"))
    True
    """
    name = design.name if len(design.name) <= 40 else f"{design.name[:39]}…"
    titles = [(f"{name}, {kind} cell" if len(design.cells) > 1 else name, graph) for kind, graph in design.cells]
    return _document(titles, name, standalone)


def drawings(design: Design | None) -> list[tuple[str, str]]:
    """For a page: what each cell of a design is called, and its drawing."""
    named = [(KINDS.get(kind, kind), graph) for kind, graph in design.cells] if design is not None else []
    return [(name, cell_svg(graph, title=name, standalone=False)) for name, graph in named]


def _document(cells: Sequence[tuple[str, CellGraph]], title: str, standalone: bool) -> str:
    drawings = [_drawing(title, graph) for title, graph in cells]
    width = max(drawing.width for drawing in drawings)
    parts, y = list[str](), 0.0
    for drawing in drawings:
        parts.append(f'<g transform="translate(0 {y:.1f})">{"".join(drawing.parts)}</g>')
        y += drawing.height
    described = " ".join(f"{title}: {_description(graph)}" for title, graph in cells)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="nc" viewBox="0 0 {width:.0f} {y:.0f}" '
            f'style="max-width:{1.4 * width:.0f}px;width:100%" role="img">',
            f"<title>{escape(title)}</title><desc>{escape(described)}</desc>",
            f"<style>{STYLE}{THEME if standalone else ''}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )


def _description(graph: CellGraph) -> str:
    sentences = [f"width {graph.width:g}c, depth {graph.depth}."]
    for node in (*graph.intermediate, graph.output):
        into = [f"{_words(operation)} of {_name(graph, source)}" for source, _, operation in graph.into(node)]
        if into:
            sentences.append(f"{_name(graph, node).capitalize()} is {' plus '.join(into)}.")
    if graph.joined:
        sentences.append(f"The output joins nodes {', '.join(map(str, graph.joined))}.")
    return " ".join(sentences)


def _name(graph: CellGraph, node: int) -> str:
    if node == graph.output:
        return "the output"
    return f"input {node}" if node < graph.inputs else f"node {node}"


def _words(operation: str) -> str:
    text = operation.removeprefix("nor_").replace("skip_connect", "skip").replace("_", " ")
    spelled = "".join("×" if c == "x" and _between_digits(text, i) else c for i, c in enumerate(text))
    return spelled if len(spelled) <= LONGEST else f"{spelled[: LONGEST - 1]}…"


def _between_digits(text: str, place: int) -> bool:
    return text[place - 1 : place].isdigit() and text[place + 1 : place + 2].isdigit()


def _color(operation: str) -> str:
    return next((color for family, color in FAMILIES if operation.startswith(family)), OTHER)


@dataclass(frozen=True)
class _Line:
    """An edge on its way: it leaves `source` in column `start`, moves to its height there, and runs on to `end`."""

    source: int
    start: int
    end: int
    before: float
    after: float
    operation: str


@dataclass
class _Drawing:
    width: float
    height: float
    parts: list[str]


class _Layout:
    """Heights of the inputs, the lanes and the ports of the edges, for one order of lanes and inputs."""

    def __init__(self, graph: CellGraph, lanes: Sequence[int], inputs: Sequence[int]) -> None:
        self.graph, self.inputs, self.column, self.y = graph, tuple(inputs), graph.layers(), dict[int, float]()
        y = 0.0
        for node in lanes:
            tall = LANE + STEP * len(graph.into(node))
            self.y[node] = y + tall / 2
            y += tall
        self.height = max(y, 3 * PILL)
        for place, node in enumerate(inputs):
            self.y[node] = self.height * (2 * place + 1) / (2 * len(inputs))
        self.last = max(self.column.values())
        self.lines = [line for node in lanes for line in self._into(node)]
        for node in graph.joined:
            here = self.y[node]
            self.lines.append(_Line(node, self.column[node], self.last + 1, here, here, ""))

    def _into(self, node: int) -> list[_Line]:
        edges = sorted(self.graph.into(node), key=lambda e: (self.y[e[0]], -self.column[e[0]], e[2]))
        top = self.y[node] - STEP * (len(edges) - 1) / 2
        return [
            _Line(source, self.column[source], self.column[node], self.y[source], top + STEP * place, operation)
            for place, (source, _, operation) in enumerate(edges)
        ]

    def crossings(self) -> int:
        """Pairs of edges that change places in one of the gaps between columns."""
        total = 0
        for gap in range(self.last + 1):
            here = [
                (line.before if line.start == gap else line.after, line.after)
                for line in self.lines
                if line.start <= gap < line.end
            ]
            for i, (a, b) in enumerate(here):
                total += sum((a - c) * (b - d) < 0 for c, d in here[i + 1 :])
        return total

    def travel(self) -> float:
        return sum(abs(line.before - line.after) for line in self.lines)


def _best_layout(graph: CellGraph) -> _Layout:
    """Of all orders of lanes and inputs that with the fewest crossings, then with the shortest edges."""
    lanes = [node for node in (*graph.intermediate, graph.output) if graph.into(node)]
    orders = permutations(lanes) if len(lanes) <= MOST_ORDERED else iter([tuple(lanes)])
    found = [_Layout(graph, order, inputs) for order in orders for inputs in permutations(range(graph.inputs))]
    return min(found, key=lambda layout: (layout.crossings(), round(layout.travel(), 1), layout.inputs))


def _drawing(title: str, graph: CellGraph) -> _Drawing:
    layout = _best_layout(graph)
    pill = max(CHARACTER * len(_words(operation)) + 18 for _, _, operation in graph.edges)
    block = pill + LINK + NODE
    right = [MARGIN + INPUT + column * (GAP + block) for column in range(layout.last + 1)]  # where columns end
    width = right[-1] + (GAP + BAR if graph.joined else 20) + MARGIN
    heading = f"width {graph.width:g}c, depth {graph.depth}"
    width = max(width, 2 * MARGIN + 9.2 * len(title))
    lines, pills, boxes = list[str](), list[str](), list[str]()
    for line in layout.lines:
        before, after = line.before + TITLE, line.after + TITLE
        x, bend = right[line.start], right[line.start] + GAP
        end = right[line.end] - block if line.operation else right[-1] + GAP
        half = (x + bend) / 2
        curve = f"C{half:.1f} {before:.1f} {half:.1f} {after:.1f} {bend:.1f} {after:.1f}"
        path = f"M{x:.1f} {before:.1f} {curve} H{end:.1f}"
        if line.operation:
            color = _color(line.operation)
            lines.append(f'<path class="nc-edge" stroke="{color}" d="{path}"/>')
            pills.append(_pill(end, after, pill, line.operation, color))
        else:
            lines.append(f'<path class="nc-join" d="{path}"/>')
    for node, y in layout.y.items():
        boxes.append(_box(graph, node, right[layout.column[node]], y + TITLE))
    if graph.joined:
        boxes.append(_bar(right[-1] + GAP, [layout.y[node] + TITLE for node in graph.joined]))
    parts = [_text(MARGIN, 20, title, "nc-big"), _text(MARGIN, 38, heading, "nc-dim")]
    return _Drawing(width, layout.height + TITLE + MARGIN, [*parts, *lines, *pills, *boxes])


def _pill(x: float, y: float, width: float, operation: str, color: str) -> str:
    shape = f'x="{x:.1f}" y="{y - PILL / 2:.1f}" width="{width:.1f}" height="{PILL:.0f}" rx="11"'
    rounded = f'<rect {shape} fill="{color}" fill-opacity=".2" stroke="{color}" stroke-width="1.5"/>'
    link = f'<path class="nc-edge" stroke="{color}" d="M{x + width:.1f} {y:.1f} h{LINK:.0f}"/>'
    return rounded + link + _text(x + width / 2, y + 4.5, _words(operation), "nc-mid")


def _box(graph: CellGraph, node: int, right: float, y: float) -> str:
    if node < graph.inputs:
        word = f"input {node}" if graph.inputs > 1 else "input"
        shape = (
            f'<rect class="nc-box" x="{right - INPUT:.1f}" y="{y - 14:.1f}" width="{INPUT:.0f}" height="28" rx="5"/>'
        )
        return shape + _text(right - INPUT / 2, y + 4.5, word, "nc-mid")
    tall = STEP * (len(graph.into(node)) - 1) + PILL
    word = "out" if node == graph.output else str(node)
    place = f'x="{right - NODE:.1f}" y="{y - tall / 2:.1f}" width="{NODE:.0f}" height="{tall:.1f}"'
    return f'<rect class="nc-box" {place} rx="6"/>' + _text(right - NODE / 2, y + 4.5, word, "nc-mid")


def _bar(x: float, heights: list[float]) -> str:
    top, bottom = min(heights) - 24, max(heights) + 24
    middle = (top + bottom) / 2
    text = _text(x + BAR / 2, middle + 4.5, "output", "nc-mid")
    return (
        f'<rect class="nc-box" x="{x:.1f}" y="{top:.1f}" width="{BAR:.0f}" height="{bottom - top:.1f}" rx="5"/>'
        f'<g transform="rotate(-90 {x + BAR / 2:.1f} {middle:.1f})">{text}</g>'
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
