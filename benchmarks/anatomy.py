"""What kind of cells searches find, and whether wide and shallow cells train faster (the paper Cells) at small scale.

    python benchmarks/anatomy.py --part table --report docs/anatomy_results
    python benchmarks/anatomy.py --part convergence --data-folder DATA --out runs/anatomy --report docs/anatomy_results
    python benchmarks/anatomy.py --part runs --data-folder DATA --out runs/cells --report docs/anatomy_results
    python benchmarks/anatomy.py --part runs --runs runs/trust/searches/cifar-10/* --report docs/anatomy_nasbench201

table        width, depth and percentile of the published cells
convergence  cells with DARTS_V2's operations (itself, the widest, the narrowest, random connections spread over the
             widths) on parts of CIFAR-10 and Fashion-MNIST at 12 x 12 pixels, three seeds: steps to a loss, mean loss,
             accuracy, gradient variance and top Hessian eigenvalue, and their rank correlations with width and depth
runs         widths and depths of the cells that searches found: of --runs, or of DARTS and GAEA-DARTS searches in the
             DARTS space on part of CIFAR-10, made here where they are not in --out

A training or search is written to --out when it is finished, and a second call does not repeat it. --report NAME writes
NAME.json and NAME.md; parts that were not run keep what is there.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from nasight.anatomy import (
    Design,
    Protocol,
    Training,
    names,
    narrowest,
    read_cells,
    space_of,
    train_curve,
    variants,
    widest,
)
from nasight.anatomy._convergence import judged_part
from nasight.anatomy._hessian import hessian_spectrum
from nasight.anatomy._variance import gradient_variance
from nasight.data import Dataset, generator_for, load, prepare
from nasight.parallel import map_resumable
from nasight.reproducible import torch_threads
from nasight.runs import RunFolder, read_json
from nasight.search import resume, search

BASE, SIDE, LR = "DARTS_V2", 12, 0.025
DATA = ("cifar-10", "fashion-mnist")
FULL = Protocol(epochs=3, batch_size=32, channels=6, cells=4, examples=1600, test_examples=500, evaluations=2)
QUICK = replace(FULL, epochs=1, channels=2, cells=3, examples=160, test_examples=100)
MEASURED = 128
"""Test examples for gradient variance; a quarter of them for the Hessian."""
MEASURES = ("steps_to_loss", "mean_loss", "loss", "accuracy", "gradient_variance", "top_eigenvalue")
DRAWS = 2000
SEARCH: dict[str, Any] = {
    "space": "darts",
    "objective": "bilevel",
    "data": "cifar-10",
    "size": {"channels": 4, "cells": 4},
    "examples": 1000,
    "resolution": SIDE,
    "epochs": 10,
    "batch_size": 32,
    "threads": 1,
}
"""Chosen by its cost alone: about two minutes a search on one core."""


def table() -> list[dict[str, Any]]:
    rows = []
    for name in names():
        for kind, graph in read_cells(name).cells:
            space = space_of(graph)
            assert space is not None
            where = space.standing(graph).to_dict()
            rows.append({"cell": name, "kind": kind, "width": graph.width, "depth": graph.depth, **where})
    return rows


def family(count: int) -> list[Design]:
    """DARTS_V2, its widest and narrowest adaptation, and random connections with widths from end to end.

    Only the normal cell varies, so that all networks reduce alike.
    """
    base = read_cells(BASE)
    ends = [base.replace(d.name, normal=d["normal"]) for d in (widest(base), narrowest(base))]
    many = sorted(variants(base, 60, seed=1), key=lambda d: (d["normal"].width, -d["normal"].depth))
    taken = {d["normal"].key() for d in (base, *ends)}
    many = [d for d in many if d["normal"].key() not in taken]
    return [base, *ends, *(many[round(i)] for i in np.linspace(0, len(many) - 1, count))]


@dataclass(frozen=True)
class Work:
    """One cell on one data set with one seed, and what is measured around it."""

    protocol: Protocol
    folder: str | None

    def __call__(self, item: tuple[str, str, int]) -> dict[str, Any]:
        text, data_name, seed = item
        data = prepared_rows(data_name, self.folder, self.protocol)
        with torch_threads(1):
            arch = read_cells(text).architecture()
            training, network = train_curve("darts", arch, data, self.protocol, lr=LR, seed=seed)
            x, y = next(prepare(data).batches("test", size=MEASURED))
            variance = gradient_variance(network, x, y)
            few = MEASURED // 4
            spectrum = hessian_spectrum(
                network, x[:few], y[:few], generator=generator_for(seed, "hessian"), probes=2, tolerance=5e-2
            )
        return {
            "data": data_name,
            "training": training.to_dict(),
            "gradient_variance": variance if math.isfinite(variance) else None,
            "top_eigenvalue": spectrum.largest,
        }


@cache
def prepared_rows(name: str, folder: str | None, protocol: Protocol) -> Dataset:
    return shrunk(judged_part(load(name, folder=folder), protocol))


def shrunk(data: Dataset) -> Dataset:
    """Images of SIDE x SIDE pixels, each the mean of those it covers."""

    def small(x: torch.Tensor | None) -> torch.Tensor | None:
        if x is None or min(x.shape[2:]) <= SIDE:
            return x
        pooled = [torch.nn.functional.adaptive_avg_pool2d(part.float(), SIDE) for part in torch.split(x, 4096)]
        return torch.cat(pooled).round().to(torch.uint8)

    train_x = small(data.train_x)
    assert train_x is not None
    return replace(data, train_x=train_x, test_x=small(data.test_x))


def convergence(given: argparse.Namespace) -> dict[str, Any]:
    protocol, designs = (QUICK if given.quick else FULL), family(1 if given.quick else given.cells - 3)
    seeds = range(1 if given.quick else given.seeds)
    protocol = replace(protocol, epochs=given.epochs or protocol.epochs, examples=given.examples or protocol.examples)
    texts = {_text(design): design for design in designs}
    items = [(text, data, seed) for data in given.data for text in texts for seed in seeds]
    settings = {"lr": LR, "side": SIDE, **asdict(protocol)}
    folder = RunFolder.go_on(given.out, kind="anatomy-benchmark", holds="a benchmark", settings=settings)
    rows = folder.history
    done = {(r["training"]["architecture"], r["data"], r["training"]["seed"]): r for r in rows}

    def arrived(item: tuple[str, str, int], row: dict[str, Any]) -> None:
        rows.append(row)
        folder.write_history(rows)
        print(f"{len(rows)} trainings, {texts[item[0]].name} on {item[1]}, seed {item[2]}", flush=True)

    work = Work(protocol, given.data_folder)
    found = map_resumable(work, items, workers=given.workers, done=done, on_result=arrived)
    by_data = {}
    for data in given.data:
        mine = [row for row in found if row["data"] == data]
        cells = summarised(mine, texts)
        by_data[data] = {"cells": cells, "correlations": correlations(cells)}
    return {"settings": {**settings, "seeds": list(seeds)}, "data": by_data}


def _text(design: Design) -> str:
    from nasight.spaces import load as load_space

    return load_space("darts").format(design.architecture())


def summarised(rows: list[dict[str, Any]], texts: dict[str, Design]) -> list[dict[str, Any]]:
    """One row a cell, means over the seeds; the loss that steps are counted to is one that all reach."""
    runs = [(Training.from_dict(row["training"]), row) for row in rows]
    target = max(min(p.loss for p in t.curve) for t, _ in runs if not t.diverged or all(r.diverged for r, _ in runs))
    cells = []
    for text, design in texts.items():
        mine = [(t, row) for t, row in runs if t.architecture == text]
        graph = design["normal"]
        values: dict[str, list[float | None]] = {
            "steps_to_loss": [t.steps_to(target) for t, _ in mine],
            "mean_loss": [t.area() for t, _ in mine],
            "loss": [t.loss for t, _ in mine],
            "accuracy": [t.accuracy for t, _ in mine],
            "gradient_variance": [row["gradient_variance"] for _, row in mine],
            "top_eigenvalue": [row["top_eigenvalue"] for _, row in mine],
        }
        figures = {
            name: None if None in each else mean(v for v in each if v is not None) for name, each in values.items()
        }
        about = {"cell": design.name, "width": graph.width, "depth": graph.depth, "architecture": text}
        cells.append({**about, "target_loss": target, "diverged": sum(t.diverged for t, _ in mine), **figures})
    return sorted(cells, key=lambda c: (-c["width"], c["depth"]))


def correlations(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spearman's over the cells, with a 95 % interval from resampled cells."""
    pairs = [(a, b) for a in ("width", "depth") for b in MEASURES] + [(s, "accuracy") for s in MEASURES[:2]]
    rng, rows = np.random.default_rng(0), []
    for a, b in pairs:
        x, y = (np.array([np.nan if c[k] is None else c[k] for c in cells], float) for k in (a, b))
        kept = np.isfinite(x) & np.isfinite(y)
        x, y = x[kept], y[kept]
        drawn = (rng.integers(len(x), size=len(x)) for _ in range(DRAWS))
        values = [_rank_correlation(x[rows_], y[rows_]) for rows_ in drawn]
        sure = [v for v in values if v is not None]
        ends = [float(q) for q in np.percentile(sure, [2.5, 97.5])] if sure else None
        rows.append({"of": a, "with": b, "cells": len(x), "rho": _rank_correlation(x, y), "interval": ends})
    return rows


