"""Where ranks must not differ: their weights, and a pick that clocks have a part in."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from nasight.architecture import Architecture
from nasight.compute import ALONE, double, everywhere, to_host
from nasight.errors import RunError
from nasight.searching._constraint import constrained

if TYPE_CHECKING:
    from nasight.searching._engine import Engine


def check_agreement(engine: Engine) -> None:
    """All ranks have the same weights, or an objective of somebody's own has moved them apart."""
    with torch.no_grad():
        moved = (*engine.params.values(), *engine.supernet.parameters())
        found = to_host([double(p).square().sum() for p in moved]) if engine.ranks.size > 1 else []
        sums = engine.ranks.all_values([float(each) for each in found])
    if any(not math.isclose(a, b, rel_tol=1e-6) for other in sums[1:] for a, b in zip(sums[0], other, strict=True)):
        raise everywhere(
            RunError(
                f"the ranks have different weights: objective {engine.objective.name!r} must take its gradients by "
                "step.gradients(loss, tensors), which adds them up"
            )
        )


def picked_by_first(engine: Engine, arch: Architecture) -> tuple[Architecture, dict[str, Any]]:
    """The best architecture within limits, as the first rank measures them."""
    ranks = engine.ranks

    def pick() -> tuple[Architecture, dict[str, Any]]:
        engine.ranks = ALONE
        try:
            return constrained(engine, arch)
        finally:
            engine.ranks = ranks

    return ranks.of_first(pick)
