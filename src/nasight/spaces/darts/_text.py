"""How the field writes cells of two inputs a node: `Genotype(...)`, JSON, and the names of published cells."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces.darts._popular import POPULAR

OPERATIONS = (
    "none",
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
WRITTEN = (*OPERATIONS[1:], "sep_conv_7x7", "conv_7x1_1x7", "none")
"""What a text may name: DARTS's operations, the two that NASNet's and AmoebaNet's cells need besides, and `none`.

Published cells of random search have `none` where a node takes one input less.
"""

KINDS = ("normal", "reduce")
INPUTS = 2
NODES = 6
"""Two inputs, then the intermediate nodes."""
EDGES = tuple((source, target) for target in range(INPUTS, NODES) for source in range(target))
FIELDS = tuple(f"{kind}{suffix}" for kind in KINDS for suffix in ("", "_concat"))


def edge_name(kind: str, source: int, target: int) -> str:
    """The name of the decision on an edge."""
    return f"{kind} {source}->{target}"


@dataclass(frozen=True, slots=True)
class Cell:
    """(node, input, operation), two per node, by input and then in `WRITTEN`'s order; and the nodes that are joined."""

    entries: tuple[tuple[int, int, str], ...]
    concat: tuple[int, ...]

    @property
    def nodes(self) -> range:
        """The intermediate nodes."""
        return range(INPUTS, INPUTS + len(self.entries) // 2)

    def choices(self, kind: str) -> dict[str, str]:
        """One option for every edge, and the joined nodes where these are not all."""
        named = dict[str, str]()
        for target in self.nodes:
            for source in range(target):
                options = [o for n, i, o in self.entries if (n, i) == (target, source) and o != "none"]
                named[edge_name(kind, source, target)] = "+".join(options) or "none"
        if self.concat != tuple(self.nodes):
            named[f"{kind} concat"] = ",".join(map(str, self.concat))
        return named


def cell(arch: Architecture, kind: str) -> Cell:
    """The normal or the reduction cell of an architecture, of the space proper or not.

    A node with fewer than two inputs, as published cells with `none` have, gets `none` on its first free ones.
    """
    entries, joined, targets = list[tuple[int, int, str]](), None, set[int]()
    for name, option in arch.choices:
        of, _, edge = name.partition(" ")
        if of != kind:
            continue
        if edge == "concat":
            joined = _numbers(option, kind)
            continue
        source, _, target = edge.partition("->")
        if not (source.isdecimal() and target.isdecimal()):
            raise RequestError(f"decision {name!r} is no edge such as {edge_name(kind, 0, 2)!r}")
        targets.add(int(target))
        if option != "none":
            entries.extend((int(target), int(source), operation) for operation in option.split("+"))
    for node in targets:
        taken = [read for at, read, _ in entries if at == node]
        free = [read for read in range(node) if read not in taken]
        entries += [(node, read, "none") for read in free[: max(2 - len(taken), 0)]]
    return checked(kind, sorted(entries, key=lambda e: e[0]), joined)


def _numbers(text: str, kind: str) -> list[int]:
    parts = text.split(",")
    if not all(p.isdecimal() for p in parts):
        raise RequestError(f"{kind} concat must be nodes such as '2,3,4,5', got {text!r}")
    return [int(p) for p in parts]


def checked(kind: str, entries: Sequence[Any], concat: Sequence[Any] | None) -> Cell:
    """The cell that these entries describe, in canonical order; a `RequestError` names the entry that is wrong."""
    if not entries or len(entries) % 2:
        raise RequestError(f"{kind} cell: it needs two entries for each node, it has {len(entries)}")
    found = list[tuple[int, int, str]]()
    for index, (node, source, operation) in enumerate(entries):
        where, expected = f"{kind} cell, entry {index + 1}", INPUTS + index // 2
        if type(node) is not int or node != expected:
            raise RequestError(f"{where}: two entries a node put it into node {expected}, got node {node!r}")
        if type(source) is not int or not 0 <= source < node:
            raise RequestError(f"{where}: the input of node {node} must be 0 to {node - 1}, got {source!r}")
        if operation not in WRITTEN:
            near = get_close_matches(str(operation), WRITTEN, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(WRITTEN)}"
            raise RequestError(f"{where}: unknown operation {operation!r}; {hint}")
        found.append((node, source, operation))
    nodes = range(INPUTS, INPUTS + len(entries) // 2)
    joined = list(nodes) if concat is None else list(concat)
    for index, node in enumerate(joined):
        if type(node) is not int or node not in nodes or node in joined[:index]:
            where = f"{kind}_concat, entry {index + 1}"
            raise RequestError(f"{where}: expected nodes from {nodes[0]} to {nodes[-1]}, once each, got {node!r}")
    if not joined:
        raise RequestError(f"{kind}_concat is empty: at least one node must be joined into the output")
    found.sort(key=lambda e: (e[0], e[1], WRITTEN.index(e[2])))
    return Cell(tuple(found), tuple(sorted(joined)))


def read(text: str) -> dict[str, Cell]:
    """Both cells of a text in any of the three forms."""
    text = text.strip()
    if text.startswith("{"):
        return _from_json(text)
    if "(" in text:
        return _from_genotype(text)
    names = {name.lower(): name for name in POPULAR}
    if text.lower() not in names:
        near = get_close_matches(text.lower(), names, 1)
        hint = f"did you mean {names[near[0]]!r}?" if near else f"the named cells are {', '.join(POPULAR)}"
        raise RequestError(f"{text[:120]!r} is no Genotype(...), no JSON and no published cell; {hint}")
    return {kind: _from_words(kind, words) for kind, words in zip(KINDS, POPULAR[names[text.lower()]], strict=True)}


def _from_words(kind: str, words: str) -> Cell:
    body, _, joined = words.partition(" > ")
    pairs = [word.split("~") for word in body.split()]
    entries = [(INPUTS + i // 2, int(source), operation) for i, (operation, source) in enumerate(pairs)]
    return checked(kind, entries, _numbers(joined, kind) if joined else None)


def _from_json(text: str) -> dict[str, Cell]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise RequestError(f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise RequestError(f"not a description of cells: {error}") from error
    return _cells(value, lambda _, entry: tuple(entry) if isinstance(entry, list) and len(entry) == 3 else None)


def _from_genotype(text: str) -> dict[str, Cell]:
    """Read as a Python expression, never run."""
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RequestError(f"not a Genotype(...) that Python can read: {error}") from error
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Genotype"):
        raise RequestError(f"expected Genotype(normal=..., reduce=...), got {text[:120]!r}")
    given = dict(zip(FIELDS, call.args, strict=False))
    given.update({k.arg: k.value for k in call.keywords if k.arg})
    value = {name: _literal(name, node) for name, node in given.items()}

    def entry(index: int, pair: Any) -> tuple[Any, ...] | None:
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            return None
        return (INPUTS + index // 2, pair[1], pair[0])

    return _cells(value, entry)


def _literal(name: str, node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("range", "list"):
        arguments = [_literal(name, a) for a in node.args]
        if node.func.id == "list" and len(arguments) == 1 and isinstance(arguments[0], list):
            return arguments[0]
        if node.func.id == "range" and len(arguments) in (1, 2) and all(type(a) is int for a in arguments):
            span = range(*arguments)
            if len(span) > 1000:
                raise RequestError(f"{name}: {ast.unparse(node)} has {len(span)} nodes")
            return list(span)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise RequestError(f"{name}: expected a list or a range, got {ast.unparse(node)[:120]!r}") from error


def _cells(value: Mapping[str, Any], entry: Any) -> dict[str, Cell]:
    unknown = sorted(set(value) - set(FIELDS))
    if unknown:
        raise RequestError(f"unknown field {unknown[0]!r}; a cell description has {', '.join(FIELDS)}")
    cells = dict[str, Cell]()
    for kind in KINDS:
        if kind not in value:
            raise RequestError(f"the {kind} cell is missing; a cell description has {', '.join(FIELDS)}")
        for name in (kind, f"{kind}_concat"):
            if not isinstance(value.get(name, []), list | tuple):
                raise RequestError(f"{name} must be a list, got {value[name]!r}")
        entries = [entry(i, given) for i, given in enumerate(value[kind])]
        if None in entries:
            wrong = entries.index(None)
            raise RequestError(
                f"{kind} cell, entry {wrong + 1}: expected an operation and its input, got {value[kind][wrong]!r}"
            )
        cells[kind] = checked(kind, entries, value.get(f"{kind}_concat"))
    return cells


def genotype_text(cells: Mapping[str, Cell]) -> str:
    parts = [
        f"{kind}={[(o, i) for _, i, o in cells[kind].entries]}, {kind}_concat={list(cells[kind].concat)}"
        for kind in KINDS
    ]
    return f"Genotype({', '.join(parts)})"


def json_text(cells: Mapping[str, Cell]) -> str:
    value = dict[str, Any]()
    for kind in KINDS:
        value[kind] = [list(entry) for entry in cells[kind].entries]
        value[f"{kind}_concat"] = list(cells[kind].concat)
    return json.dumps(value)
