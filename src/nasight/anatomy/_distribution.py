"""How wide and how deep the cells of a whole space are, counted exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

from nasight.errors import RequestError
from nasight.spaces import CellGraph
from nasight.spaces.nasbench201 import EDGES, NODES
from nasight.spaces.nasbench201 import OPERATIONS as NASBENCH201_OPERATIONS

MOST_NODES = 10


@dataclass(frozen=True)
class Standing:
    """Where a cell stands among those of its space; shares are percent of the space's cells."""

    space: str
    cells: int
    width_percentile: float
    """Cells at most as wide."""
    depth_percentile: float
    """Cells at most as deep."""
    as_wide_and_shallow: float
    """Cells at least as wide and at most as deep."""
    largest_width: float
    smallest_depth: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class CellDistribution:
    """How many cells of a space have each (width, depth); operations on the edges are as likely one as another."""

    space: str
    counts: Mapping[tuple[float, int], int]

    @property
    def cells(self) -> int:
        return sum(self.counts.values())

    @property
    def largest_width(self) -> float:
        return max(width for width, _ in self.counts)

    @property
    def smallest_depth(self) -> int:
        return min(depth for _, depth in self.counts)

    def standing(self, graph: CellGraph) -> Standing:
        """Where this cell stands."""
        width, depth = graph.width, graph.depth

        def percent(counted: list[int]) -> float:
            return 100 * sum(counted) / self.cells

        return Standing(
            space=self.space,
            cells=self.cells,
            width_percentile=percent([n for (w, _), n in self.counts.items() if w <= width]),
            depth_percentile=percent([n for (_, d), n in self.counts.items() if d <= depth]),
            as_wide_and_shallow=percent([n for (w, d), n in self.counts.items() if w >= width and d <= depth]),
            largest_width=self.largest_width,
            smallest_depth=self.smallest_depth,
        )


@cache
def distribution(nodes: int = 4, *, repeats: bool = False) -> CellDistribution:
    """Over all connections of a cell with two inputs and two operations a node.

    DARTS's cells: four nodes, each reads two different ones of those before it (180 connections). NASNet's: five
    nodes, and both operations choose freely (`repeats`; 518,400 = ((N-2)!/(M-1)!)^M connections of N = 8, M = 2). Every
    connection has as many assignments of operations as any other. Which nodes are joined does not matter: the
    deepest node is read by none, and is joined by the rule of DARTS (all) and by that of NASNet (the unused).

    >>> distribution().cells, distribution(5, repeats=True).cells
    (180, 518400)
    """
    if not 1 <= nodes <= MOST_NODES:
        raise RequestError(f"a space of cells has 1 to {MOST_NODES} intermediate nodes, got {nodes}")
    # Node by node; of the nodes before, only their depths matter, in any order. Widths are counted in halves.
    states = Counter[tuple[tuple[int, ...], int]]({((0, 0), 0): 1})
    for _ in range(nodes):
        after = Counter[tuple[tuple[int, ...], int]]()
        for (depths, halves), count in states.items():
            choices = product(depths, repeat=2) if repeats else combinations(depths, 2)
            for (a, b), ways in Counter(choices).items():
                deeper = tuple(sorted((*depths, 1 + max(a, b))))
                after[deeper, halves + (a == 0) + (b == 0)] += count * ways
        states = after
    counts = Counter[tuple[float, int]]()
    for (depths, halves), count in states.items():
        counts[halves / 2, 1 + depths[-1]] += count
    inputs = "any two inputs" if repeats else "two different inputs"
    return CellDistribution(f"all connections of {nodes} nodes with {inputs} each", dict(sorted(counts.items())))


@cache
def nasbench201_distribution() -> CellDistribution:
    """Over the 15,625 cells, `none` taken away with all that leads nowhere; cells without a path are not counted.

    The two nodes between input and output have a width; the output is the sum of the operations into it, so that the
    depth is the number of operations on the longest path.
    """
    counts, ways = Counter[tuple[float, int]](), len(NASBENCH201_OPERATIONS) - 1
    for present in product((False, True), repeat=len(EDGES)):
        edges = tuple((s, t, "any") for (s, t), here in zip(EDGES, present, strict=True) if here)
        try:
            graph = CellGraph(1, NODES - 2, edges, ()).live()
        except RequestError:
            continue
        counts[graph.width, graph.depth] += ways ** len(edges)
    return CellDistribution("the cells of NAS-Bench-201 that are networks", dict(sorted(counts.items())))


def space_of(graph: CellGraph) -> CellDistribution | None:
    """The space that a cell is compared with, or None where it is of no space that is counted.

    Different inputs at every node and all nodes joined: DARTS's form. Otherwise, with two operations a node: NASNet's.
    """
    if graph.inputs == 1:
        return nasbench201_distribution() if graph.nodes == NODES - 2 and not graph.joined else None
    pairs = all(len(graph.into(node)) == 2 for node in graph.intermediate)
    if graph.inputs != 2 or not pairs or not graph.joined or graph.nodes > MOST_NODES:
        return None
    return distribution(graph.nodes, repeats=graph.repeats() or graph.joined != tuple(graph.intermediate))
