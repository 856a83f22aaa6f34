"""How far a search can be trusted."""

from nasight.trust import bounds

__all__ = ["bounds"]
