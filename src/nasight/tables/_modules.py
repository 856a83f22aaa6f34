"""Cells of NAS-Bench-101: up to five nodes with an operation each, what they read, and the benchmark's hash of them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from nasight.errors import RequestError
from nasight.spaces.nasbench1shot1 import OPERATIONS

HASH_ORDER = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")
"""The operations in the order in which the benchmark's hash numbers them."""
MOST_NODES, MOST_EDGES = 5, 9


@dataclass(frozen=True, slots=True)
class Module:
    """Node 0 is the input, nodes 1 to n have an operation each, and the output reads nodes.

    Written as NAS-Bench-1Shot1's cells are, with any number of inputs at any place.

    >>> Module.parse("conv3x3-bn-relu(0)|maxpool3x3(0)|out(1)").pruned().text
    'conv3x3-bn-relu(0)|out(1)'
    """

    operations: tuple[str, ...]
    inputs: tuple[tuple[int, ...], ...]
    """Of node 1, 2, ... and, last, of the output."""

    @classmethod
    def parse(cls, text: str) -> Module:
        """From 'operation(inputs)' for each node and 'out(inputs)', joined by '|', or JSON with "matrix" and "ops"."""
        if text.strip().startswith("{"):
            return cls._from_json(text)
        entries = [entry.strip() for entry in text.strip().split("|")]
        operations, inputs = [], []
        for place, entry in enumerate(entries, 1):
            match = re.fullmatch(r"([\w-]+)\(((?:\d+(?:\+\d+)*)?)\)", entry)
            last = place == len(entries)
            if match is None or last != (match[1] == "out") or not (last or match[1] in OPERATIONS):
                word = "out(1+2)" if last else f"OPERATION(0+1) with one of {', '.join(OPERATIONS)}"
                raise RequestError(f"part {place} of a cell of NAS-Bench-101 must be like {word}, got {entry[:80]!r}")
            read = sorted({int(n) for n in match[2].split("+") if n})
            if read and read[-1] >= place:
                raise RequestError(f"part {place} reads nodes before it, 0 to {place - 1}, got {match[2]!r}")
            operations += [] if last else [match[1]]
            inputs.append(tuple(read))
        return cls(tuple(operations), tuple(inputs))

    @classmethod
    def _from_json(cls, text: str) -> Module:
        try:
            value = json.loads(text)
            return cls.of_matrix(value["matrix"], value["ops"])
        except (ValueError, KeyError, TypeError) as error:
            raise RequestError(f'a cell as JSON is {{"matrix": [[0, 1], [0, 0]], "ops": [...]}}: {error}') from error

    @classmethod
    def of_matrix(cls, matrix: Any, operations: Any) -> Module:
        """From the benchmark's adjacency matrix (rows are sources) and operations, 'input' and 'output' at the ends."""
        size = len(operations)
        if size < 2 or len(matrix) != size or any(len(row) != size for row in matrix):
            raise ValueError(f"{size} operations need a matrix of {size} x {size}")
        if any(matrix[a][b] not in (0, 1) or (a >= b and matrix[a][b]) for a in range(size) for b in range(size)):
            raise ValueError("the matrix must hold 1 above its diagonal where a node is read, and 0 elsewhere")
        if any(name not in OPERATIONS for name in operations[1:-1]):
            raise ValueError(f"operations are {', '.join(OPERATIONS)}, got {', '.join(map(str, operations[1:-1]))}")
        columns = (tuple(a for a in range(b) if matrix[a][b]) for b in range(1, size))
        return cls(tuple(map(str, operations[1:-1])), tuple(columns))

    @property
    def text(self) -> str:
        heads = (*self.operations, "out")
        return "|".join(f"{h}({'+'.join(map(str, i))})" for h, i in zip(heads, self.inputs, strict=True))

    @property
    def edges(self) -> int:
        return sum(map(len, self.inputs))

    def pruned(self) -> Module | None:
        """Without nodes that are on no path from the input to the output; None where there is no path."""
        out = len(self.inputs)
        reached = {0}
        for node, sources in enumerate(self.inputs, 1):
            if reached & set(sources):
                reached.add(node)
        used = {out}
        for node in range(out, 0, -1):
            if node in used:
                used.update(self.inputs[node - 1])
        alive = sorted(reached & used)
        if alive[:1] != [0] or alive[-1] != out:
            return None
        names = {node: number for number, node in enumerate(alive)}
        read = tuple(tuple(names[n] for n in self.inputs[node - 1] if n in names) for node in alive[1:])
        return Module(tuple(self.operations[node - 1] for node in alive[1:-1]), read)

    def hash(self) -> str:
        """The benchmark's key: MD5 over what each node is and, round by round, what its neighbors are.

        Cells that differ in the order of their nodes only have the same key. Prune before.
        """
        count = len(self.inputs) + 1
        into: list[tuple[int, ...]] = [(), *self.inputs]
        outof = [[b for b in range(count) if a in into[b]] for a in range(count)]
        labels = [-1, *(HASH_ORDER.index(name) for name in self.operations), -2]
        keys = [_md5(str((len(outof[n]), len(into[n]), labels[n]))) for n in range(count)]
        for _ in range(count):
            sides = [["".join(sorted(keys[m] for m in side)) for side in (into[n], outof[n])] for n in range(count)]
            keys = [_md5(f"{before}|{after}|{key}") for (before, after), key in zip(sides, keys, strict=True)]
        return _md5(str(sorted(keys)))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
