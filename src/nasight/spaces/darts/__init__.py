"""DARTS: the space of a normal and a reduction cell."""

from nasight.spaces.darts._popular import POPULAR
from nasight.spaces.darts._space import Darts
from nasight.spaces.darts._text import OPERATIONS

__all__ = ["OPERATIONS", "POPULAR", "Darts"]
