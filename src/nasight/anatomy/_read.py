"""Cells from a name, a text, a file or a run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.runs import RunFolder, read_json
from nasight.spaces import SPACES, CellGraph, Space, load


@dataclass(frozen=True)
class Design:
    """The cells of an architecture by their kind: "normal" and "reduce", or one "cell" (NAS-Bench-201).

    A description of a normal cell alone has a drawing, a width and a depth, but is no network.
    """

    name: str
    space: str
    cells: tuple[tuple[str, CellGraph], ...]
    idle: int = 0
    """Operations left out of the graphs because they are on no path to the output (NAS-Bench-201)."""
    whole: Architecture | None = None
    """The architecture where the graphs do not hold all of it: the idle operations."""

    @classmethod
    def of(cls, name: str, space: Space, cells: Mapping[str, CellGraph], arch: Architecture | None = None) -> Design:
        """The design of these cells; operations that compute nothing are left out.

        Where nodes are joined, that is so for what reads a node which nothing enters (published cells with `none`).
        """
        live = {kind: graph if graph.joined and graph.reached() else graph.live() for kind, graph in cells.items()}
        idle = sum(len(cells[kind].edges) - len(graph.edges) for kind, graph in live.items())
        return cls(name, space.name, tuple(live.items()), idle, arch if idle else None)

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
        return self.whole if self.whole is not None else load(self.space).from_cells(dict(self.cells))

    def parameters(self, classes: int = 10, **size: int) -> int:
        """Parameters of the network of this size, else of the one that the papers retrain."""
        space = load(self.space)
        paper = space.train_settings.get("paper", {}).get("size", {})
        return space.parameters((3, 32, 32), classes, **{**paper, **size}).built(self.architecture())

    def multiply_adds(self, classes: int = 10, **size: int) -> int:
        """Multiply-adds of the same network for one example of 32 x 32 pixels, or 224 x 224 with ImageNet's stem."""
        space = load(self.space)
        paper = dict(space.train_settings.get("paper", {}).get("size", {}))
        side = 224 if size.get("stem") else 32
        return space.multiply_adds((3, side, side), classes, **{**paper, **size}).built(self.architecture())


def names() -> tuple[str, ...]:
    """The published cells that `read_cells` knows."""
    return tuple(name for space in _spaces() for name in space.published)


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
    found = _described("cell", text)
    if found is not None:
        return found
    path, chosen = _place(text)
    if path is not None:
        return _from_run(path) if path.is_dir() else _from_file(path, chosen)
    if "/" in text or re.search(r"\.json(:\w+)?$", text):
        raise RequestError(f"{text} does not exist; give a published cell ({', '.join(names())}), a file or a run")
    for space in _spaces():
        if space.published:
            space.parse(text)  # says what is wrong with the name
    raise RequestError(f"there is no cell {text!r}; published are {', '.join(names())}")


def _spaces() -> Iterator[Space]:
    """The spaces whose architectures are cells."""
    for name in SPACES:
        try:
            space = load(name)
        except RequestError:  # a space from outside that cannot be made without options
            continue
        if type(space).cells is not Space.cells:
            yield space


def _described(name: str, text: str) -> Design | None:
    """The design of a text in the writing of some space; None where it is in none."""
    for space in _spaces():
        cells = space.read_cells(text)
        if cells is not None:
            known = {published.lower(): published for published in space.published}
            whole = all(graph.joined and graph.reached() for graph in cells.values())
            arch = None if whole else space.parse(text)
            own = name if any(graph.joined for graph in cells.values()) else space.name
            return Design.of(known.get(text.lower(), own), space, cells, arch)
    return None


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
        return _from_value(name, cells[name])
    return read_cells(value) if isinstance(value, str) else _from_value(path.stem, value)


def _from_value(name: str, value: Any) -> Design:
    found = _described(name, json.dumps(value)) if isinstance(value, dict | list) else None
    if found is None:
        raise RequestError(f"{name}: expected lists of [node, input, operation], got {str(value)[:80]!r}")
    return found


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
        raise RequestError(
            f"the search in {path} is not finished; resume with: nasight search --resume {quote(str(path))}"
        )
    name, text = str(found.get("space")), str(found.get("architecture"))
    space = load(name) if name in SPACES else None
    if space is None or type(space).cells is Space.cells:
        have = ", ".join(each.name for each in _spaces())
        raise RequestError(f"{path} is of space {name!r}, whose architectures are no cells; these have them: {have}")
    arch = space.parse(text)
    return Design.of(path.name, space, space.cells(arch), arch)
