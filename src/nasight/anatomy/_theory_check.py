"""What a theorem promises beside what was measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

AGREE = 1e-9
"""Relative size up to which two gradients count as equal."""


class TheoryAssumption(NamedTuple):
    """One assumption of a proof: in words, whether it holds here, and the number that says so."""

    text: str
    holds: bool
    size: float


@dataclass(frozen=True)
class TheoryCheck:
    """One theorem on one block: what was measured, what is promised, and under which assumptions."""

    name: str
    block: int | None
    value: float
    bound: float
    assumptions: tuple[TheoryAssumption, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether all assumptions hold: only then the bound promises anything."""
        return all(assumption.holds for assumption in self.assumptions)

    @property
    def violated(self) -> bool:
        """Whether the value exceeds the bound by more than rounding."""
        return self.value > self.bound * (1 + AGREE) + 1e-12

    def to_dict(self) -> dict[str, Any]:
        rows = [a._asdict() for a in self.assumptions]
        return {**asdict(self), "assumptions": rows, "holds": self.holds, "violated": self.violated}
