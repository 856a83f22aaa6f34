"""A method from outside: a relaxation that sharpens as the search goes on, and an objective with two weight steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nasight.geometry import Simplex
from nasight.searching import Method, Objective, Relaxation, Schedule, SearchState, Selection, Step, StepContext


@dataclass(frozen=True)
class Sharpened(Relaxation):
    """Weights to a power that grows from 1 to 2, brought back to the simplex."""

    def weights(self, theta: Any, log_theta: Any, context: StepContext) -> dict[str, Any]:
        found = {}
        for group in context.groups:
            rows = [row ** (1 + context.progress) for row in group.split(theta[group.name])]
            found[group.name] = group.join([row / row.sum() for row in rows])
        return found


@dataclass(frozen=True)
class TwoToOne(Objective):
    """Two steps of the shared weights for one of the architecture, all on one batch."""

    name: str = "two-to-one"

    def step(self, step: Step) -> None:
        for _ in range(2):
            step.descend(step.loss("weights", learn=False), weights=True)
        if step.learns:
            step.descend(step.loss("architecture", learn=True), architecture=True)


@dataclass(frozen=True)
class Second(Selection):
    """The arg max, as the space derives it."""

    def propose(self, state: SearchState, number: int, generator: Any) -> Any:
        yield state.space.derive(state.weights())


METHOD = Method("sharpened", Sharpened(), Simplex(), (TwoToOne(),), Schedule(), "this file", selection=Second())
