"""Search: one shared-weights network, every method a row, GAEA a column."""

from nasight.search._loop import Interrupted, Progress, resume, search
from nasight.search._run import Run
from nasight.search.methods import METHODS, Method

__all__ = ["METHODS", "Interrupted", "Method", "Progress", "Run", "resume", "search"]
