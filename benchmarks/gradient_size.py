"""The size of an architecture gradient at the published settings: what the default rates of GAEA are calibrated at.

    python benchmarks/gradient_size.py --data-folder DATA --probes 4

builds each supernet as its paper does (CIFAR-10, 16 channels; NAS-Bench-201: 5 cells per stage, DARTS: 8 cells) and
prints the largest entry of the gradient before the first step, each row's mean taken off, averaged over batches.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

from _shared import Flags, save
from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.searching import _engine, method_row, resolve
from nasight.spaces import load

PUBLISHED = (
    ("gaea-darts", "nasbench201", "erm"),
    ("gaea-gdas", "nasbench201", "bilevel"),
    ("gaea-gdas-drawn", "nasbench201", "bilevel"),
    ("gaea-gdas-straight", "nasbench201", "bilevel"),
    ("gaea-pc-darts", "darts", "bilevel"),
)
BATCH = 64
"""Published for GAEA-PC-DARTS: 256, whose gradient is a little smaller."""
QUICK: dict[str, Any] = {"batch_size": 8, "size": {"channels": 4, "cells": 3}}


def gradient_size(name: str, space_name: str, objective: str, dataset: Dataset, **settings: Any) -> float:
    """The mean over batches, for one seed."""
    space, method = load(space_name, **({"none": False} if space_name == "nasbench201" else {})), method_row(name)
    resolved = resolve(method, space, data="cifar-10", objective=objective, preset="paper", **settings)
    return _engine.Engine(resolved, space, dataset, method)._gradient_size(0)


def main() -> None:
    flags = Flags(__doc__, "gradient_size", seeds=1, chance="seeds of weights and batches", data="CIFAR-10")
    flags.add_argument("--probes", type=int, default=_engine.PROBES, help="batches")
    given = flags.read(probes=1)
    _engine.PROBES = given.probes
    dataset, rows = load_data("cifar-10", folder=given.data_folder), []
    settings = QUICK if given.quick else {"batch_size": BATCH}
    for name, space, objective in PUBLISHED:
        sizes = [gradient_size(name, space, objective, dataset, seed=s, **settings) for s in range(given.seeds)]
        size, calibrated = fmean(sizes), method_row(name).geometry.gradient
        rows.append({"method": name, "space": space, "measured": size, "table": calibrated})
        print(f"{name:14s} {space:12s} measured {size:.4f}, in the method table {calibrated}", flush=True)
    save(given, rows)


if __name__ == "__main__":
    main()
