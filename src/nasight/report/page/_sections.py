"""What each section of the page shows, as plain values: texts, drawings, charts, tables, or how to get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nasight.anatomy import Design, names, read_cells, space_of
from nasight.anatomy._landscape import Landscape
from nasight.errors import RequestError
from nasight.report._cell import cell_svg
from nasight.report._command import command_of
from nasight.report._diagnosis import Explanation
from nasight.report._landscape import contour_svg, surface, variance_svg
from nasight.report.page import _charts
from nasight.report.page._deep import kept, trainings
from nasight.search import Run
from nasight.search._parameters import Parameters

Section = dict[str, Any]
POPULAR = 4
"""So many published cells are drawn beside the found one."""


def answer(run: Run, explanation: Explanation) -> Section:
    """What was found, what it is worth, and whether to believe it."""
    design = design_of(run)
    result, counts = run.result, explanation.counts
    trained = summaries(run)
    return {
        "drawings": [] if design is None else drawings(design),
        "architecture": result["architecture"],
        "accuracy": None if not trained else trained[0],
        "shared": result["accuracy"],
        "supernet": run.history[-1]["valid_accuracy"],
        "seconds": result["seconds"],
        "parameters": trained[0]["parameters"] if trained else parameters(run),
        "verdict": verdict(explanation),
        "state": "safe"
        if counts["safe"] == len(explanation.decisions)
        else "unsafe"
        if counts["unsafe"]
        else "unknown",
        "advice": [a.to_dict() for a in explanation.advice],
        "train": f"nasight train {run.path} --seeds 3",
    }


def verdict(explanation: Explanation) -> str:
    """The answer to: may I believe the arg max?"""
    counts, total, level = explanation.counts, len(explanation.decisions), f"{100 * explanation.level:g} %"
    if not total:
        return "There was nothing to decide."
    if counts["safe"] == total:
        return f"The arg max is the best under the shared weights: all {total} decisions are safe at {level}."
    if counts["unsafe"]:
        some = "one decision has" if counts["unsafe"] == 1 else f"{counts['unsafe']} of {total} decisions have"
        return f"Do not take the arg max as it is: {some} a better alternative under the shared weights ({level})."
    return f"Not settled: {counts['unknown']} of {total} decisions cannot be told from an alternative at {level}."


def trust(run: Run, explanation: Explanation) -> Section:
    """Each decision: its weights over the epochs, its margin, verdict and advice."""
    history = run.history
    epochs = [row["epoch"] + 1 for row in history]
    courses = {}
    for group in run.space.groups():
        if group.exclusive:
            steps = [group.split(torch.tensor(row["weights"][group.name])) for row in history]
            for i, (name, options) in enumerate(zip(group.rows, group.options, strict=True)):
                courses[name] = (options, [step[i].tolist() for step in steps])
    charts = {name: _charts.weights_chart(epochs, options, rows, name) for name, (options, rows) in courses.items()}
    rows = [{**d, "spark": spark(courses[d["name"]][1]) if d["name"] in courses else ""} for d in explanation.decisions]
    return {
        "rows": rows,
        "charts": charts,
        "courses": list(charts),
        "notes": list(explanation.notes),
        "collapse": explanation.collapse,
        "candidates": list(explanation.candidates),
        "examples": explanation.about["examples"],
        "level": 100 * explanation.level,
        "several": len(explanation.runs) > 1,
    }


def spark(rows: Sequence[Sequence[float]], width: int = 96, height: int = 26) -> str:
    """The weights of a decision as a small stack of areas."""
    from nasight.report._picture import COLOURS

    if len(rows) < 2:
        rows = [*rows, *rows]
    step, parts = width / (len(rows) - 1), []
    floor = [0.0] * len(rows)
    for option in range(len(rows[0])):
        top = [below + row[option] for below, row in zip(floor, rows, strict=True)]
        up = " ".join(f"{i * step:.1f},{height * (1 - value):.1f}" for i, value in enumerate(top))
        down = " ".join(f"{i * step:.1f},{height * (1 - value):.1f}" for i, value in reversed(list(enumerate(floor))))
        parts.append(f'<polygon points="{up} {down}" fill="{COLOURS[option % len(COLOURS)]}"/>')
        floor = top
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg {box} aria-hidden="true">{"".join(parts)}</svg>'


def search(run: Run) -> Section:
    last = run.history[-1]
    keys = ("valid_accuracy", "discrete_accuracy", "drop", "entropy", "valid_loss", "discrete_loss")
    return {
        "chart": _charts.search_chart(run.history),
        "last": {key: last[key] for key in keys},
        "epochs": len(run.history),
        "rows": [{"epoch": row["epoch"] + 1, **{key: row[key] for key in keys}} for row in run.history],
    }


def anatomy(run: Run) -> Section:
    """Width, depth and percentile of the cells, the popular ones beside them, and the landscape where there is one."""
    design = design_of(run)
    found: Section = {"cells": [], "popular": [], "landscape": None, "chart": None}
    if design is not None:
        for kind, graph in design.cells:
            space = space_of(graph)
            standing = None if space is None else space.standing(graph).to_dict()
            found["cells"].append({"kind": kind, "width": graph.width, "depth": graph.depth, "standing": standing})
        graph, space = design[design.main], space_of(design[design.main])
        same = {}
        if design.space == "darts":
            others = {name: read_cells(name) for name in names()}
            found["popular"] = [
                {"name": name, "svg": cell_svg(other["normal"], title=name, standalone=False),
                 "width": other["normal"].width, "depth": other["normal"].depth}
                for name, other in list(others.items())[:POPULAR]
            ]  # fmt: skip
            same = {name: other["normal"] for name, other in others.items() if space_of(other["normal"]) == space}
        if space is not None:
            found["chart"] = _charts.standing_chart(space, graph, same)
    found["landscape"] = landscape(run.path / "deep" / "landscape" / "result.json")
    return found


def landscape(path: Path) -> Section | None:
    result = kept(path)
    if result is None:
        return None
    try:
        grid = np.array(result["grid"], dtype=float)
        losses, variances = (_grid(result[key]) for key in ("losses", "variances"))
        if losses is None:
            return None
        found = Landscape(grid, losses, variances, result["settings"])
        shown: Section = {
            "loss": _charts.small_surface(surface(found)),
            "contour": contour_svg(found),
            "hessian": result.get("hessian"),
        }
        if variances is not None:
            shown |= {"variance": _charts.small_surface(surface(found, "variances")), "map": variance_svg(found)}
        return {**shown, "data": result["data"], "part": result["part"], "examples": found.settings["examples"]}
    except (RequestError, KeyError, TypeError, ValueError):
        return None


def _grid(rows: Sequence[Sequence[float | None]] | None) -> Any:
    """Values as they were before JSON, which has no infinity."""
    return None if rows is None else np.array([[np.inf if v is None else v for v in row] for row in rows])


def kernels(run: Run) -> Section | None:
    """Scores without training: the found architecture among random ones."""
    result = kept(run.path / "deep" / "scores" / "result.json")
    if result is None or "scores" not in result:
        return None
    own = run.result["architecture"]
    mine = next((row for row in result["scores"] if row["architecture"] == own), None)
    if mine is None:
        return None
    rows = []
    for metric, direction in result["directions"].items():
        values = [row[metric] for row in result["scores"] if row is not mine]
        sign = 1 if direction == "high" else -1
        beaten = sum(sign * value < sign * mine[metric] for value in values)
        share = 100 * beaten / len(values) if values else None
        row = {"metric": metric, "value": mine[metric], "direction": direction, "beaten": share, "cells": len(values)}
        rows.append({**row, "chart": _charts.scores_chart(metric, values, mine[metric])})
    return {"rows": rows}


def compare(runs: Sequence[Run], counts: Mapping[str, Mapping[str, int]]) -> Section | None:
    """Several runs: a table with the spread over seeds, curves, cells side by side."""
    if len(runs) < 2:
        return None
    groups: dict[str, list[Run]] = {}
    for run in runs:
        s = run.settings
        groups.setdefault(f"{s.method} ({s.objective})", []).append(run)
    table = []
    for name, members in groups.items():
        trained = [t["mean"] for run in members for t in summaries(run)[:1]]
        table.append(
            {
                "name": name,
                "runs": len(members),
                "accuracy": spread([run.result["accuracy"] for run in members]),
                "entropy": spread([run.result["entropy"] for run in members], 3),
                "seconds": spread([run.result["seconds"] for run in members], 1),
                "trained": spread(trained) if trained else None,
                "safe": [counts[str(run.path)] for run in members if str(run.path) in counts],
            }
        )
    cells = []
    for run in runs:
        design = design_of(run)
        label = f"{run.settings.method} ({run.settings.objective}), seed {run.settings.seed}"
        shown = [] if design is None else drawings(design)
        cells.append({"name": label, "architecture": run.result["architecture"], "drawings": shown})
    histories = {
        f"{run.settings.method} ({run.settings.objective}), seed {run.settings.seed}, {run.path.name}": run.history
        for run in runs
    }
    return {"table": table, "chart": _charts.compare_chart(histories), "cells": cells}


def reproduce(run: Run) -> Section:
    about, s = run.folder.about, run.settings
    versions = {**about["versions"], "created": about["created"]}
    data = {"name": about["data"]["name"], "fingerprint": about["data"]["fingerprint"]}
    data |= {"classes": about["data"]["classes"], "inputs": about["data"]["inputs"]}
    return {"command": command_of(run), "versions": versions, "data": data, "settings": s.model_dump(), "seed": s.seed}


def design_of(run: Run) -> Design | None:
    """The cells of the found architecture, in spaces that have cells."""
    try:
        return read_cells(run.path)
    except RequestError:
        return None


def drawings(design: Design) -> list[dict[str, str]]:
    kinds = {"normal": "normal cell", "reduce": "reduction cell", "cell": "cell"}
    return [
        {"name": kinds.get(kind, kind), "svg": cell_svg(graph, title=kinds.get(kind, kind), standalone=False)}
        for kind, graph in design.cells
    ]


def summaries(run: Run) -> list[dict[str, Any]]:
    """Finished trainings of the found architecture, those with the most seeds first."""
    folders = dict.fromkeys(folder.parent for folder in trainings(run))
    found = [kept(folder / "summary.json") for folder in folders]
    mine = [f for f in found if f is not None and f.get("architecture") == run.result["architecture"]]
    return sorted(mine, key=lambda f: -len(f["seeds"]))


def parameters(run: Run) -> int | None:
    """Parameters of the found network at the size of the search; None where the space has no network of that size."""
    about = run.folder.about["data"]
    try:
        count = Parameters(run.space, tuple(about["inputs"]), len(about["classes"]), run.settings.size)
        return count(run.architecture)
    except RequestError:
        return None


def spread(values: Sequence[float], digits: int = 2) -> str:
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean
