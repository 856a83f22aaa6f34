"""Cells of pools with one other operation: the size of every DARTS network is a sum over such."""

from __future__ import annotations

from functools import cache
from itertools import product

from nasight.architecture import Architecture
from nasight.spaces.darts._text import EDGES, INPUTS, KINDS, NODES, edge_name

NAME = "darts"


@cache
def pools() -> Architecture:
    """Every node the sum of two pools of the cell's inputs."""
    return _pools({})


@cache
def pools_but(edge: str, option: str) -> Architecture:
    """The same with one other operation, where it costs as much as on this edge.

    A skip of stride 2 is a convolution, so whether an edge starts at an input matters.
    """
    kind, _, ends = edge.partition(" ")
    if ends[0] in "01":
        return _pools({f"{kind} 0->2": option})
    return _pools({f"{kind} 0->3": "none", f"{kind} 2->3": option})


def _pools(changes: dict[str, str]) -> Architecture:
    choices = {edge_name(kind, *edge): "none" for kind, edge in product(KINDS, EDGES)}
    for kind, target, source in product(KINDS, range(INPUTS, NODES), range(INPUTS)):
        choices[edge_name(kind, source, target)] = "max_pool_3x3"
    return Architecture(NAME, tuple({**choices, **changes}.items()))
