"""NAS-Bench-1Shot1: three spaces inside NAS-Bench-101."""

from nasight.spaces.nasbench1shot1._network import OPERATIONS
from nasight.spaces.nasbench1shot1._space import NasBench1Shot1

__all__ = ["OPERATIONS", "NasBench1Shot1"]
