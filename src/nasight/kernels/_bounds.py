"""Bounds on the smallest eigenvalue of the kernel, and on the error that it promises (EigenNAS, Theorems 1 to 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nasight.errors import RequestError
from nasight.kernels._activations import (
    SLOPE,
    Array,
    Constants,
    checked_layers,
    checked_slope,
    constants,
    derivative,
    expectations,
)  # fmt: skip
from nasight.kernels._bounds_data import BoundAssumption, KernelBound, Sample, shallow
from nasight.kernels._infinite import FORMS, Layers

EDGE = 1e-9  # rounding of computed constants: a repaired bound gives way by this much


def theorem_1(
    X: Any,
    activations: Sequence[str],
    skips: Sequence[float] | None = None,
    *,
    form: str = "exact",
    slope: float = SLOPE,
) -> KernelBound:
    """Theorem 1, repaired: bounds on lambda_min(K) that hold for every X, for the kernel of this form.

    Below, every term of K is positive semi-definite, and lambda_min(P o Q) >= lambda_min(P) min_i Q_ii (Schur), so

        lambda_min(K) >= 2 mu_1(s_1)^2 lambda_min(X X^T) prod_{p=3}^{L} (beta_3(s_{p-1}) + alpha_{p-2})

    from the term of the first matrix, since 2E[s'^2] >= 2 E[s']^2 = 2 mu_1^2. The paper has N/d for lambda_min(X X^T),
    which is impossible: the trace of K does not grow that fast. beta_3 is taken over the variances
    that reach its layer, where the paper's t ignores the mean terms of the exact kernel. For rows of other norms mu_1
    is E[s_1'(|x| z)], the smallest over the rows.

    Above, lambda_min(K) <= min_i K_ii <= min_i |x_i|^2 times what the recursion of `ntk` gives for A_1 = 1 when
    2E[s^2] <= beta_1 v, 2E[s'^2] <= beta_2 and sqrt(2) E[s] <= mean sqrt(v): `values["constant"]`. The paper's sum,
    without N/d and with beta_1(s_0) = 1 and alpha_0 = 0, is a little larger for the printed kernel (one alpha too many
    per term), and no bound for the exact one: ReLU, L = 4, both skips has 12 where K_ii is 15.977.
    `values["paper's sum"]` has it, and `values["t"]` the largest variance bound met.

    Parameters
    ----------
    X : the examples, (N, d).
    activations, skips, slope : the network, as in `ntk`.
    form : the kernel that is bounded, "exact" or "printed".

    >>> from nasight.kernels import ntk
    >>> bound = theorem_1(np.eye(2), ["relu", "relu"], [1])
    >>> bool(bound.lower <= np.linalg.eigvalsh(ntk(np.eye(2), ["relu", "relu"], [1]))[0] <= bound.upper)
    True
    """
    names, alphas, slope = _request(activations, skips, form, slope)
    sample, exact = Sample(X), form == "exact"
    rows = [constants(name, slope=slope) for name in names]
    variances, upper = _upward(rows, (0.0, *alphas), exact)
    scale = float(sample.norms.max()) ** 2
    lower = 2 * _first_coefficient(names[0], sample.norms, slope) ** 2 * sample.smallest
    for name, variance, alpha in zip(names[1:], variances[1:], alphas, strict=True):
        lower *= constants(name, float(variance * scale), slope).beta_3 + (alpha**2 if exact else alpha)
    return KernelBound(
        f"Theorem 1, repaired, {form} kernel",
        lower * (1 - EDGE),
        upper * float(sample.norms.min()) ** 2 * (1 + EDGE),
        {
            "constant": upper,
            "paper's sum": _printed_sum(rows, alphas),
            "t": float(max(variances) * scale),
            "lambda_min(X X^T)": sample.smallest,
        },
        [sample.unit(), sample.isotropic(), sample.independent()],
        proved=True,
    )


def theorem_1_printed(
    X: Any, activations: Sequence[str], skips: Sequence[float] | None = None, *, slope: float = SLOPE
) -> KernelBound:
    """Theorem 1 as the paper prints it, the constant in Theta(N/d) taken as 1.

    No choice of that constant saves the lower bound: it grows with N, and lambda_min(K) <= K_ii does not.

    Parameters
    ----------
    X : the examples, (N, d).
    activations, skips, slope : the network, as in `ntk`.

    >>> theorem_1_printed(np.eye(2), ["relu", "relu"]).holds
    False
    """
    names, alphas, slope = _request(activations, skips, "printed", slope)
    sample, depth = Sample(X), len(names) + 1
    ratio = sample.count / sample.dimensions
    t = 3 * (1 + slope**2) * (2 + slope**2) ** (depth - 3)
    rows = [constants(name, t, slope) for name in names]
    lower = 2 * rows[0].mu_1 ** 2 * ratio
    for row, alpha in zip(rows[1:], alphas, strict=True):
        lower *= row.beta_3 + alpha
    upper = ratio * _printed_sum(rows, alphas)
    assumptions = [sample.unit(), sample.isotropic(), sample.many(), shallow(depth)]
    return KernelBound("Theorem 1, as printed", lower, upper, {"N/d": ratio, "t": t}, assumptions)


def schur_bound(layers: Layers, skips: Sequence[float], *, form: str = "exact") -> KernelBound:
    """The sharpest bounds of this kind: every term of the kernel's sum by its own smallest eigenvalue and diagonal.

    lambda_min(A_L) + sum_l lambda_min(A_l) min_i [Gdot_{l+1} o prod_p (Gdot_p + alpha_{p-2}^2)]_ii below, K_ii above.
    It costs an eigenvalue problem per layer. The last word where N > d, where Theorem 1 can only say zero.

    Parameters
    ----------
    layers : what `ntk(..., layers=True)` returns beside the kernel.
    skips : the L-2 skips of the network.
    form : the form of that kernel, "exact" or "printed".

    >>> from nasight.kernels import ntk
    >>> K, layers = ntk(np.eye(2), ["relu", "relu"], [1], layers=True)
    >>> bool(schur_bound(layers, [1]).lower <= np.linalg.eigvalsh(K)[0])
    True
    """
    exact = form == "exact"
    below = layers.covariances if exact else layers.products
    alphas = [0.0, *(alpha**2 if exact else alpha for alpha in skips)]
    diagonals = [np.diagonal(gdot) for gdot in layers.derivatives]
    factor = np.ones_like(diagonals[0])
    lower, diagonal = _smallest(below[-1]), np.diagonal(below[-1]).copy()
    for a, gdot, alpha in zip(below[-2::-1], diagonals[::-1], alphas[::-1], strict=True):
        lower += _smallest(a) * float((gdot * factor).min())
        diagonal += np.diagonal(a) * gdot * factor
        factor = factor * (gdot + alpha)
    return KernelBound(f"term by term, {form} kernel", lower, float(diagonal.min()), proved=True)


def theorem_2(
    X: Any, activations: Sequence[str], skips: Sequence[float] | None = None, *, slope: float = SLOPE
) -> KernelBound:
    """The order terms of Theorem 2, for finite width: no constants are known, so they compare networks and bound none.

    `lower` and `upper` are as printed, with N/d; `values` has them with lambda_min(X X^T) below and 1 above, which is
    what Theorem 1's repair leaves. The beta_3 are those of Theorem 1 as printed.

    Parameters
    ----------
    X : the examples, (N, d).
    activations, skips, slope : the network, as in `ntk`.

    >>> sorted(theorem_2(np.eye(2), ["relu", "relu"]).values)
    ['N/d', 'lower without N/d', 'upper without N/d']
    """
    names, alphas, slope = _request(activations, skips, "printed", slope)
    sample, depth = Sample(X), len(names) + 1
    ratio = sample.count / sample.dimensions
    t = 3 * (1 + slope**2) * (2 + slope**2) ** (depth - 3)
    rows = [constants(name, t, slope) for name in names]
    down = [row.beta_3 + alpha for row, alpha in zip(rows[1:], alphas, strict=True)]
    up = [row.beta_2 + alpha for row, alpha in zip(rows[1:], alphas, strict=True)]  # of layers i = 2 ... L-1
    product = float(np.prod(down))
    total = float(sum(np.prod(up[k:]) for k in range(depth)))
    return KernelBound(
        "Theorem 2, order terms (their constants are unknown)",
        ratio * product,
        ratio * total,
        {"lower without N/d": product * sample.smallest, "upper without N/d": total, "N/d": ratio},
        [sample.unit(), sample.isotropic(), sample.many()],
    )


def theorem_3(
    X: Any,
    kernel: Array,
    labels: Any,
    activations: Sequence[str],
    *,
    delta: float = 0.05,
    kappa: float = 1.0,
    width: int | None = None,
    slope: float = SLOPE,
) -> KernelBound:
    """Theorem 3: the expected 0-1 error of SGD, up to constants and logarithms, for labels of -1 and +1.

    C_2 sqrt(y^T y / (lambda_min N)) + sqrt(log(1/delta) / N) with C_1 = sqrt(L) / (3 Lip + 1)^(L-1) and C_2 =
    sqrt(L) (3 Lip + 1)^(L-1); `values["by y^T K^-1 y"]` has y^T K^-1 y for y^T y / lambda_min, which is never larger.
    `values["step size x width"]` is kappa C_1 sqrt(y^T K^-1 y / N).

    Parameters
    ----------
    X : the examples, (N, d).
    kernel : their kernel K, (N, N).
    labels : -1 or +1 for each example, (N,).
    activations, slope : the network, as in `ntk`.
    delta : the probability with which the bound may fail, at most 1/e.
    kappa : the factor of the step size.
    width : the width of the network; with it `values["step size"]` is the step size itself.

    >>> from nasight.kernels import ntk
    >>> bound = theorem_3(np.eye(2), ntk(np.eye(2), ["relu"]), [-1, 1], ["relu"], width=100)
    >>> "step size" in bound.values
    True
    """
    names, _, slope = _request(activations, None, "exact", slope)
    sample, y = Sample(X), np.asarray(labels, dtype=np.float64)
    if y.shape != (sample.count,) or not np.isin(y, (-1, 1)).all():
        raise RequestError(f"Theorem 3 takes {sample.count} labels of -1 and +1, got an array of shape {y.shape}")
    if not 0 < delta <= np.exp(-1):
        raise RequestError(f"delta must lie between 0 and 1/e, got {delta:g}")
    depth = len(names) + 1
    lipschitz = max(constants(name, slope=slope).lipschitz for name in names)
    growth = (3 * lipschitz + 1) ** (depth - 1)
    eigenvalues, vectors = np.linalg.eigh(kernel)
    smallest = float(eigenvalues[0])
    positive = smallest > 1e-13 * float(eigenvalues[-1])
    energy = float(((vectors.T @ y) ** 2 / eigenvalues).sum()) if positive else np.inf
    rest = float(np.sqrt(np.log(1 / delta) / sample.count))
    upper = float(np.sqrt(depth) * growth / np.sqrt(smallest)) + rest if positive else np.inf
    step = kappa * np.sqrt(depth) / growth * np.sqrt(energy / sample.count)
    values = {
        "C1": float(np.sqrt(depth) / growth),
        "C2": float(np.sqrt(depth) * growth),
        "Lip": lipschitz,
        "by y^T K^-1 y": float(np.sqrt(depth) * growth * np.sqrt(energy / sample.count)) + rest,
        "step size x width": float(step),
    }
    if width is not None:
        values["step size"] = float(step / width)
    assumptions = [
        sample.unit(),
        sample.isotropic(),
        sample.distinct(),
        BoundAssumption("lambda_min(K) > 0", positive, smallest),
        shallow(depth),
    ]
    return KernelBound("Theorem 3, 0-1 error up to constants", None, upper, values, assumptions)


def _request(
    activations: Sequence[str], skips: Sequence[float] | None, form: str, slope: float
) -> tuple[tuple[str, ...], tuple[float, ...], float]:
    names, alphas = checked_layers(activations, skips)
    if form not in FORMS:
        raise RequestError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
    return names, alphas, checked_slope(slope)


def _upward(rows: Sequence[Constants], alphas: Sequence[float], exact: bool) -> tuple[list[float], float]:
    """Upper bounds on A_1 ... A_{L-1} and on K_ii for |x| = 1; both scale with |x|^2."""
    a, g, t, total = 1.0, 1.0, 0.0, 0.0
    variances = list[float]()
    for row, alpha in zip(rows, alphas, strict=True):
        variances.append(a)
        weight = alpha**2 if exact else alpha
        total = total * (row.beta_2 + weight) + (a if exact else g) * row.beta_2
        e = row.mean * np.sqrt(a)
        g = row.beta_1 * a
        a = g + weight * a + (2 * alpha * e * t if exact else 0.0)
        t = e + alpha * t
    return variances, float(total + (a if exact else g))


def _printed_sum(rows: Sequence[Constants], alphas: Sequence[float]) -> float:
    """The sum over l of Theorem 1's upper bound; beta_1(s_0) = 1 and alpha_0 = 0."""
    skips = (0.0, *alphas)
    up = [row.beta_1 + alpha for row, alpha in zip(rows, skips, strict=True)]  # p = 2 ... L
    down = [row.beta_2 + alpha for row, alpha in zip(rows, skips, strict=True)]
    ends = [1.0, *(row.beta_1 for row in rows)]  # beta_1(s_{l-1}) for l = 1 ... L
    depth = len(rows) + 1
    return float(sum(ends[i] * np.prod(up[: max(i - 1, 0)]) * np.prod(down[i:]) for i in range(depth)))


def _first_coefficient(name: str, norms: Array, slope: float) -> float:
    """The smallest E[s'(|x| z)] over the rows: mu_1 for rows of norm 1."""
    return float(expectations(derivative(name, slope), norms).min())


def _smallest(matrix: Array) -> float:
    return max(0.0, float(np.linalg.eigvalsh(matrix)[0]))
