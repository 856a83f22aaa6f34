"""The three forms of ridge regression, and how it is decided that a solution is accurate enough.

With A = X^T X + penalty I, centered rows X, r = X^T (y - X w) - penalty w and f the objective, f(w) exceeds its minimum
by exactly r^T A^-1 r. In the dual, with w = X^T a and s = y - X X^T a - penalty a, that is at most s^T s.

Rounding to unit u (2^-24) in products disturbs a residual like independent errors in each entry. The excess this
leaves unseen is about

- u^2 |X|_F^2 (f + |y|^2) / penalty for residuals that come from the rows (`cg`),
- u^2 |X|_F^2 sum_j G_jj w_j^2 / penalty more for those that come from a Gram matrix G (`primal`),
- u^2 |X|_F^2 sum_i K_ii a_i^2 for the dual with kernel matrix K,

all in the Frobenius norm; where `SAFETY` times it is above tolerance * f, or f is so small against |y|^2 that its
digits cancel, the solution continues in float64 from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.features._ridge_cg import (
    SINGLE,
    Cholesky,
    Diagonal,
    Nystrom,
    Preconditioner,
    State,
    conjugate_gradients,
)
from nasight.features._ridge_plan import RidgePlan
from nasight.features._ridge_rows import DesignMatrix

Array = NDArray[Any]
SAFETY = 16.0
"""On the estimates of rounding above."""
CANCELLED = 1e-2
"""The share of |y|^2 below which an objective that was found by subtraction is found again in float64."""
REFINEMENTS = 50
"""Iterations after which a float32 factor is given up as a preconditioner."""
LIMIT = 5000


class Solver:
    """Solves one problem by the forms of a plan, and says what it did."""

    def __init__(self, design: DesignMatrix, y: Array, penalty: float, tolerance: float, plan: RidgePlan) -> None:
        self.design, self.y, self.penalty, self.plan = design, y, penalty, plan
        # One half for the iterations, one for rounding.
        self.half = tolerance / 2
        self.square = float(np.vdot(y, y))
        self.forms = list[str]()
        self.iterations = 0
        self.double = self.double_factor = False
        self.objective = self.excess = np.nan

    @property
    def form(self) -> str:
        return self.forms[-1]

    def solve(self) -> Array:
        """(dimension, k) weights."""
        products = self.design.survey(self.y)
        for form in self.plan.forms:
            self.forms.append(form)
            last = form == self.plan.forms[-1]
            if form == "primal":
                found: Array | None = self._primal(products)
            elif form == "dual":
                found = self._dual()
            else:
                found = self._iterate(products, LIMIT if last else self.plan.limit, last)
            if found is not None:
                return found
        raise AssertionError("the last form of a plan gives weights")

    def _iterate(self, products: Array, limit: int, last: bool) -> Array | None:
        """By conjugate gradients; nothing where they hit their limit and another form is left."""
        preconditioner = self._low_rank()
        state = State(np.zeros_like(products), products.copy())
        if not self._descend(state, self.square, preconditioner, np.float32, limit) and not last:
            return None
        self._trust(state, self._rounding(state))
        if self.double:
            self._finish(state, preconditioner, LIMIT)
        return self._measured(state.w)

    def _low_rank(self) -> Preconditioner:
        if self.plan.rank:
            return Nystrom(self.design.normal, self.design.dimension, self.plan.rank, self.penalty)
        return Diagonal(self.design.squares(), self.penalty)

    def _primal(self, products: Array) -> Array:
        factor = Cholesky(self.design.gram, self.penalty)
        state = State(factor.solve(products), np.zeros_like(products), bound=0.0)
        state.objective = self.square - float(np.vdot(state.w, products))
        gram = self.design.energy * float((factor.diagonal @ np.square(state.w)).sum()) / self.penalty
        self._trust(state, self._rounding(state) + SAFETY * SINGLE**2 * gram)
        if self.double and not self._finish(state, factor, REFINEMENTS):
            if "primal" in self.plan.wide:
                self.double_factor = True
                del factor
                factor = Cholesky(lambda: self.design.gram(np.float64), self.penalty)
            self._finish(state, factor, LIMIT)
        return self._measured(state.w)

    def _dual(self) -> Array:
        factor = Cholesky(self.design.kernel, self.penalty)
        state = State(factor.solve(self.y), np.zeros_like(self.y), bound=0.0)
        state.objective = self.penalty * float(np.vdot(state.w, self.y))
        kernel = self.design.energy * float((factor.diagonal @ np.square(state.w)).sum())
        self._trust(state, 2 * SAFETY * SINGLE**2 * kernel)
        if not self.double:
            return self._measured(self.design.adjoint(state.w))
        self.design.survey(self.y, np.float64)
        if not self._descend_dual(state, factor, REFINEMENTS):
            if "dual" in self.plan.wide:
                self.double_factor = True
                del factor
                factor = Cholesky(lambda: self.design.kernel(np.float64), self.penalty)
            self._descend_dual(state, factor, LIMIT)
        return self.design.adjoint(state.w, np.float64)

    def _measured(self, w: Array) -> Array:
        """The same weights, with their objective from the rows: the sums of a solve have errors of first order.

        Rows that would have to be made again for this are left alone.
        """
        if not (self.double or self.design.made):
            misfit = self.y - self.design.forward(w)
            self.objective = float(np.vdot(misfit, misfit) + self.penalty * np.vdot(w, w))
        return w

    def _rounding(self, state: State) -> float:
        """What float32 products with the rows may hide of the excess."""
        return SAFETY * SINGLE**2 * self.design.energy * (state.objective + self.square) / self.penalty

    def _trust(self, state: State, rounding: float) -> None:
        """Whether float32 was enough."""
        objective = state.objective
        self._note(state, rounding)
        self.double = not (rounding <= self.half * objective and objective >= CANCELLED * self.square)

    def _note(self, state: State, rounding: float = 0.0) -> None:
        self.objective, excess = state.objective, state.bound + rounding
        self.excess = excess / state.objective if state.objective > 0 else (np.inf if excess > 0 else 0.0)
        self.iterations = state.iterations

    def _descend(self, state: State, start: float, preconditioner: Preconditioner, dtype: type, limit: int) -> bool:
        """Iterations on the primal system from a point whose objective is `start`."""
        state.gained = 0.0

        def enough(now: State) -> bool:
            now.objective = start - now.gained
            return now.bound <= self.half * now.objective

        def apply(p: Array) -> Array:
            return np.asarray(self.design.normal(p, dtype) + self.penalty * p)

        return conjugate_gradients(apply, preconditioner, state, enough, limit)

    def _finish(self, state: State, preconditioner: Preconditioner, limit: int) -> bool:
        """Iterations with float64 products, from the true residual of where the float32 ones ended."""
        products = self.design.survey(self.y, np.float64)
        state.residual, squares = self.design.residual(state.w, self.y)
        state.residual -= self.penalty * state.w
        start = squares + self.penalty * float(np.vdot(state.w, state.w))
        if not start < self.square:  # worse than no weights at all: the float32 iterations went astray
            state.w, state.residual, start = np.zeros_like(state.w), products, self.square
        done = self._descend(state, start, preconditioner, np.float64, limit)
        _, squares = self.design.residual(state.w, self.y)
        state.objective = squares + self.penalty * float(np.vdot(state.w, state.w))
        self._note(state)
        return done

    def _descend_dual(self, state: State, preconditioner: Preconditioner, limit: int) -> bool:
        """Iterations with float64 products on the dual system."""

        def apply(p: Array) -> Array:
            image = self.design.forward(self.design.adjoint(p, np.float64), np.float64)
            return np.asarray(image + self.penalty * p)

        def enough(now: State) -> bool:
            misfit = now.residual + self.penalty * now.w  # y - X X^T a
            now.objective = float(np.vdot(misfit, misfit) + self.penalty * np.vdot(now.w, self.y - misfit))
            now.bound = float(np.vdot(now.residual, now.residual))
            return now.bound <= self.half * now.objective

        state.residual = self.y - apply(state.w)
        done = conjugate_gradients(apply, preconditioner, state, enough, limit)
        self._note(state)
        return done
