"""A NAS-Bench-201 cell as a graph, and back."""

from __future__ import annotations

from nasight.architecture import Architecture
from nasight.spaces._graph import CellGraph
from nasight.spaces.nasbench201._cell import EDGES, NODES, edge_name

KIND = "cell"


def to_graph(arch: Architecture) -> CellGraph:
    """The cell with all its operations but `none`; those that lead nowhere too."""
    chosen = [(s, t, arch[edge_name(s, t)]) for s, t in EDGES]
    return CellGraph(1, NODES - 2, tuple(edge for edge in chosen if edge[2] != "none"), ())


def choices_of(graph: CellGraph) -> dict[str, str]:
    """The option of every edge."""
    operations = {edge_name(s, t): operation for s, t, operation in graph.edges}
    return {edge_name(*edge): operations.get(edge_name(*edge), "none") for edge in EDGES}
