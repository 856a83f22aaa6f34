"""What kind of cells searches find, and whether wide and shallow cells train faster (the paper Cells) at small scale.

    python benchmarks/anatomy.py --part table --part convergence --part runs --data-folder DATA

table        width, depth and percentile of the published cells
convergence  cells with DARTS_V2's operations (itself, the widest, the narrowest, random connections spread over the
             widths) on parts of CIFAR-10 and Fashion-MNIST at 12 x 12 pixels, three seeds: steps to a loss, mean loss,
             accuracy, gradient variance and top Hessian eigenvalue, and their rank correlations with width and depth
runs         widths and depths of the cells that searches found: of --runs, or of DARTS and GAEA-DARTS searches in the
             DARTS space on part of CIFAR-10, made here where they are not in --work-folder

A training or search is kept in --work-folder when it is finished, and a second call does not repeat it. Writes a result
and a table; parts that were not run keep what is there. Two more results, of longer trainings and of the searches of
trust.py:

    python benchmarks/anatomy.py --part convergence --epochs 10 --data cifar-10 --data-folder DATA \\
        --out benchmarks/results/anatomy_longer.json.gz
    python benchmarks/anatomy.py --part runs --runs runs/trust/searches/cifar-10/* \\
        --out benchmarks/results/anatomy_nasbench201.json.gz
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from _shared import Flags, kept, parts_so_far, rank_correlation, save, search_or_resume, shrunk, spread
from nasight.anatomy import (
    Design,
    gradient_variance,
    hessian_spectrum,
    names,
    narrowest,
    read_cells,
    space_of,
    variants,
    widest,
)
from nasight.compute import map_resumable
from nasight.data import Dataset, load, prepare
from nasight.reproducible import generator_for, torch_threads
from nasight.spaces import load as load_space
from nasight.studies import Protocol
from nasight.studies._convergence import judged_part
from nasight.training import TrainingCurve, train_curve

PARTS = ("table", "convergence", "runs")
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
"""Chosen by its cost alone: about two minutes per search on one core."""
QUICK_SEARCH = {**SEARCH, "size": {"channels": 2, "cells": 3}, "examples": 200, "resolution": 8, "epochs": 1}


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


def measured(item: tuple[str, str, int], protocol: Protocol, folder: str | None) -> dict[str, Any]:
    """One cell on one data set with one seed, and what is measured around it."""
    text, data_name, seed = item
    data = prepared_rows(data_name, folder, protocol)
    with torch_threads(1):
        job = protocol.job(load_space("darts"), read_cells(text).architecture(), data, lr=LR, seed=seed)
        training, network = train_curve(job, evaluations=protocol.evaluations)
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
    return shrunk(judged_part(load(name, folder=folder), protocol), SIDE)


def convergence(given: argparse.Namespace) -> dict[str, Any]:
    protocol = QUICK if given.quick else FULL
    protocol = replace(protocol, epochs=given.epochs or protocol.epochs, examples=given.examples or protocol.examples)
    texts = {load_space("darts").format(d.architecture()): d for d in family(given.cells - 3)}
    items = [(text, data, seed) for data in given.data for text in texts for seed in range(given.seeds)]
    settings = {"lr": LR, "side": SIDE, **asdict(protocol)}
    found = kept(
        given.work_folder / "trainings.json",
        items,
        partial(measured, protocol=protocol, folder=given.data_folder),
        workers=given.workers,
        settings=settings,
        tell=lambda item: f"{texts[item[0]].name} on {item[1]}, seed {item[2]}",
    )
    by_data = {}
    for data in given.data:
        mine = [row for row in found if row["data"] == data]
        cells = summarized(mine, texts)
        by_data[data] = {"cells": cells, "correlations": correlations(cells)}
    return {"settings": {**settings, "seeds": list(range(given.seeds))}, "data": by_data}


def summarized(rows: list[dict[str, Any]], texts: dict[str, Design]) -> list[dict[str, Any]]:
    """One row per cell, means over the seeds; the loss that steps are counted to is one that all reach."""
    runs = [(TrainingCurve.from_dict(row["training"]), row) for row in rows]
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
        values = [rank_correlation(x[rows_], y[rows_]) for rows_ in drawn]
        sure = [v for v in values if v is not None]
        ends = [float(q) for q in np.percentile(sure, [2.5, 97.5])] if sure else None
        rows.append({"of": a, "with": b, "cells": len(x), "rho": rank_correlation(x, y), "interval": ends})
    return rows


def find(item: tuple[str, int], settings: dict[str, Any], folder: Path, data_folder: str | None) -> str:
    method, seed = item
    path = folder / f"{method}-{seed}"
    return str(search_or_resume(path, data_folder=data_folder, method=method, seed=seed, **settings).path)


def searches(given: argparse.Namespace) -> list[str]:
    items = [(method, seed) for seed in range(given.seeds) for method in given.methods]
    settings = QUICK_SEARCH if given.quick else SEARCH
    work = partial(find, settings=settings, folder=given.work_folder / "searches", data_folder=given.data_folder)
    return map_resumable(work, items, workers=given.workers, on_result=lambda item, _: print(*item, flush=True))


def searched(folders: list[str]) -> list[dict[str, Any]]:
    rows = []
    for folder in folders:
        design, about = read_cells(folder), json.loads((Path(folder) / "run.json").read_text())
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
        cells = [spread(f) if f else "-" for f in figures]
        lines.append(f"| {method} | {kind} | {len(mine)} | {' | '.join(cells)} |")
    return lines


def _plain(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> list[str]:
    lines = ["| " + " | ".join(c.replace("_", " ") for c in columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [f"{row[c]:.4g}" if isinstance(row[c], float) else str(row[c]) for c in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    flags = Flags(__doc__, "anatomy_results", seeds=3, data="CIFAR-10 and Fashion-MNIST", work="runs/anatomy")
    flags.add_argument("--part", choices=PARTS, action="append", help="default: all but runs, and runs with --runs")
    flags.add_argument("--data", nargs="+", default=list(DATA))
    flags.add_argument("--runs", nargs="+", default=[])
    flags.add_argument("--methods", nargs="+", default=["darts", "gaea-darts"], help="searched in the DARTS space")
    flags.add_argument("--cells", type=int, default=12, help="cells compared, at least 4")
    flags.add_argument("--epochs", type=int, default=None)
    flags.add_argument("--examples", type=int, default=None)
    flags.add_argument("--workers", type=int, default=1)
    given = flags.read(seeds=1, cells=4, data=["cifar-10"])
    given.cells = max(given.cells, 4)
    parts = given.part or ["table", "convergence", *(["runs"] if given.runs else [])]
    report = parts_so_far(given.out)
    if "table" in parts:
        report["table"] = table()
    if "convergence" in parts:
        report["convergence"] = convergence(given)
    if "runs" in parts:
        report["runs"] = searched(given.runs or searches(given))
    text = markdown(report)
    print(text)
    save(given, report, table=text)


if __name__ == "__main__":
    main()
