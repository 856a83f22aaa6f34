"""Networks that nobody searched for: what a person writes first, and a model of the user's own."""

from nasight.spaces.plain._space import FixedSpace, PlainSpace

__all__ = ["FixedSpace", "PlainSpace"]
