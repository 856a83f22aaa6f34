"""NAS-Bench-201: the space of a tabular benchmark."""

from nasight.spaces.nasbench201._cell import EDGES, NODES, OPERATIONS, edge_name
from nasight.spaces.nasbench201._space import NasBench201

__all__ = ["EDGES", "NODES", "OPERATIONS", "NasBench201", "edge_name"]
