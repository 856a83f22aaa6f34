"""A cell as a graph: its width, its depth, and a form that equal cells share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any

from nasight.errors import RequestError

Edge = tuple[int, int, str]
"""(source, target, operation)"""


@dataclass(frozen=True, slots=True)
class CellGraph:
    """Inputs 0 to `inputs` - 1, then `nodes` intermediate nodes, then the output; edges carry operations.

    A node is the sum of the operations that lead into it. The output joins the channels of the nodes in `joined`;
    where nothing is joined (NAS-Bench-201) it is the sum of the operations that lead into it.

    >>> cell = CellGraph(2, 1, ((0, 2, "skip_connect"), (1, 2, "sep_conv_3x3")), (2,))
    >>> cell.width, cell.depth
    (1.0, 2)
    """

    inputs: int
    nodes: int
    edges: tuple[Edge, ...]
    joined: tuple[int, ...]

    def __post_init__(self) -> None:
        for source, target, operation in self.edges:
            if not 0 <= source < target or not self.inputs <= target <= self.output or source == self.output:
                raise RequestError(
                    f"there is no edge {source}->{target} in a cell of {self.inputs} + {self.nodes} nodes"
                )
            if not operation or operation == "none":
                raise RequestError(f"the edge {source}->{target} has the operation {operation!r}; leave it out instead")
        if not set(self.joined) <= set(self.intermediate) or len(set(self.joined)) < len(self.joined):
            raise RequestError(f"joined nodes must be some of {list(self.intermediate)}, once each, got {self.joined}")
        object.__setattr__(self, "edges", tuple(sorted(self.edges, key=lambda e: (e[1], e[0], e[2]))))
        object.__setattr__(self, "joined", tuple(sorted(self.joined)))
        if self.depth == 0:
            raise RequestError("no path of operations leads from the cell's inputs to its output")

    @property
    def output(self) -> int:
        return self.inputs + self.nodes

    @property
    def intermediate(self) -> range:
        return range(self.inputs, self.output)

    def into(self, node: int) -> list[Edge]:
        """The edges that lead into a node, by source."""
        return [edge for edge in self.edges if edge[1] == node]

    @property
    def width(self) -> float:
        """In units of c, the width of a node: the share of each node's edges that come from the cell's inputs, summed.

        Cells, Section 3.2. Two edges from one input count twice; a node that nothing enters counts nothing.
        """
        total = Fraction(0)
        for node in self.intermediate:
            sources = [source for source, _, _ in self.into(node)]
            if sources:
                total += Fraction(sum(source < self.inputs for source in sources), len(sources))
        return float(total)

    @property
    def depth(self) -> int:
        """Connections on the longest path from an input to the output, the joining counted as one; 0: there is none."""
        layers = self.layers()
        ends = [layers[node] + 1 for node in self.joined if node in layers]
        return max([*ends, layers.get(self.output, 0)])

    def layers(self) -> dict[int, int]:
        """For every node that an input reaches, the length of the longest path to it."""
        layers = dict.fromkeys(range(self.inputs), 0)
        for node in (*self.intermediate, self.output):
            before = [layers[source] + 1 for source, _, _ in self.into(node) if source in layers]
            if before:
                layers[node] = max(before)
        return layers

    def live(self) -> CellGraph:
        """The same cell without edges that are on no path from an input to the output: they compute nothing."""
        reached, used = self.layers(), {self.output, *self.joined}
        for source, target, _ in reversed(self.edges):
            if target in used:
                used.add(source)
        edges = tuple(edge for edge in self.edges if edge[0] in reached and edge[1] in used)
        return CellGraph(self.inputs, self.nodes, edges, tuple(node for node in self.joined if node in reached))

    def reached(self) -> bool:
        """Whether a path leads from an input to every intermediate node."""
        return set(self.intermediate) <= set(self.layers())

    def unused(self) -> tuple[int, ...]:
        """The intermediate nodes that no other node reads: those that NASNet's rule joins."""
        read = {source for source, _, _ in self.edges}
        return tuple(node for node in self.intermediate if node not in read)

    def repeats(self) -> bool:
        """Whether two operations of a node read the same input."""
        ends = [(source, target) for source, target, _ in self.edges]
        return len(set(ends)) < len(ends)

    def key(self) -> tuple[Any, ...]:
        """Equal for two cells exactly when they are one cell with its intermediate nodes in another order.

        Nodes that compute different expressions cannot be exchanged, so only those of one expression are permuted.
        """
        return min(self._renamed(names) for names in self._names())

    def _names(self) -> Iterator[dict[int, int]]:
        text = {node: str(node) for node in range(self.inputs)}
        for node in self.intermediate:
            terms = sorted(f"{operation}@{text[source]}" for source, _, operation in self.into(node))
            text[node] = f"({'+'.join(terms)}{'>' if node in self.joined else ''})"
        groups = dict[str, list[int]]()
        for node in sorted(self.intermediate, key=lambda n: text[n]):
            groups.setdefault(text[node], []).append(node)
        for orders in product(*(permutations(group) for group in groups.values())):
            order = [node for group in orders for node in group]
            yield {node: self.inputs + place for place, node in enumerate(order)}

    def _renamed(self, names: dict[int, int]) -> tuple[Any, ...]:
        edges = sorted((names.get(t, t), names.get(s, s), operation) for s, t, operation in self.edges)
        return tuple(edges), tuple(sorted(names[node] for node in self.joined))

    def to_dict(self) -> dict[str, Any]:
        """[node, input, operation] of every edge, and the joined nodes."""
        return {"edges": [[t, s, operation] for s, t, operation in self.edges], "joined": list(self.joined)}