def _rank_correlation(x: Any, y: Any) -> float | None:
    if len(set(x.tolist())) < 2 or len(set(y.tolist())) < 2:
        return None
    return float(spearmanr(x, y).statistic)


def find(item: tuple[str, int], out: str, data_folder: str) -> str:
    method, seed = item
    path = Path(out) / f"{method}-{seed}"
    if (path / "run.json").exists():
        return str(resume(path, data_folder=data_folder).path)
    return str(search(**SEARCH, method=method, seed=seed, out=path, data_folder=data_folder).path)


def searches(given: argparse.Namespace) -> list[str]:
    items = [(method, seed) for seed in range(given.seeds) for method in given.methods]
    work = partial(find, out=given.out, data_folder=given.data_folder)
    return map_resumable(work, items, workers=given.workers, on_result=lambda item, _: print(*item, flush=True))


def searched(folders: list[str]) -> list[dict[str, Any]]:
    rows = []
    for folder in folders:
        design, about = read_cells(folder), read_json(Path(folder) / "run.json")
        for kind, graph in design.cells:
            space = space_of(graph)
            where = {} if space is None else space.standing(graph).to_dict()
            settings, operations = about["settings"], [operation for _, _, operation in graph.edges]
            rows.append(
                {
                    "run": Path(folder).name,
                    "method": f"{settings['method']} {settings['objective']}",
                    "seed": settings["seed"],
                    "kind": kind,
                    "width": graph.width,
                    "depth": graph.depth,
                    "skips": sum("skip" in o for o in operations),
                    "pools": sum("pool" in o for o in operations),
                    "convolutions": sum("conv" in o for o in operations),
                    **where,
                }
            )
    return rows


