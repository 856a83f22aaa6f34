"""Preconditioned conjugate gradients for all targets at once, stopped by a bound on the error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[Any]
SINGLE = float(np.finfo(np.float32).eps) / 2
DIVERGED = 1e12
"""How much a squared residual may grow before the iterations are given up: rounding has taken over."""


class Preconditioner(Protocol):
    """An approximation P of the system matrix A: `solve` applies its inverse, and `floor` is at most the smallest
    eigenvalue of P^-1 A."""

    floor: float

    def solve(self, r: Array) -> Array: ...


@dataclass
class State:
    """Where the iteration stands: the system is A w = b and `residual` is b - A w."""

    w: Array  # (size, k)
    residual: Array  # (size, k)
    iterations: int = 0
    bound: float = np.inf
    """At least the sum over targets of the squared error of w in the norm of A."""
    gained: float = 0.0
    """By how much the iterations have made that squared error smaller."""
    objective: float = np.inf


def conjugate_gradients(
    apply: Callable[[Array], Array],
    preconditioner: Preconditioner,
    state: State,
    enough: Callable[[State], bool],
    limit: int,
) -> bool:
    """Iterate from `state`, in place, until `enough`; false where it is not reached in `limit` iterations or rounding
    makes the residual grow.

    The error is bounded from above by Gauss-Radau quadrature (Meurant and Tichy, 2013), which needs the step
    lengths, the residuals and a lower bound on the spectrum, all of them at hand.
    """
    z = preconditioner.solve(state.residual)
    direction, square = z, _dots(state.residual, z)
    first = float(square.sum())
    radau = np.full(z.shape[1], 1 / preconditioner.floor)
    for _ in range(limit):
        state.bound = float((radau * square).sum())
        if enough(state):
            return True
        image = apply(direction)
        step = _ratio(square, _dots(direction, image))
        state.w += step * direction
        state.residual -= step * image
        state.gained += float(step @ square)
        z = preconditioner.solve(state.residual)
        before, square = square, np.maximum(_dots(state.residual, z), 0)
        decrease = _ratio(square, before)
        direction = z + decrease * direction
        left = np.maximum(radau - step, 0)
        radau = _ratio(left, preconditioner.floor * left + decrease)
        state.iterations += 1
        if not float(square.sum()) <= DIVERGED * first:
            break
    state.bound = float((radau * square).sum())
    return enough(state)


class Diagonal:
    """The system's diagonal, `diagonal + penalty` (Jacobi)."""

    def __init__(self, diagonal: Array, penalty: float) -> None:
        self.diagonal = (diagonal + penalty)[:, None]
        self.floor = penalty / float(self.diagonal.max())

    def solve(self, r: Array) -> Array:
        return np.asarray(r / self.diagonal)


class Nystrom:
    """A randomized Nystrom approximation of `X^T X` plus a multiple of the identity (Frangella, Tropp and Udell, 2023).

    With B B^T the approximation, which is below `X^T X`, and s its smallest eigenvalue, P = B B^T + (s + penalty) I.
    """

    def __init__(self, normal: Callable[[Array], Array], size: int, rank: int, penalty: float) -> None:
        test = np.random.default_rng(0).standard_normal((size, rank), dtype=np.float32)
        # All of numpy: the threads of scipy's own BLAS would wait for each other with those of numpy's.
        test, _ = np.linalg.qr(test)
        sketch = normal(test)
        # The sketch is known to float32; the shift keeps its core positive definite.
        nudge = 10 * SINGLE * float(np.linalg.norm(sketch))
        sketch += nudge * test
        core = test.T.astype(np.float64) @ sketch
        values, vectors = np.linalg.eigh((core + core.T) / 2)
        values = np.maximum(values, max(nudge, np.finfo(np.float64).tiny))
        self.factor = sketch @ (vectors / np.sqrt(values))
        squares, axes = np.linalg.eigh(self.factor.T @ self.factor)
        self.level = max(float(squares[0]), 0.0) + penalty
        self.floor = penalty / self.level * penalty / (penalty + nudge)
        # P^-1 r = (r - U U^T r) / level, where U scales the axes of B.
        self.factor = self.factor @ (axes / np.sqrt(np.maximum(squares, 0) + self.level))

    def solve(self, r: Array) -> Array:
        return np.asarray((r - self.factor @ (self.factor.T @ r)) / self.level)


class Cholesky:
    """The factor of a Gram matrix (its upper triangle, overwritten) plus penalty.

    Where rounding has made the matrix indefinite, its diagonal is raised by a multiple of its rounding error, so
    that it still preconditions.
    """

    def __init__(self, gram: Callable[[], Array], penalty: float) -> None:
        matrix = gram()
        self.diagonal = matrix.diagonal().astype(np.float64)
        unit = float(np.finfo(matrix.dtype).eps) / 2
        error = 4 * unit * float(self.diagonal.sum())
        raised = 0.0
        while True:
            stride = matrix.shape[0] + 1
            matrix.reshape(-1, order="F")[::stride] += matrix.dtype.type(penalty + raised)
            try:
                self.factor = linalg.cholesky(matrix, overwrite_a=True, check_finite=False)
                break
            except linalg.LinAlgError:
                raised = max(8 * raised, error)
                matrix = gram()
        self.floor = penalty / (penalty + raised + error)

    def solve(self, r: Array) -> Array:
        factor = self.factor
        return np.asarray(
            linalg.cho_solve((factor, False), r.astype(factor.dtype), check_finite=False), dtype=np.float64
        )


def _dots(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
