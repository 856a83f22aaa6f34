"""Ridge regression of many targets at once: one factorization, or conjugate gradients, within a bound on memory."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nasight.errors import RequestError
from nasight.features._family import RowSource
from nasight.features._linear import LinearModel
from nasight.features._ridge_plan import FORMS, available_memory, make_plan
from nasight.features._ridge_rows import DesignMatrix, hold
from nasight.features._ridge_solve import Solver

Array = NDArray[Any]


def ridge(
    x: Any,
    targets: Any,
    *,
    penalty: float = 0.5,
    intercept: bool = True,
    memory: int | None = None,
    form: str = "auto",
    tolerance: float = 1e-6,
) -> LinearModel:
    """The weights that minimize ||targets - x w - intercept||^2 + penalty ||w||^2 over all rows.

    The objective that is reached is above its minimum by at most `tolerance` times the minimum. Three forms reach it:

    - `primal`: Cholesky of the (dimension, dimension) Gram matrix;
    - `dual`: Cholesky of the (n, n) one;
    - `cg`: conjugate gradients with a low-rank preconditioner, which needs neither.

    `auto` takes conjugate gradients where they promise to be cheaper or where no Gram matrix fits, and goes back
    to a factorization where they turn out not to be.

    Products are in float32. What this costs in the objective is estimated from the solution (`_ridge_solve.py`),
    and where it exceeds the tolerance, as in an ill-conditioned problem, iterations with float64 products finish the
    work, preconditioned by what is there; if the float32 factor is too poor for that, a float64 one replaces it.

    Parameters
    ----------
    x : an array, a sparse matrix or a `RowSource`, (n, dimension).
    targets : (n, k), or (n,).
    penalty : lambda, the weight of the norm.
    intercept : whether there is one, which is not penalized.
    memory : at most this many bytes are held beside what was given; by default half of what the machine has available.
        Rows that are made on request are kept when they fit.
    form : "auto", "primal", "dual" or "cg".
    tolerance : how far the objective may be above its minimum, relative to it.

    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = ridge(x, x, penalty=5.0)
    >>> model.coef, model.intercept
    (array([[0.5]], dtype=float32), array([0.75]))
    """
    start = time.perf_counter()
    rows, y = _checked(x, targets, penalty, form, tolerance)
    room = available_memory() // 2 if memory is None else memory
    plan = make_plan(rows, y.shape[1], room, form)
    if plan.hold:
        rows = hold(rows, plan.step)
    mean = y.mean(0) if intercept else np.zeros(y.shape[1])
    design = DesignMatrix(rows, center=intercept, step=plan.step, copy=plan.copy)
    solver = Solver(design, y - mean, penalty, tolerance, plan)
    w = solver.solve()
    coef = w if solver.double else w.astype(np.float32)
    return LinearModel(
        coef,
        mean - design.mean @ coef,
        form=solver.form,
        peak_bytes=plan.peak_bytes(solver.forms, design.shifted is not None, solver.double_factor),
        seconds=time.perf_counter() - start,
        objective=solver.objective,
        iterations=solver.iterations,
        excess=solver.excess,
        converged=solver.excess <= tolerance,
    )


def _checked(x: Any, targets: Any, penalty: float, form: str, tolerance: float) -> tuple[Any, Array]:
    if form not in FORMS:
        raise RequestError(f"form is {form!r} but should be one of {', '.join(FORMS)}")
    if not (penalty > 0 and np.isfinite(penalty)):
        raise RequestError(f"penalty is {penalty} but should be a positive number")
    if not tolerance > 0:
        raise RequestError(f"tolerance is {tolerance} but should be positive, such as 1e-6")
    y = np.asarray(targets, dtype=np.float64)
    y = y[:, None] if y.ndim == 1 else y
    if not isinstance(x, RowSource):
        x = x.tocsr() if sparse.issparse(x) else np.asarray(x)
        if x.ndim != 2 or x.dtype.kind not in "fiub":
            raise RequestError(f"rows of shape {x.shape} and type {x.dtype} should be a matrix of numbers")
        x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
    n, dimension = (x.n, x.dimension) if isinstance(x, RowSource) else x.shape
    if n == 0 or dimension == 0:
        raise RequestError(f"there are {n} rows of {dimension} features but there should be at least one of each")
    if y.ndim != 2 or len(y) != n or y.shape[1] == 0:
        raise RequestError(f"targets of shape {y.shape} should have {n} rows, as many as the features")
    if not np.isfinite(y).all():
        raise RequestError("the targets hold NaN or infinite values but should be finite")
    return x, y
