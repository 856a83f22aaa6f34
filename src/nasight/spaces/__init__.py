"""Search spaces: decisions, options, and the networks built from them."""

from nasight.spaces._base import Decision, Group, Space, Weights
from nasight.spaces._registry import load, names

__all__ = ["Decision", "Group", "Space", "Weights", "load", "names"]
