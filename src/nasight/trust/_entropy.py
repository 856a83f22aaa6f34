"""How many functions training can return: version entropy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError


class VersionEntropy:
    """Log of how many functions at scale e stand for all that training can return (Definition A.2): a falling step.

    Built from the steps {scale: entropy}; between two steps the entropy of the smaller scale holds. Any subset of the
    true steps bounds the true entropy from above, so the bounds stay valid.

    >>> VersionEntropy.finite(8).at(0.0) == math.log(8)
    True
    """

    def __init__(self, steps: Mapping[float, float]) -> None:
        if not steps or min(steps) < 0 or min(steps.values()) < 0 or not all(map(math.isfinite, steps.values())):
            raise RequestError(f"entropies are finite and at least 0, at scales of at least 0, got {dict(steps)}")
        self.steps = dict(sorted(steps.items()))

    @classmethod
    def finite(cls, sizes: int | Sequence[int]) -> VersionEntropy:
        """Of finite version spaces: their sizes, or the number of configurations with one minimizer each.

        Regularized linear models have one minimizer, so the entropy is at most log |C| at every scale.
        """
        total = sizes if isinstance(sizes, int) else sum(_positive(size, "size of a version space") for size in sizes)
        return cls({0.0: math.log(_positive(total, "number of configurations"))})

    @classmethod
    def union(cls, configurations: int, largest_cover: float) -> VersionEntropy:
        """log |C| + the largest log covering number of one version space: the paper's bound for finite C."""
        return cls({0.0: math.log(_positive(configurations, "number of configurations")) + largest_cover})

    @classmethod
    def of_functions(cls, values: NDArray[Any]) -> VersionEntropy:
        """Of finitely many functions by their values on a finite domain, (functions, points).

        Farthest-first traversal: k centers chosen so leave every function within some r_k of one of them, so
        log N(r_k) <= log k. Where the points are a sample of the domain, so is the distance.
        """
        functions = np.asarray(values, dtype=np.float64)
        if functions.ndim < 2 or not functions.size or not np.isfinite(functions).all():
            raise RequestError(f"values are finite, one row a function, got shape {functions.shape}")
        functions = functions.reshape(len(functions), -1)
        steps: dict[float, float] = {}
        nearest = np.abs(functions - functions[0]).max(1)
        for centers in range(1, len(functions) + 1):
            radius = float(nearest.max())
            steps.setdefault(radius, math.log(centers))
            if radius == 0:
                break
            farthest = functions[int(nearest.argmax())]
            nearest = np.minimum(nearest, np.abs(functions - farthest).max(1))
        return cls(steps)

    def at(self, scale: float) -> float:
        """The entropy at a scale; infinite below the first step, where nothing is known."""
        known = [entropy for step, entropy in self.steps.items() if step <= scale]
        return min(known) if known else math.inf


def _positive(value: int, what: str) -> int:
    if value < 1:
        raise RequestError(f"the {what} is at least 1, got {value}")
    return value
