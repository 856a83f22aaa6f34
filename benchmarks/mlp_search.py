"""Which activations and skips a search keeps in a fully connected network (EigenNAS, Figure 1), five seeds.

    python benchmarks/mlp_search.py --data-folder DATA

`nasight search --space mlp --layers 10` with DARTS and GAEA-DARTS, both bilevel, on Fashion-MNIST. The paper's network
has width 1,024; here it has 256, for its cost. A search is a run folder: an interrupted benchmark resumes. Prints the
weights of activations and skips by layer and whether the paper's findings hold; writes a result, a table and a figure.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from _shared import Flags, mean_and_deviation, save, search_or_resume
from nasight.compute import map_resumable
from nasight.report import Panel, Series, panels_svg
from nasight.searching import Run
from nasight.spaces import load

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
QUICK = {"examples": 300, "epochs": 1}
ACTIVATIONS = load("mlp").groups()[0].options[0]


def find(item: tuple[str, int], settings: dict[str, Any], folder: Path, data_folder: str | None) -> str:
    """The path of a search with one method and seed, finished."""
    method, seed = item
    path = folder / f"{method}-{seed}"
    return str(search_or_resume(path, data_folder=data_folder, method=method, seed=seed, **settings).path)


def weights(runs: list[Run]) -> dict[str, Any]:
    """Mean and deviation over the seeds: weights of activations and skips by layer, and the findings."""
    activations = [run.weights["activations"].tolist() for run in runs]  # (seeds, layers, options)
    skips = [[row[1] for row in run.weights["skips"].tolist()] for run in runs]  # (seeds, layers)
    layers = range(len(activations[0]))
    gaps = [[max(row) - min(row) for row in run] for run in activations]
    rectified = [sum(max(row) in row[:2] for row in run) for run in activations]
    return {
        "activations": {
            name: [mean_and_deviation([run[layer][i] for run in activations]) for layer in layers]
            for i, name in enumerate(ACTIVATIONS)
        },
        "skips": [mean_and_deviation([run[layer] for run in skips]) for layer in range(len(skips[0]))],
        "gaps": [mean_and_deviation([run[layer] for run in gaps]) for layer in layers],
        "rectified layers": mean_and_deviation([float(count) for count in rectified]),
        "widest gap in the first layer": sum(run.index(max(run)) == 0 for run in gaps),
        "skips kept": mean_and_deviation([float(sum(value > 0.5 for value in run)) for run in skips]),
        "accuracy": mean_and_deviation([run.history[-1]["valid_accuracy"] for run in runs]),
        "discretized": mean_and_deviation([run.result["accuracy"] for run in runs]),
        "seconds": mean_and_deviation([run.result["seconds"] for run in runs]),
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
        ("discretized, %", "discretized"),
        ("seconds per search", "seconds"),
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
    flags = Flags(__doc__, "kernels_mlp", seeds=5, data="Fashion-MNIST", work="runs/mlp")
    flags.add_argument("--workers", type=int, default=1)
    given = flags.read(seeds=1)
    settings = {**SETTINGS, **(QUICK if given.quick else {})}
    items = [(method, seed) for seed in range(given.seeds) for method in METHODS]
    work = partial(find, settings=settings, folder=given.work_folder, data_folder=given.data_folder)
    paths = map_resumable(work, items, workers=given.workers, on_result=lambda item, _: print(*item, flush=True))
    found = {
        method: weights([Run(path) for item, path in zip(items, paths, strict=True) if item[0] == method])
        for method in METHODS
    }
    text = markdown(found)
    print(text)
    save(given, {"settings": settings, "methods": found}, table=text, figure=picture(found))


if __name__ == "__main__":
    main()
