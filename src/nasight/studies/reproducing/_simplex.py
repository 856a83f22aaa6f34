"""Measurement of Simplex's claim: random two-layer networks whose activation is chosen by its weight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nasight.data import Dataset
from nasight.trust import Check, check

PROBLEMS = 1_000
"""Per seed."""
INPUTS, WIDTH, EXAMPLES = 8, 16, 64
Array = NDArray[np.float64]
ACTIVATIONS: tuple[Callable[[Array], Array], ...] = (
    lambda z: np.maximum(z, 0.0),
    lambda z: np.maximum(z, 0.1 * z),
    np.tanh,
    lambda z: 1 / (1 + np.exp(-z)),
    lambda z: z / (1 + np.exp(-z)),
)


def conditions(data: Dataset, seed: int) -> dict[str, float]:
    """Problems where the condition holds, those among them whose arg max is not the best, and both in all problems."""
    rng = np.random.default_rng([seed, 2])
    found = [_problem(rng) for _ in range(PROBLEMS)]
    held = np.array([_proved(each) for each in found])
    right = np.array([each.chosen == each.best for each in found])
    return {
        "violations": int((held & ~right).sum()),
        "cases": int(held.sum()),
        "condition holds, % of problems": 100 * float(held.mean()),
        "arg max is best, % of problems": 100 * float(right.mean()),
    }


def _problem(rng: np.random.Generator) -> Check:
    """v^T sigma_i(W^T x) for two to five activations with the same W and v, and labels that the mixture realizes."""
    chosen = rng.permutation(len(ACTIVATIONS))[: int(rng.integers(2, len(ACTIVATIONS) + 1))]
    z = rng.normal(size=(EXAMPLES, INPUTS)) @ rng.normal(size=(INPUTS, WIDTH))
    v = rng.normal(size=WIDTH)
    outputs = np.stack([ACTIVATIONS[i](z) @ v for i in chosen])  # (options, examples)
    alpha = rng.dirichlet(np.ones(len(chosen)))
    return check(outputs, alpha, alpha @ outputs)


def _proved(found: Check) -> bool:
    """Whether the theorem says of the best option that its weight is larger than that of every other."""
    return bool(np.delete(found.concludes[found.best], found.best).all())
