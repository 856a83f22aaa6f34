"""What else a decision of an architecture could have been."""

from __future__ import annotations

from dataclasses import dataclass

from nasight.architecture import Architecture


@dataclass(frozen=True)
class Alternatives:
    """A decision: the architectures that differ in it alone, one per option, and the rows of weights that it sets."""

    name: str
    choice: str
    options: tuple[str, ...]
    architectures: tuple[Architecture, ...]
    rows: tuple[tuple[str, str], ...]
    """(group, row) of each row of architecture weights that the decision is about."""