def markdown(report: dict[str, Any]) -> str:
    lines = ["# Anatomy of cells: figures", "", "Made by `python benchmarks/anatomy.py` (see its first lines)."]
    if "table" in report:
        lines += ["", "## Published cells", "", *_table(report["table"], ("cell", "kind", "width", "depth"))]
    if "runs" in report:
        lines += ["", "## Cells of searches", "", *_table(report["runs"], ("method", "seed", "kind", "width", "depth"))]
        lines += ["", *_means(report["runs"])]
    if "convergence" in report:
        settings = report["convergence"]["settings"]
        lines += ["", "## Convergence", "", "Settings: " + ", ".join(f"{k} {v}" for k, v in settings.items()) + "."]
        for data, part in report["convergence"]["data"].items():
            lines += ["", f"### {data}", "", f"Steps to a test loss of {part['cells'][0]['target_loss']:.3f}.", ""]
            lines += _plain(part["cells"], ("cell", "width", "depth", *MEASURES, "diverged"))
            lines += ["", "| rank correlation of | with | rho | 95 % interval |", "|---|---|---|---|"]
            for row in part["correlations"]:
                rho = "-" if row["rho"] is None else f"{row['rho']:.2f}"
                span = "-" if row["interval"] is None else "{:.2f} to {:.2f}".format(*row["interval"])
                lines.append(f"| {row['of'].replace('_', ' ')} | {row['with'].replace('_', ' ')} | {rho} | {span} |")
    return "\n".join([*lines, ""])


