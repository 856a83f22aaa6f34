"""The smallest eigenvalue of the infinite-width kernel against depth, for each activation, with the bounds around it.

    python benchmarks/eigenvalue_depth.py

Writes a result, a table and a figure. N points of norm 1, uniform on the sphere in d > N dimensions, where
Theorem 1's lower bound is not zero; medians over seeds. Each activation through all layers, skips off and on.
"""

from __future__ import annotations

import time
from html import escape
from typing import Any

import numpy as np

from _shared import Flags, save
from nasight.kernels import ntk, schur_bound, theorem_1, theorem_1_printed
from nasight.spaces import load

ACTIVATIONS = load("mlp").groups()[0].options[0]
KEYS = ("smallest", "theorem_lower", "theorem_upper", "term_lower", "term_upper", "printed_lower")
PANEL, HEIGHT, GAP, LEFT, TOP = 176, 190, 14, 64, 58
RED, BLUE, GREEN = "#d55e00", "#0072b2", "#009e73"  # of Okabe and Ito's palette
LINES = (
    ("smallest", "smallest eigenvalue", RED, "2.5", ""),
    ("theorem_lower", "Theorem 1, repaired", BLUE, "1.5", "6 3"),
    ("theorem_upper", "", BLUE, "1.5", "6 3"),
    ("term_lower", "term by term", GREEN, "1.5", "2 3"),
    ("term_upper", "", GREEN, "1.5", "2 3"),
)


def main() -> None:
    flags = Flags(__doc__, "kernels_depth", seeds=3, chance="sets of points")
    flags.add_argument("--points", type=int, default=80)
    flags.add_argument("--dimensions", type=int, default=160)
    flags.add_argument("--deepest", type=int, default=10)
    given = flags.read(seeds=1, points=12, dimensions=24, deepest=4)
    start, rows = time.perf_counter(), []
    for name in ACTIVATIONS:
        for skip in (0, 1):
            for depth in range(2, given.deepest + 1):
                measured = [
                    measure(name, skip, depth, sphere(given.points, given.dimensions, seed))
                    for seed in range(given.seeds)
                ]
                medians = {key: float(np.median([m[key] for m in measured])) for key in KEYS}
                rows.append({"activation": name, "skips": skip, "L": depth, **medians})
            first, last = (row["smallest"] for row in (rows[1 - given.deepest], rows[-1]))
            state = "on" if skip else "off"
            print(f"{name:<11} skips {state:<3}  L=2 {first:.4g}  L={given.deepest} {last:.4g}", flush=True)
    about = {"points": given.points, "dimensions": given.dimensions, "seeds": given.seeds, "kernel": "exact"}
    about["seconds"] = round(time.perf_counter() - start, 1)
    print(f"{about['seconds']} s")
    result = {"benchmark": "eigenvalue_depth", **about, "rows": rows}
    save(given, result, table=table(rows, about), figure=figure(rows, about))


def sphere(count: int, dimensions: int, seed: int) -> np.ndarray[Any, Any]:
    rows = np.random.default_rng(seed).normal(size=(count, dimensions))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def measure(name: str, skip: int, depth: int, x: np.ndarray[Any, Any]) -> dict[str, float | None]:
    names, skips = [name] * (depth - 1), [skip] * (depth - 2)
    kernel, layers = ntk(x, names, skips, layers=True)
    theorem, terms = theorem_1(x, names, skips), schur_bound(layers, skips)
    return {
        "smallest": float(np.linalg.eigvalsh(kernel)[0]),
        "theorem_lower": theorem.lower,
        "theorem_upper": theorem.upper,
        "term_lower": terms.lower,
        "term_upper": terms.upper,
        "printed_lower": theorem_1_printed(x, names, skips).lower,
    }


