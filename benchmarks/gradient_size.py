"""The size of an architecture gradient at the published settings: what the default rates of GAEA are calibrated at.

Builds each supernet as its paper does (CIFAR-10, 16 channels; NAS-Bench-201: 5 cells a stage, DARTS: 8 cells) and
prints the largest entry of the gradient before the first step, each row's mean taken off, averaged over batches.

    python benchmarks/gradient_size.py --data-folder DATA
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from nasight.data import load as load_data
from nasight.search import _engine
from nasight.search._settings import resolve
from nasight.search.methods import method
from nasight.spaces import load

PUBLISHED = (
    ("gaea-darts", "nasbench201", "erm", 64),
    ("gaea-gdas", "nasbench201", "erm", 64),
    ("gaea-pc-darts", "darts", "bilevel", 64),  # published: 256, whose gradient is a little smaller
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-folder", required=True)
    parser.add_argument("--probes", type=int, default=_engine.PROBES)
    parser.add_argument("--out", default=None)
    given = parser.parse_args()
    _engine.PROBES = given.probes
    dataset, rows = load_data("cifar-10", folder=given.data_folder), []
    for name, space_name, objective, batch in PUBLISHED:
        space = load(space_name, none=False) if space_name == "nasbench201" else load(space_name)
        settings = resolve(
            method(name), space=space_name, data="cifar-10", objective=objective, preset="paper", batch_size=batch
        )
        size = _engine.Engine(settings, space, dataset)._gradient_size()
        rows.append({"method": name, "space": space_name, "measured": size, "table": method(name).geometry.gradient})
        print(f"{name:14s} {space_name:12s} measured {size:.4f}, in the method table {rows[-1]['table']}", flush=True)
    if given.out:
        Path(given.out).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
