"""Cells from a name, a text, a file or a run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasight.anatomy._graph import CellGraph
from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.runs import RunFolder, read_json
from nasight.spaces import load
from nasight.spaces._darts_popular import POPULAR
from nasight.spaces._darts_text import INPUTS, KINDS, Cell, checked, json_text, read
from nasight.spaces._nasbench201 import EDGES, NODES, edge_name

SIZES = {"darts": {"channels": 36, "cells": 20}, "nasbench201": {"channels": 16, "cells": 5}}
"""The networks that the papers retrain: where parameters are counted."""


@dataclass(frozen=True)
class Design:
    """The cells of an architecture by their kind: "normal" and "reduce", or one "cell" (NAS-Bench-201).

    A description of a normal cell alone has a drawing, a width and a depth, but is no network.
    """

    name: str
    space: str
    cells: tuple[tuple[str, CellGraph], ...]
    idle: int = 0
    """Operations left out of the graph because they are on no path to the output (NAS-Bench-201)."""
    whole: Architecture | None = None
    """The architecture where the graphs do not hold all of it: the idle operations."""

    def __getitem__(self, kind: str) -> CellGraph:
        found = dict(self.cells).get(kind)
        if found is None:
            raise RequestError(f"{self.name} has no {kind!r} cell, only {', '.join(k for k, _ in self.cells)}")
        return found

    @property
    def main(self) -> str:
        """The kind of the cell that a network repeats."""
        return self.cells[0][0]

    def replace(self, name: str, **cells: CellGraph) -> Design:
        """The design with other cells under another name."""
        return Design(name, self.space, tuple((kind, cells.get(kind, graph)) for kind, graph in self.cells))

    def architecture(self) -> Architecture:
        """The architecture, which `nasight.spaces.load(design.space)` builds networks of."""
        if self.whole is not None:
            return self.whole
        space = load(self.space)
        if self.space == "nasbench201":
            operations = {edge_name(s, t): operation for s, t, operation in self["cell"].edges}
            return space.architecture({d.name: operations.get(d.name, "none") for d in space.decisions})
        return space.parse(json_text({kind: _cell(kind, self[kind]) for kind in KINDS}))

    def parameters(self, classes: int = 10, **size: int) -> int:
        """Parameters of the network of this size, else of the one that the papers retrain."""
        import torch

        with torch.device("meta"):
            network = load(self.space).network(
                self.architecture(), (3, 32, 32), classes, **{**SIZES[self.space], **size}
            )
        return sum(p.numel() for p in network.parameters())


def names() -> tuple[str, ...]:
    """The published cells that `read_cells` knows."""
    return tuple(POPULAR)


def read_cells(source: str | Path) -> Design:
    """The cells of a published name, a `Genotype(...)`, a JSON text or file, a NAS-Bench-201 string, or a run folder.

    A JSON description is {"normal": [[node, input, operation], ...], "normal_concat": [...], "reduce": ...}, or the
    list of one normal cell; a file may hold several under "cells", chosen by FILE.json:NAME.

    >>> design = read_cells("DARTS_V2")
    >>> design["normal"].width, design["normal"].depth
    (3.5, 3)
    """
    text = str(source).strip()
    if not text:
        raise RequestError("there is no cell in an empty text; give a name, a Genotype(...), a file or a run")
    if text.startswith("|"):
        return _nasbench201("nasbench201", text)
    if "(" in text or text[0] in "{[":
        return _darts("cell", text)
    known = {name.lower(): name for name in POPULAR}
    if text.lower() in known:
        return _darts(known[text.lower()], known[text.lower()])
    path, chosen = _place(text)
    if path is not None:
        return _from_run(path) if path.is_dir() else _from_file(path, chosen)
    if "/" in text or re.search(r"\.json(:\w+)?$", text):
        raise RequestError(f"{text} does not exist; give a published cell ({', '.join(POPULAR)}), a file or a run")
    read(text)  # says what is wrong with the name
    raise AssertionError(text)


def _place(text: str) -> tuple[Path | None, str | None]:
    try:
        if Path(text).exists():
            return Path(text), None
        file, _, chosen = text.rpartition(":")
        return (Path(file), chosen) if file and Path(file).is_file() else (None, None)
    except (OSError, ValueError):  # a text too long for a name, or with a zero byte
        return None, None


def _from_file(path: Path, chosen: str | None) -> Design:
    value = read_json(path)
    if isinstance(value, dict) and isinstance(value.get("cells"), dict):
        cells = value["cells"]
        name = next(iter(cells)) if chosen is None and len(cells) == 1 else str(chosen or "")
        if name not in cells:
            got = f", got {name!r}" if name else ""
            raise RequestError(f"{path} holds {', '.join(cells)}; choose one with {path}:NAME{got}")
        return _described(name, cells[name])
    if isinstance(value, str):
        return read_cells(value)
    return _described(path.stem, value)


def _from_run(path: Path) -> Design:
    if not (path / "run.json").is_file():
        raise RequestError(f"{path} is not a run: it has no run.json")
    about = read_json(path / "run.json")
    kind = about.get("kind") if isinstance(about, dict) else None
    if kind not in ("search", "train"):
        raise RequestError(f"{path} is a {kind!r} run, not one of a search or a training")
    folder = RunFolder.open(path, kind=kind)
    found = folder.result if kind == "search" else about
    if found is None:
        raise RequestError(f"the search in {path} is not finished; go on with: nasight search --resume {path}")
    space, text = found.get("space"), found.get("architecture")
    if space == "nasbench201":
        return _nasbench201(path.name, str(text))
    if space == "darts":
        return _darts(path.name, str(text))
    raise RequestError(
        f"{path} is of space {space!r}, whose architectures are no cells; darts and nasbench201 have them"
    )


def _darts(name: str, text: str) -> Design:
    if text[0] in "{[":
        try:
            return _described(name, json.loads(text))
        except json.JSONDecodeError as error:
            raise RequestError(f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from error
    return _design(name, read(text))


def _described(name: str, value: Any) -> Design:
    if isinstance(value, list):
        value = {"normal": value}
    if not isinstance(value, dict):
        raise RequestError(f"{name}: expected lists of [node, input, operation], got {str(value)[:80]!r}")
    if "reduce" in value or "normal" not in value:
        return _design(name, read(json.dumps(value)))
    unknown = sorted(set(value) - {"normal", "normal_concat"})
    if unknown:
        raise RequestError(f"unknown field {unknown[0]!r}; a normal cell alone has normal and normal_concat")
    entries, joined = value["normal"], value.get("normal_concat")
    for place, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
        if not (isinstance(entry, list) and len(entry) == 3):
            raise RequestError(f"normal cell, entry {place}: expected [node, input, operation], got {entry!r}")
    if joined is not None and not isinstance(joined, list):
        raise RequestError(f"normal_concat must be a list, got {joined!r}")
    return _design(name, {"normal": checked("normal", entries, joined)})


def _design(name: str, cells: Mapping[str, Cell]) -> Design:
    graphs = []
    for kind, cell in cells.items():
        edges = tuple((source, node, operation) for node, source, operation in cell.entries)
        graphs.append((kind, CellGraph(INPUTS, len(cell.nodes), edges, cell.concat)))
    return Design(name, "darts", tuple(graphs))


def _cell(kind: str, graph: CellGraph) -> Cell:
    return checked(kind, [(target, source, operation) for source, target, operation in graph.edges], graph.joined)


def _nasbench201(name: str, text: str) -> Design:
    whole = load("nasbench201").parse(text)
    chosen = [(s, t, whole[edge_name(s, t)]) for s, t in EDGES]
    every = CellGraph(1, NODES - 2, tuple(edge for edge in chosen if edge[2] != "none"), ())
    graph = every.live()
    return Design(name, "nasbench201", (("cell", graph),), len(every.edges) - len(graph.edges), whole)