def table(rows: list[dict[str, Any]], about: dict[str, Any]) -> str:
    """Markdown: a row for each activation, skips and a few depths."""
    deepest = max(row["L"] for row in rows)
    shown = sorted({2, 3, 4, (deepest + 4) // 2, deepest})
    heads = ["activation", "skips", "L", "smallest eigenvalue", "Theorem 1, repaired", "term by term", "printed lower"]
    lines = [
        f"{about['points']} points of norm 1 in {about['dimensions']} dimensions, medians over {about['seeds']} seeds, "
        f"{about['kernel']} kernel, one activation through all L-1 layers (`benchmarks/eigenvalue_depth.py`).",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
    ]
    for row in rows:
        if row["L"] in shown:
            cells = [row["activation"], "on" if row["skips"] else "off", str(row["L"]), f"{row['smallest']:.4g}"]
            cells += [f"{row[f'{kind}_lower']:.3g} to {row[f'{kind}_upper']:.4g}" for kind in ("theorem", "term")]
            lines.append("| " + " | ".join([*cells, f"{row['printed_lower']:.3g}"]) + " |")
    return "\n".join(lines) + "\n"


def figure(rows: list[dict[str, Any]], about: dict[str, Any]) -> str:
    """SVG: a column for each activation, a row for skips off and on; one logarithmic axis per row."""
    width = LEFT + len(ACTIVATIONS) * (PANEL + GAP) + 10
    height = TOP + 2 * (HEIGHT + 44) + 8
    title = f"Smallest eigenvalue against depth: {about['points']} points of norm 1, d = {about['dimensions']}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"><title>{title}</title>',
        "<style>text{font:12px system-ui,sans-serif;fill:#222}.big{font-size:16px;font-weight:600}.dim{fill:#666}"
        ".axis{stroke:#999;fill:none}.grid{stroke:#eee}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text class="big" x="14" y="24">{escape(title)}</text>',
    ]
    x = 14.0
    for _, label, color, thick, dash in LINES:
        if label:
            parts.append(
                f'<path d="M{x} 40 h26" stroke="{color}" stroke-width="{thick}" stroke-dasharray="{dash}"/>'
                f'<text x="{x + 32}" y="44">{label}</text>'
            )
            x += 60 + 7 * len(label)
    for row, skip in enumerate((0, 1)):
        chosen = [r for r in rows if r["skips"] == skip]
        values = [r[key] for r in chosen for key, *_ in LINES if r[key] > 0]
        low, high = int(np.floor(np.log10(min(values)))), int(np.ceil(np.log10(max(values))))
        for column, name in enumerate(ACTIVATIONS):
            corner = LEFT + column * (PANEL + GAP), TOP + 14 + row * (HEIGHT + 44)
            mine = [r for r in chosen if r["activation"] == name]
            heading = f"{name}, skips {'on' if skip else 'off'}"
            parts.append(panel(mine, corner, (low, high), heading, labels=column == 0))
    return "\n".join([*parts, "</svg>", ""])


def panel(
    rows: list[dict[str, Any]], corner: tuple[int, int], span: tuple[int, int], heading: str, *, labels: bool
) -> str:
    left, top = corner
    low, high = span
    depths = [row["L"] for row in rows]

    def place(depth: int, value: float) -> str:
        share = (np.log10(value) - low) / (high - low)
        across = (depth - depths[0]) / max(depths[-1] - depths[0], 1)
        return f"{left + 8 + (PANEL - 16) * across:.1f} {top + HEIGHT * (1 - share):.1f}"

    parts = [f'<text x="{left + 6}" y="{top - 4}">{escape(heading)}</text>']
    for power in range(low, high + 1):
        y = top + HEIGHT * (1 - (power - low) / (high - low))
        parts.append(f'<path class="grid" d="M{left} {y:.1f} h{PANEL}"/>')
        if labels and ((power - low) % max(1, (high - low) // 6) == 0):
            parts.append(f'<text class="dim" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    parts.append(f'<path class="axis" d="M{left} {top} v{HEIGHT} h{PANEL}"/>')
    for depth in depths[::2]:
        x = place(depth, 10.0**low).split()[0]
        parts.append(f'<text class="dim" x="{x}" y="{top + HEIGHT + 15}" text-anchor="middle">{depth}</text>')
    for key, _, color, thick, dash in LINES:
        points = [place(row["L"], row[key]) for row in rows if row[key] > 0]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}" stroke-width="{thick}" '
            f'stroke-dasharray="{dash}"/>'
        )
    return "".join(parts)


if __name__ == "__main__":
    main()
