"""The house as it is built: which package imports which, and whether the rules of docs/architecture.md hold.

python tools/house.py            print the graph and every breach; exit 1 if there is one
python tools/house.py --draw     also write docs/images/house.svg
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "nasight"
PICTURE = ROOT / "docs" / "images" / "house.svg"
FACADE = "nasight"
STOREYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("what a user calls", ("nasight", "__main__", "cli", "plugins")),
    ("workflows and pages", ("studies", "report")),
    ("pillars", ("searching", "training", "features", "kernels", "anatomy", "trust", "tables", "export")),
    ("foundations", ("spaces", "geometry", "gradients", "data", "runs", "compute")),
    (
        "what all share",
        (
            "architecture",
            "errors",
            "notes",
            "reproducible",
            "registry",
            "own",
            "options",
            "arguments",
            "memory",
            "version",
        ),
    ),
)
"""From the roof down; a package imports from lower storeys, and on its own storey only where that makes no circle."""
LEVEL = {name: level for level, (_, names) in enumerate(STOREYS) for name in names}
PILLARS = STOREYS[2][1]
SPACES = (
    "nasbench201",
    "darts",
    "nasbench1shot1",
    "nasbench1shot1-1",
    "nasbench1shot1-2",
    "nasbench1shot1-3",
    "mlp",
    "convnet",
)
TEXT_TESTS = ("startswith", "endswith", "removeprefix")


@dataclass(frozen=True)
class Import:
    """One import of a package by another; lazy ones and those for types count too."""

    by: str
    of: str
    module: str
    place: str

    @property
    def private(self) -> bool:
        return any(part.startswith("_") and not part.startswith("__") for part in self.module.split(".")[2:])


def package_of(path: Path, source: Path = SOURCE) -> str:
    """The package that a file belongs to: the first folder, or the file's own name."""
    relative = path.relative_to(source)
    if len(relative.parts) > 1:
        return relative.parts[0]
    return FACADE if relative.stem == "__init__" else relative.stem


def imports(source: Path = SOURCE) -> list[Import]:
    """Every import between two packages of the library."""
    found = []
    for path in sorted(source.rglob("*.py")):
        by = package_of(path, source)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for module in _modules(node):
                of = module.split(".")[1] if "." in module else FACADE
                if of != by:
                    found.append(Import(by, of, module, f"{path.relative_to(source)}:{node.lineno}"))  # type: ignore[attr-defined]
    return found


def _modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == FACADE)
    elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == FACADE:
        if node.module == FACADE:
            yield from (f"{FACADE}.{a.name}" if (SOURCE / a.name).exists() else FACADE for a in node.names)
        else:
            yield node.module


def cycles(found: Sequence[Import]) -> list[list[str]]:
    """Packages that import each other, one list per circle."""
    import networkx as nx

    graph = nx.DiGraph((each.by, each.of) for each in found)
    return [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]


def space_names(source: Path = SOURCE) -> list[str]:
    """Places outside spaces/ that ask which space it is: a name compared, looked up or matched."""
    found = []
    for path in sorted(source.rglob("*.py")):
        if package_of(path, source) == "spaces":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            found += [
                f"{path.relative_to(source)}:{each.lineno} {each.value!r}"
                for each in _asked(node)
                if isinstance(each, ast.Constant) and each.value in SPACES
            ]
    return found


