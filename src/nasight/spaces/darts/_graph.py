"""DARTS cells as graphs, and back; also from descriptions of one cell alone."""

from __future__ import annotations

import json
from typing import Any

from nasight.errors import RequestError
from nasight.spaces._graph import CellGraph
from nasight.spaces.darts._popular import POPULAR
from nasight.spaces.darts._text import INPUTS, Cell, checked, read


def to_graph(cell: Cell) -> CellGraph:
    """A cell as a graph."""
    edges = tuple((source, node, operation) for node, source, operation in cell.entries if operation != "none")
    return CellGraph(INPUTS, len(cell.nodes), edges, cell.concat)


def from_graph(kind: str, graph: CellGraph) -> Cell:
    """A graph as a cell; a node with one input gets `none` as its other."""
    entries = list[tuple[int, int, str]]()
    for node in graph.intermediate:
        here = [(node, source, operation) for source, _, operation in graph.into(node)]
        taken = [source for _, source, _ in here]
        free = [(node, source, "none") for source in range(node) if source not in taken]
        entries += [*here, *free[: max(2 - len(here), 0)]]
    return checked(kind, entries, graph.joined)


def read_graphs(text: str) -> dict[str, CellGraph] | None:
    """The cells of a published name, a `Genotype(...)` or a JSON text; None for a text of another form.

    JSON is {"normal": [[node, input, operation], ...], "normal_concat": [...], "reduce": ...}, or the list of one
    normal cell.
    """
    if text[:1] in ("{", "["):
        try:
            return described(json.loads(text))
        except json.JSONDecodeError as error:
            raise RequestError(f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from error
        except (RecursionError, ValueError) as error:
            if isinstance(error, RequestError):
                raise
            raise RequestError(f"not a description of cells: {error}") from error
    known = {name.lower(): name for name in POPULAR}
    if "(" in text or text.lower() in known:
        return {kind: to_graph(cell) for kind, cell in read(known.get(text.lower(), text)).items()}
    return None


def described(value: Any) -> dict[str, CellGraph]:
    """The cells of what JSON holds."""
    if isinstance(value, list):
        value = {"normal": value}
    if not isinstance(value, dict):
        raise RequestError(f"expected lists of [node, input, operation], got {str(value)[:80]!r}")
    if "reduce" in value or "normal" not in value:
        return {kind: to_graph(cell) for kind, cell in read(json.dumps(value)).items()}
    unknown = sorted(set(value) - {"normal", "normal_concat"})
    if unknown:
        raise RequestError(f"unknown field {unknown[0]!r}; a normal cell alone has normal and normal_concat")
    entries, joined = value["normal"], value.get("normal_concat")
    for place, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
        if not (isinstance(entry, list) and len(entry) == 3):
            raise RequestError(f"normal cell, entry {place}: expected [node, input, operation], got {entry!r}")
    if joined is not None and not isinstance(joined, list):
        raise RequestError(f"normal_concat must be a list, got {joined!r}")
    return {"normal": to_graph(checked("normal", entries, joined))}
