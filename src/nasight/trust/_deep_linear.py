"""Deep linear networks: the weights of all decisions are one point of a larger simplex (Simplex, Section 5).

In a graph whose edges are mixtures of linear maps, composition multiplies the weights of edges and addition leaves them
alone, since every row sums to one. So the network is exactly the mixture of all its architectures, each with the
product of its weights, and Theorem 7 speaks of whole architectures. The arg max of a product of rows is the arg max of
each, so discretizing edge by edge finds the largest joint weight. With nonlinear nodes the first statement is false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from nasight.errors import RequestError
from nasight.trust._check import Array, Check, check, read_weights

MOST = 100_000
"""Architectures; all of their outputs are in memory."""

Edge = tuple[int, int]
Operations = Mapping[Edge, Any]
"""Edge (source, target) -> (options, d_target, d_source), one matrix an option."""


def joint_weights(rows: Sequence[Any]) -> Array:
    """The outer product of the rows, (h_1, ..., h_E): the weight of every architecture.

    >>> joint_weights([[0.75, 0.25], [0.5, 0.5]]).tolist()
    [[0.375, 0.375], [0.125, 0.125]]
    """
    _check_count([len(row) for row in rows])
    return reduce(np.multiply.outer, [read_weights(row) for row in rows])


def mixture_output(operations: Operations, rows: Sequence[Any], x: Any) -> Array:
    """The last node, (n, d), when every edge is the mixture of its options with the weights of its row."""
    edges = _checked(operations)
    mixed = {edge: np.tensordot(read_weights(row), edges[edge], 1) for edge, row in zip(edges, rows, strict=True)}
    nodes = {0: np.asarray(x, dtype=np.float64)}
    for (source, target), matrix in mixed.items():
        nodes[target] = nodes.get(target, 0.0) + nodes[source] @ matrix.T
    return nodes[max(nodes)]


def linear_outputs(operations: Operations, x: Any) -> Array:
    """The last node of every architecture, (h_1, ..., h_E, n, d), the edges in the order of their targets."""
    edges = _checked(operations)
    _check_count([len(matrices) for matrices in edges.values()])
    start = np.asarray(x, dtype=np.float64)
    # Axis e of a node has one entry as long as edge e has no part in it: addition broadcasts.
    nodes: dict[int, Array] = {0: start.reshape((1,) * len(edges) + start.shape)}
    for axis, ((source, target), matrices) in enumerate(edges.items()):
        term = np.concatenate([nodes[source] @ matrix.T for matrix in matrices], axis=axis)
        nodes[target] = nodes[target] + term if target in nodes else term
    last = nodes[max(nodes)]
    return np.broadcast_to(last, (*(len(m) for m in edges.values()), *last.shape[-2:]))


def check_linear(operations: Operations, rows: Sequence[Any], x: Any, targets: Any, readout: Any) -> Check:
    """Theorem 7 for all architectures of a deep linear network, in the order of `joint_weights(rows).ravel()`."""
    outputs = linear_outputs(operations, x) @ np.asarray(readout, dtype=np.float64)
    return check(outputs.reshape(-1, outputs.shape[-1]), joint_weights(rows).ravel(), targets)


def _checked(operations: Operations) -> dict[Edge, Array]:
    """The edges by target, so that a node is complete before it is read."""
    reached = {0}
    found = dict[Edge, Array]()
    for edge in sorted(operations, key=lambda e: (e[1], e[0])):
        matrices = np.asarray(operations[edge], dtype=np.float64)
        if not 0 <= edge[0] < edge[1] or edge[0] not in reached:
            raise RequestError(f"edge {edge} must lead forwards from a node that node 0 leads to")
        if matrices.ndim != 3:
            raise RequestError(f"edge {edge} needs matrices of shape (options, d, d), got {matrices.shape}")
        reached.add(edge[1])
        found[edge] = matrices
    if not found:
        raise RequestError("there must be at least 1 edge, got none")
    return found


def _check_count(sizes: Sequence[int]) -> None:
    if prod(sizes) > MOST:
        raise RequestError(f"{prod(sizes):,} architectures are too many to write out; at most {MOST:,} are possible")