def _table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> list[str]:
    heads = (*columns, "of cells", "at most as wide", "at most as deep", "at least as wide and at most as deep")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        first = [f"{row[c]:g}c" if c == "width" else str(row[c]) for c in columns]
        shares = [f"{row[c]:.1f} %" for c in ("width_percentile", "depth_percentile", "as_wide_and_shallow")]
        lines.append("| " + " | ".join([*first, f"{row['cells']:,}", *shares]) + " |")
    return lines


def _means(rows: list[dict[str, Any]]) -> list[str]:
    columns = ("width", "depth", "skips", "pools", "convolutions", "as_wide_and_shallow")
    lines = [
        "| method | kind | searches | width, c | depth | skips | pools | convolutions |"
        " % of the space at least as wide and at most as deep |",
        "|---" * 9 + "|",
    ]
    for method, kind in dict.fromkeys((r["method"], r["kind"]) for r in rows):
        mine = [r for r in rows if (r["method"], r["kind"]) == (method, kind)]
        figures = [[r[c] for r in mine if c in r] for c in columns]
        cells = [f"{mean(f):.2f} ± {np.std(f, ddof=1):.2f}" if len(f) > 1 else str(f) for f in figures]
        lines.append(f"| {method} | {kind} | {len(mine)} | {' | '.join(cells)} |")
    return lines


def _plain(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> list[str]:
    lines = ["| " + " | ".join(c.replace("_", " ") for c in columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [f"{row[c]:.4g}" if isinstance(row[c], float) else str(row[c]) for c in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("table", "convergence", "runs"), action="append")
    parser.add_argument("--data-folder", default=None)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--runs", nargs="+", default=[])
    parser.add_argument("--methods", nargs="+", default=["darts", "gaea-darts"], help="searched in the DARTS space")
    parser.add_argument("--cells", type=int, default=12, help="cells compared, at least 4")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--examples", type=int, default=None)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", default="runs/anatomy")
    parser.add_argument("--report", default=None, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="tiny networks, four cells, one seed")
    given = parser.parse_args()
    given.cells = max(given.cells, 4)
    parts = given.part or ["table", "convergence", *(["runs"] if given.runs else [])]
    place = None if given.report is None else Path(f"{given.report}.json")
    report: dict[str, Any] = json.loads(place.read_text()) if place is not None and place.exists() else {}
    if "table" in parts:
        report["table"] = table()
    if "convergence" in parts:
        report["convergence"] = convergence(given)
    if "runs" in parts:
        report["runs"] = searched(given.runs or searches(given))
    print(markdown(report))
    if place is not None:
        place.write_text(json.dumps(report, indent=1) + "\n")
        place.with_suffix(".md").write_text(markdown(report))


if __name__ == "__main__":
    main()
