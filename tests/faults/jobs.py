"""The commands that write a folder, each as small as it goes: how it starts, how it goes on, what it leaves."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

import nasight
from nasight.anatomy import landscape_run, read_cells
from nasight.data import Dataset
from nasight.features import resume as resume_select
from nasight.features import select
from nasight.kernels import score
from nasight.runs import RunFolder
from nasight.searching import METHODS, Run
from nasight.spaces import load
from nasight.studies import Protocol, compare_cells, retrain, search
from nasight.studies import resume as resume_search
from nasight.tables import race
from nasight.training import train, train_seeds
from tables.synthetic import synthetic_table

CLOCKED = {
    "seconds", "training_seconds", "run", "out", "page", "created", "peak_bytes", "folder", "report", "clock",
    "latency", "best_latency", "began",
}  # fmt: skip
TINY: dict[str, Any] = {"preset": "tiny", "examples": 60, "epochs": 2, "batch_size": 16, "threads": 1, "candidates": 2}
NET: dict[str, Any] = {"preset": "tiny", "epochs": 2, "examples": 60, "batch_size": 16, "size": {"width": 4}}


@dataclass(frozen=True)
class FaultJob:
    """A command: `work` begins it, or goes on with it, in a folder."""

    command: str
    name: str
    work: Callable[[Path], Any]


@cache
def rows(count: int = 120) -> Dataset:
    """A few digits, in order, ten classes."""
    whole = nasight.data.load("digits")
    return nasight.data.load((whole.train_x[:count], whole.train_y[:count], whole.train_x[-60:], whole.train_y[-60:]))


def fits(method: str, objective: str) -> dict[str, Any]:
    """A space on which the method can search, as small as it goes."""
    row = METHODS[method]
    needs_cells = row.relaxation.edges or row.relaxation.partial > 1 or len(row.schedule.stages) > 1
    needs_cells = needs_cells or row.objectives[0].per_example
    if needs_cells:
        return {"space": "nasbench201", "size": {"channels": 4, "cells": 1}}
    return {"space": "mlp", "size": {"width": 4}, "space_options": {"layers": 3}}


def _search(method: str, objective: str | None, out: Path) -> None:
    if (out / "run.json").is_file():
        resume_search(out, data=rows())
        return
    if objective is None:
        settings = {key: TINY[key] for key in ("preset", "examples", "epochs", "batch_size", "threads")}
        search("mlp", method, rows(), out=out, candidates=3, top=2, size={"width": 4}, **settings)
        return
    where = fits(method, objective)
    search(where.pop("space"), method, rows(), objective=objective, out=out, checkpoint_seconds=0.0, **where, **TINY)


def _train(out: Path) -> None:
    train("mlp", "relu,relu,relu/0,0", rows(), out=out, threads=1, checkpoint_seconds=0.0, **NET)


def _seeds(out: Path) -> None:
    train_seeds("mlp", "relu,relu,relu/0,0", rows(), out=out, seeds=(0, 1), workers=1, threads=1, **NET)


def _select(out: Path) -> None:
    if (out / "run.json").is_file():
        resume_select(out, data=table())
    else:
        select("fourier", table(), configs=6, dimension=40, out=out, threads=1)


@cache
def table() -> tuple[Any, Any]:
    digits = rows()
    return digits.train_x.flatten(1).float().numpy(), digits.train_y.numpy()


def _score(out: Path) -> None:
    score("mlp", "params,naswot", rows(), sample=24, workers=1, out=out, batch=8)


def _race(out: Path) -> None:
    race(["rs", "rea"], table=_table(), budget=2000, trials=30, workers=1, out=out)


@cache
def _table() -> Any:
    return synthetic_table()


def _variants(out: Path) -> None:
    protocol = Protocol(epochs=1, batch_size=20, channels=2, cells=1, examples=40, test_examples=40)
    designs = [read_cells(name) for name in ("DARTS_V1", "DARTS_V2")]
    compare_cells(designs, rows(), protocol=protocol, seeds=(0, 1), out=out, workers=1)


def _claims(out: Path) -> None:
    names = ["cells-width-depth", "simplex-condition", "eigen-bounds-printed"]
    nasight.reproduce(names, seeds=3, workers=1, out=out)


def _landscape(out: Path) -> None:
    torch.manual_seed(0)
    space = load("mlp", layers=3)
    network = space.network(space.reference, rows().inputs, 10, width=4)
    landscape_run(network, rows(), out=out, points=7, examples=20, workers=1, probes=2)


def _resolve(out: Path) -> None:
    if not (out / "result.json").is_file():
        _search("gaea-darts", "erm", out)
    run = Run(out)
    generator = torch.Generator().manual_seed(0)
    texts = [run.space.format(run.space.sample(generator)) for _ in range(3)]
    retrain(run, texts, rows(), epochs=1)


def _find_vectors(out: Path) -> None:
    data = (rows().train_x.flatten(1).float(), rows().train_y)
    if (out / "run.json").is_file():
        nasight.resume_find(out, data=data)
    else:
        nasight.find(data, out=out, trainings=26, epochs=1, workers=1)


def searches() -> Iterator[FaultJob]:
    """Every method with each of its objectives, and a method without training."""
    for row in METHODS.values():
        for objective in row.objectives:
            yield FaultJob("search", f"{row.name}, {objective.name}", partial(_search, row.name, objective.name))
    yield FaultJob("search", "naswot, without training", partial(_search, "naswot", None))


def others() -> Iterator[FaultJob]:
    """The other commands that write folders."""
    yield FaultJob("train", "one seed", _train)
    yield FaultJob("train", "two seeds", _seeds)
    yield FaultJob("select", "fourier", _select)
    yield FaultJob("score", "two metrics", _score)
    yield FaultJob("table race", "two methods", _race)
    yield FaultJob("cell --variants", "two cells", _variants)
    yield FaultJob("cell --landscape", "7 x 7 points", _landscape)
    yield FaultJob("reproduce", "three claims", _claims)
    yield FaultJob("explain --resolve", "three candidates", _resolve)
    yield FaultJob("find", "26 trainings", _find_vectors)


def contents(folder: Path) -> dict[str, Any]:
    """What a finished command leaves, without clocks and paths: JSON as values, checkpoints by their tensors."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or path.name.startswith(".") or path.suffix in (".html", ".svg", ".py", ".pt2"):
            continue
        if path.name == "journal.jsonl" or path.name in ("state.json", "run.json", "model.json", "scores.jsonl"):
            continue  # clocks; checksums of files with clocks; the order of what arrived
        if path.suffix == ".json":
            found[name] = _timeless(json.loads(path.read_text()))
        elif path.suffix == ".jsonl":
            lines = [_timeless(json.loads(line)) for line in path.read_text().splitlines()]
            found[name] = sorted(lines, key=json.dumps)
    for path in sorted(folder.rglob("state.json")):
        state = RunFolder(path.parent).load()
        found[f"{path.relative_to(folder)} tensors"] = _digest(_timeless(state))
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if key not in CLOCKED}
    if isinstance(value, list | tuple):
        return [_timeless(each) for each in value]
    return value


def _digest(value: Any) -> str:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    tensors: list[bytes] = []
    _flatten(value, tensors)
    return hashlib.sha256(b";".join(tensors)).hexdigest()


def _flatten(value: Any, into: list[bytes]) -> None:
    if isinstance(value, torch.Tensor):
        into.append(value.detach().contiguous().cpu().numpy().tobytes())
    elif isinstance(value, dict):
        for key, each in value.items():
            into.append(str(key).encode())
            _flatten(each, into)
    elif isinstance(value, list | tuple):
        for each in value:
            _flatten(each, into)
    else:
        into.append(repr(value).encode())