def _asked(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for part in (node.left, *node.comparators):
            yield from part.elts if isinstance(part, ast.Tuple | ast.List | ast.Set) else (part,)
    elif isinstance(node, ast.Dict):
        yield from (key for key in node.keys if key is not None)
    elif isinstance(node, ast.MatchValue):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TEXT_TESTS:
        yield from node.args


def breaches(source: Path = SOURCE) -> list[str]:
    """Every breach of the rules, one line each."""
    found = imports(source)
    unknown = sorted({name for each in found for name in (each.by, each.of)} - set(LEVEL))
    lines = [f"a package without a storey: {name}" for name in unknown]
    lines += [f"a circle: {', '.join(circle)}" for circle in cycles(found)]
    for each in found:
        if each.by in unknown or each.of in unknown:
            continue
        if each.private:
            lines.append(f"private: {each.place} imports {each.module}")
        if LEVEL[each.of] < LEVEL[each.by]:
            lines.append(f"upwards: {each.place} imports {each.module}")
        if each.by in PILLARS and each.of in PILLARS:
            lines.append(f"pillar to pillar: {each.place} imports {each.module}")
    return lines + [f"name of a space: {place}" for place in space_names(source)]


def text() -> str:
    """The graph in words."""
    found = imports()
    counts = Counter((each.by, each.of) for each in found)
    lines = list[str]()
    for title, names in STOREYS:
        lines.append(title)
        for name in names:
            below = sorted((of for by, of in counts if by == name), key=lambda of: (LEVEL.get(of, 9), of))
            lines.append(f"  {name:<12} -> {', '.join(f'{of} {counts[name, of]}' for of in below) or 'nothing'}")
    private = sum(each.private for each in found)
    lines += [
        "",
        f"{len(cycles(found))} cycles, {private} private imports across packages, "
        f"{len(space_names())} space names outside spaces/",
    ]
    return "\n".join(lines)


def drawing() -> str:
    """The storeys as boxes, a line for every pair of packages of which one imports the other.

    What all share is imported by nearly all, so lines to it would show nothing.
    """
    width, row, box, left = 1180, 112, 44, 150
    place = dict[str, tuple[float, float, float]]()
    shown = [(title, [n for n in names if n not in ("__main__", "version")]) for title, names in STOREYS]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {row * len(shown) + 16}" role="img">',
        "<title>The packages of nasight and what they import</title>",
        "<style>text{font:14px system-ui,sans-serif;fill:#222}.dim{fill:#666;font-size:12px}"
        ".box{fill:#fff;stroke:#0072b2;stroke-width:1.5}.way{stroke:#0072b2;stroke-opacity:.22;fill:none}"
        ".floor{fill:#f4f7fa}</style>",
        f'<rect width="{width}" height="{row * len(shown) + 16}" fill="#fff"/>',
    ]
    for level, (_, names) in enumerate(shown):
        each = (width - left - 20) / len(names)
        for i, name in enumerate(names):
            place[name] = (left + i * each, level * row + 24.0, each - 14)
        parts.append(
            f'<rect class="floor" x="8" y="{level * row + 8}" width="{width - 16}" height="{row - 20}" rx="8"/>'
        )
    ground = STOREYS[-1][1]
    ways = sorted({(i.by, i.of) for i in imports() if i.by in place and i.of in place and i.of not in ground})
    for by, of in ways:
        (x1, y1, w1), (x2, y2, w2) = place[by], place[of]
        a, b = x1 + w1 / 2, x2 + w2 / 2
        if y1 == y2:
            parts.append(f'<path class="way" d="M{a:.0f} {y1 + box} q{(b - a) / 2:.0f} 24 {b - a:.0f} 0"/>')
        else:
            bend = (y1 + box + y2) / 2
            parts.append(
                f'<path class="way" d="M{a:.0f} {y1 + box} C{a:.0f} {bend:.0f} {b:.0f} {bend:.0f} {b:.0f} {y2}"/>'
            )
    for level, (title, names) in enumerate(shown):
        parts.append(f'<text class="dim" x="20" y="{level * row + 50}">{escape(title)}</text>')
        for name in names:
            x, y, w = place[name]
            parts.append(f'<rect class="box" x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{box}" rx="6"/>')
            parts.append(f'<text x="{x + w / 2:.0f}" y="{y + 27:.0f}" text-anchor="middle">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: Sequence[str]) -> int:
    print(text())
    if "--draw" in arguments:
        PICTURE.write_text(drawing())
        print(f"drawn: {PICTURE.relative_to(ROOT)}")
    wrong = breaches()
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
