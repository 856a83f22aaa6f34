"""NATS-Bench's own files (topology space), with the package nats_bench for their meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nasight.errors import RequestError
from nasight.spaces.nasbench201 import NasBench201
from nasight.tables._readers import EXTRA, places_of
from nasight.tables._safe_pickle import read_pickle
from nasight.tables._table import PARAMETERS, Table

# Our name -> (what it is trained on to validate, to test, the name of the test images); GAEA's Table 2 pairs them so.
TRAINED = {
    "c10": ("cifar10-valid", "cifar10", "ori-test"),
    "c100": ("cifar100", "cifar100", "x-test"),
    "in16": ("ImageNet16-120", "ImageNet16-120", "x-test"),
}


def read_nats(path: Path) -> Table:
    """The table in a file NATS-tss-*.pickle.pbz2 or a folder NATS-tss-*-simple; all of it is read, which takes minutes.

    The files are pickles: they are read as plain numbers only, and handed to nats_bench as such.
    """
    try:
        from nats_bench.api_utils import ArchResults
    except ImportError:
        raise RequestError(f"reading {path} needs the package nats_bench; {EXTRA}") from None
    space = NasBench201()
    columns: dict[str, Any] = {}
    seeds: dict[str, list[list[float]]] = {d: [[] for _ in range(len(space))] for d in TRAINED}
    try:
        texts, cells = _cells(path)
        for place, cell in zip(places_of(texts, path), cells, strict=True):
            results = {epochs: ArchResults.create_from_state_dict(cell[epochs]) for epochs in ("12", "200")}
            for key, value in _numbers(results).items():
                columns.setdefault(key, np.full(len(space), np.nan))[place] = value
            for dataset, (trained, _, _) in TRAINED.items():
                trials = results["200"].query(trained).values()
                seeds[dataset][place] = [float(trial.get_eval("x-valid")["accuracy"]) for trial in trials]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError(f"{path} is not laid out as NATS-Bench's topology files are: {error!r}") from error
    for dataset, values in seeds.items():
        columns[f"{dataset}_val200_std"] = [float(np.std(v)) for v in values]
        columns[f"{dataset}_nseeds"] = [float(len(v)) for v in values]
    return Table(space, columns, name="nats_bench", source=str(path), per_seed=seeds)


def _cells(path: Path) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The strings of the cells, and what is known of each, in the same order."""
    if path.is_dir():
        texts = list(read_pickle(path / "meta.pickle.pbz2")["meta_archs"])
        return texts, (read_pickle(path / f"{i:06d}.pickle.pbz2") for i in range(len(texts)))
    whole = read_pickle(path)
    return list(whole["meta_archs"]), (whole["arch2infos"][i] for i in range(len(whole["meta_archs"])))


def _numbers(results: dict[str, Any]) -> dict[str, float]:
    """The columns of one cell."""
    row: dict[str, float] = {PARAMETERS: float(results["200"].get_compute_costs("cifar10")["params"])}
    for dataset, (trained, tested, images) in TRAINED.items():
        for epochs, result in results.items():
            valid = result.get_metrics(trained, "x-valid")
            train = result.get_metrics(trained, "train")
            row[f"{dataset}_val{epochs}"] = float(valid["accuracy"])
            row[f"{dataset}_test{epochs}"] = float(result.get_metrics(tested, images)["accuracy"])
            if train["all_time"] is not None:
                row[f"{dataset}_traintime{epochs}_s"] = float(train["all_time"])
            if epochs == "12" and valid["all_time"] is not None:
                row[f"{dataset}_validtime_s"] = float(valid["all_time"]) / (valid["iepoch"] + 1)
        latency = results["200"].get_compute_costs(trained)["latency"]
        if latency is not None:
            row[f"{dataset}_latency_ms"] = 1e3 * float(latency)
    return row
