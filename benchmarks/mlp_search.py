"""Which activations and skips a search keeps in a fully connected network (EigenNAS, Figure 1), five seeds.

    python benchmarks/mlp_search.py --data-folder DATA --out runs/mlp --report docs/kernels_mlp

`nasight search --space mlp --layers 10` with DARTS and GAEA-DARTS, both bilevel, on Fashion-MNIST. The paper's network
has width 1,024; here it has 256, for its cost. A search is a run folder: an interrupted benchmark goes on. Prints the
weights of activations and skips by layer and whether the paper's findings hold; writes REPORT.md, .json and .svg.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from nasight.parallel import map_resumable
from nasight.report._panels import Panel, Series, panels_svg
from nasight.runs import write_atomic, write_json
from nasight.search import Run, resume, search
from nasight.spaces._mlp import ACTIVATIONS

LAYERS = 10
METHODS = ("darts", "gaea-darts")
SETTINGS: dict[str, Any] = {
    "space": "mlp",
    "space_options": {"layers": LAYERS},
    "size": {"width": 256},
    "objective": "bilevel",
    "data": "fashion-mnist",
    "examples": 10_000,
    "epochs": 20,
    "threads": 1,
}
Item = tuple[str, int, str, str, bool]


def one(item: Item) -> str:
    """Search, or go on searching, and give the run's path."""
    method, seed, out, folder, quick = item
    path = Path(out) / f"{method}-{seed}"
    if (path / "run.json").exists():
        return str(resume(path, data_folder=folder).path)
    amount = {"examples": 300, "epochs": 1} if quick else {}
    return str(search(method=method, seed=seed, out=path, data_folder=folder, **{**SETTINGS, **amount}).path)


def mean(values: list[float]) -> tuple[float, float]:
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def weights(runs: list[Run]) -> dict[str, Any]:
    """Mean and deviation over the seeds: weights of activations and skips by layer, and the findings."""
    activations = [run.weights["activations"].tolist() for run in runs]  # (seeds, layers, options)
    skips = [[row[1] for row in run.weights["skips"].tolist()] for run in runs]  # (seeds, layers)
    layers = range(len(activations[0]))
    gaps = [[max(row) - min(row) for row in run] for run in activations]
    rectified = [sum(max(row) in row[:2] for row in run) for run in activations]
    return {
        "activations": {
            name: [mean([run[layer][i] for run in activations]) for layer in layers]
            for i, name in enumerate(ACTIVATIONS)
        },
        "skips": [mean([run[layer] for run in skips]) for layer in range(len(skips[0]))],
        "gaps": [mean([run[layer] for run in gaps]) for layer in layers],
        "rectified layers": mean([float(count) for count in rectified]),
        "widest gap in the first layer": sum(run.index(max(run)) == 0 for run in gaps),
        "skips kept": mean([float(sum(value > 0.5 for value in run)) for run in skips]),
        "accuracy": mean([run.history[-1]["valid_accuracy"] for run in runs]),
        "discretised": mean([run.result["accuracy"] for run in runs]),
        "seconds": mean([run.result["seconds"] for run in runs]),
        "architectures": [run.result["architecture"] for run in runs],
        "seeds": len(runs),
    }


def markdown(found: dict[str, dict[str, Any]]) -> str:
    shown = "{:.2f} ± {:.2f}".format
    lines = []
    for method, f in found.items():
        lines += [f"### {method}, {f['seeds']} seeds", "", "| | " + " | ".join(map(str, range(1, LAYERS))) + " |"]
        lines += ["|---" * LAYERS + "|"]
        lines += [
            f"| {name} | " + " | ".join(shown(*v) for v in rows) + " |" for name, rows in f["activations"].items()
        ]
        lines += [f"| largest minus smallest | {' | '.join(shown(*v) for v in f['gaps'])} |"]
        lines += [f"| skip over the layer | | {' | '.join(shown(*v) for v in f['skips'])} |", ""]
    lines += ["| | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    for name, key in (
        (f"layers of {LAYERS - 1} whose largest weight is relu's or leaky_relu's", "rectified layers"),
        (f"skips of {LAYERS - 2} above 1/2", "skips kept"),
        ("accuracy of the supernet, %", "accuracy"),
        ("discretised, %", "discretised"),
        ("seconds a search", "seconds"),
    ):
        lines.append(f"| {name} | " + " | ".join(shown(*f[key]) for f in found.values()) + " |")
    first = [f"{f['widest gap in the first layer']} of {f['seeds']}" for f in found.values()]
    lines.append("| seeds whose weights differ most in the first layer | " + " | ".join(first) + " |")
    return "\n".join([*lines, ""])


def picture(found: dict[str, dict[str, Any]]) -> str:
    panels = []
    for method, f in found.items():
        series = [
            Series(name, range(1, LAYERS), [v[0] for v in rows], [v[1] for v in rows])
            for name, rows in f["activations"].items()
        ]
        panels.append(Panel(f"{method}: activations", "layer", "weight", series, kind="line"))
    skips = [
        Series(method, range(2, LAYERS), [v[0] for v in f["skips"]], [v[1] for v in f["skips"]])
        for method, f in found.items()
    ]
    panels.append(Panel("skips", "layer", "strength", skips, kind="line"))
    return panels_svg(panels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-folder", required=True)
    parser.add_argument("--out", default="runs/mlp")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--report", default=None, help="write REPORT.md, .json and .svg")
    parser.add_argument("--quick", action="store_true", help="one epoch on 300 images: does it run")
    given = parser.parse_args()
    items = [(m, s, given.out, given.data_folder, given.quick) for s in range(given.seeds) for m in METHODS]
    paths = map_resumable(one, items, workers=given.workers, on_result=lambda item, _: print(*item[:2], flush=True))
    found = {
        method: weights([Run(path) for item, path in zip(items, paths, strict=True) if item[0] == method])
        for method in METHODS
    }
    text = markdown(found)
    print(text)
    if given.report:
        write_atomic(Path(f"{given.report}.md"), text.encode())
        write_atomic(Path(f"{given.report}.svg"), picture(found).encode())
        write_json(Path(f"{given.report}.json"), {"settings": SETTINGS, "methods": found})


if __name__ == "__main__":
    main()
