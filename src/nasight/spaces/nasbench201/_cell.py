"""The cell of NAS-Bench-201: four nodes, six edges, one of five operations on each."""

from __future__ import annotations

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
NODES = 4
EDGES = tuple((source, target) for target in range(1, NODES) for source in range(target))
"""(source, target) in the order in which the benchmark's strings list them."""


def edge_name(source: int, target: int) -> str:
    """The name of the decision on an edge."""
    return f"{source}->{target}"


ENTERING = tuple(tuple((source, edge_name(source, target)) for source in range(target)) for target in range(1, NODES))
"""For each node after the first: (source, name) of the edges that enter it."""
