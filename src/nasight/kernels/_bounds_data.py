"""What the theorems of EigenNAS assume of the data, measured on the data given."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nasight.errors import RequestError
from nasight.kernels._activations import Array
from nasight.kernels._infinite import gram

UNIT = 1e-6  # how far from 1 a norm may be
SLACK = 1.25  # of the deviation that as many samples of an isotropic law show
DEEPEST = 10  # the paper's "not very large" depth


class BoundAssumption(NamedTuple):
    """One assumption: in words, whether it holds here, and the number that says so."""

    text: str
    holds: bool
    measured: float


@dataclass(frozen=True)
class KernelBound:
    """What a theorem says of a kernel, with the theorem's assumptions as they are met by the data.

    `lower` and `upper` are the ends, None where there is none; `values` are the numbers they are made of. `holds` is
    false where an assumption fails: then the numbers promise nothing. A bound that is `proved` for all data
    holds whatever the assumptions, which then say how much it can be worth.
    """

    name: str
    lower: float | None
    upper: float | None
    values: dict[str, float] = field(default_factory=dict)
    assumptions: list[BoundAssumption] = field(default_factory=list)
    proved: bool = False

    @property
    def holds(self) -> bool:
        """Whether the bound is a promise here."""
        return self.proved or all(assumption.holds for assumption in self.assumptions)

    def to_dict(self) -> dict[str, Any]:
        """The bound as plain values: what `nasight kernel --json` prints."""
        rows = [a._asdict() for a in self.assumptions]
        return {**asdict(self), "assumptions": rows, "holds": self.holds}


class Sample:
    """The rows X (N, d), and what the assumptions ask of them; each measured once, when asked."""

    def __init__(self, X: Any) -> None:
        self.covariance = gram(X)
        self.rows = np.asarray(X, dtype=np.float64)
        self.count, self.dimensions = self.rows.shape
        self.norms: Array = np.sqrt(np.diagonal(self.covariance))
        if not self.norms.any():
            raise RequestError("every row of the data is zero, which has no kernel")

    @cached_property
    def smallest(self) -> float:
        """lambda_min(X X^T), zero to rounding where N > d."""
        if self.count > self.dimensions:
            return 0.0
        values = np.linalg.eigvalsh(self.covariance)
        return float(values[0]) if values[0] > 1e-13 * values[-1] else 0.0

    @cached_property
    def closest(self) -> float:
        """The smallest distance of two rows, 0 for duplicates; infinite for a single row."""
        if self.count == 1:
            return np.inf
        squares = np.diagonal(self.covariance)
        distances = squares[:, None] + squares - 2 * self.covariance
        i, j = np.triu_indices(self.count, 1)
        # The product loses half the digits; the closest few pairs are measured again.
        few = np.argsort(distances[i, j])[:64]
        return float(np.linalg.norm(self.rows[i[few]] - self.rows[j[few]], axis=1).min())

    def unit(self) -> BoundAssumption:
        off = float(np.abs(self.norms - 1).max())
        return BoundAssumption("every example has norm 1 (largest deviation)", off <= UNIT, off)

    def isotropic(self) -> BoundAssumption:
        """E[x x^T] = I/d, as far as N rows can say."""
        n, d = self.count, self.dimensions
        # The largest eigenvalue of d/N X^T X is that of d/N X X^T; the smallest is zero for N < d.
        small = self.rows.T @ self.rows if d <= n else self.covariance
        values = np.linalg.eigvalsh(small) * (d / n)
        off = float(max(values[-1] - 1, 1 - values[0] if d <= n else 1.0))
        # The edge of the spectrum of N samples in d dimensions (Marchenko and Pastur).
        allowed = SLACK * (2 * np.sqrt(d / n) + d / n)
        text = f"isotropic: ||(d/N) X^T X - I|| is at most {allowed:.3g}, as {n} isotropic samples show"
        return BoundAssumption(text, bool(off <= allowed), off)

    def many(self) -> BoundAssumption:
        power = float(self.dimensions) ** 4
        return BoundAssumption(f"N is at least d^4 = {power:.3g}", self.count >= power, float(self.count))

    def independent(self) -> BoundAssumption:
        return BoundAssumption(
            "lambda_min(X X^T) > 0, which takes N <= d; else the lower bound is 0", self.smallest > 0, self.smallest
        )

    def distinct(self) -> BoundAssumption:
        return BoundAssumption("no two examples are equal (smallest distance)", self.closest > 0, self.closest)


def shallow(layers: int) -> BoundAssumption:
    return BoundAssumption(
        f"L is not very large (the paper's remark: at most {DEEPEST})", layers <= DEEPEST, float(layers)
    )
