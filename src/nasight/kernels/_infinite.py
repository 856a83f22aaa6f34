"""The neural tangent kernel of an infinitely wide network with mixed activations and skips (EigenNAS, Lemma 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from threadpoolctl import threadpool_limits

from nasight.errors import RequestError
from nasight.kernels._activations import SLOPE, Array, checked_layers, checked_slope, mean
from nasight.kernels._gauss import Pairs, swish_pairs, tanh_pairs

FORMS = ("exact", "printed")


@dataclass(frozen=True, slots=True)
class Layers:
    """What a kernel is made of; entry 0 of each list is layer 1 of the paper.

    `covariances` are A_1 ... A_L: of the pre-activations of layer l, A_L of the output. `products` are G_1 ... G_L, and
    `derivatives` are Gdot_2 ... Gdot_L. All (N, N).
    """

    covariances: tuple[Array, ...]
    products: tuple[Array, ...]
    derivatives: tuple[Array, ...]


@overload
def ntk(
    X: Any,
    activations: Sequence[str],
    skips: Sequence[float] | None = ...,
    *,
    form: str = ...,
    slope: float = ...,
    accuracy: float = ...,
    layers: Literal[False] = ...,
) -> Array: ...
@overload
def ntk(
    X: Any,
    activations: Sequence[str],
    skips: Sequence[float] | None = ...,
    *,
    form: str = ...,
    slope: float = ...,
    accuracy: float = ...,
    layers: Literal[True],
) -> tuple[Array, Layers]: ...
def ntk(
    X: Any,
    activations: Sequence[str],
    skips: Sequence[float] | None = None,
    *,
    form: str = "exact",
    slope: float = SLOPE,
    accuracy: float = 1e-8,
    layers: bool = False,
) -> Array | tuple[Array, Layers]:
    """The neural tangent kernel of an infinitely wide network: (N, N).

    For m to infinity and standard normal matrices, alpha_0 = 0, of the network

        h_0 = x,  h_l = sqrt(2/m) s_l(W_l h_{l-1}) + alpha_{l-1} h_{l-1},  f = W_L h_{L-1}

    `form="exact"`: with G_{l+1} = 2E[s_l(u) s_l(v)] and Gdot_{l+1} = 2E[s_l'(u) s_l'(v)] over (u, v) ~ N(0, A_l),

        e_l = sqrt(2) E[s_l(u)],  t_1 = e_1,  t_l = e_l + alpha_{l-1} t_{l-1}
        A_1 = X X^T,  A_{l+1} = G_{l+1} + alpha_{l-1}^2 A_l + alpha_{l-1} (e_l t_{l-1}^T + t_{l-1} e_l^T)
        K = A_L + sum_{l=1}^{L-1} A_l o Gdot_{l+1} o prod_{p=l+2}^{L} (Gdot_p + alpha_{p-2}^2)

    `form="printed"` is Lemma 1 as it stands in the paper: without the e t terms, with alpha for alpha^2, and with G
    for A in K. The two agree without skips.

    ReLU and leaky ReLU have closed forms.

    Parameters
    ----------
    X : the examples, (N, d).
    activations : L-1 names of relu, leaky_relu, sigmoid, tanh, swish.
    skips : L-2 numbers alpha_1 ... alpha_{L-2} from 0 to 1; none by default.
    form : "exact" or "printed".
    slope : the slope of leaky_relu below zero.
    accuracy : how far the Gaussian expectations without a closed form may be off, relative to the two deviations.
    layers : whether to return, beside the kernel, the `Layers` that it is made of.

    >>> import numpy as np
    >>> K = ntk(np.eye(2), ["relu", "relu", "relu"], [1, 1])
    >>> round(float(K[0, 0]), 3), float(ntk(np.eye(2), ["relu"] * 3, [1, 1], form="printed")[0, 0])
    (15.977, 9.0)
    """
    names, alphas = checked_layers(activations, skips)
    if form not in FORMS:
        raise RequestError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
    if not 0 < accuracy < 1:
        raise RequestError(f"accuracy must lie between 0 and 1, got {accuracy:g}")
    slope, exact = checked_slope(slope), form == "exact"
    covariance = gram(X)
    product = covariance
    covariances, products, derivatives = [covariance], [product], list[Array]()
    total: Array | None = None
    t = np.zeros(len(covariance))
    for name, alpha in zip(names, (0.0, *alphas), strict=True):
        pairs = Pairs.of(covariance)
        below = covariance if exact else product
        # Many small products: threads that wait for each other on a busy machine cost fifty times what they save.
        with threadpool_limits(limits=1, user_api="blas"):
            product, derivative = pair_expectations(name, pairs, slope, accuracy)
        term = below * derivative
        total = term if total is None else total * (derivative + (alpha**2 if exact else alpha)) + term
        e = mean(name, pairs.deviations, slope)
        covariance = _next(product, covariance, alpha, e, t, exact)
        t = e + alpha * t
        if layers:
            covariances.append(covariance)
            products.append(product)
            derivatives.append(derivative)
    assert total is not None
    kernel = total + (covariance if exact else product)
    return (kernel, Layers(tuple(covariances), tuple(products), tuple(derivatives))) if layers else kernel


def _next(product: Array, covariance: Array, alpha: float, e: Array, t: Array, exact: bool) -> Array:
    """A_{l+1} from G_{l+1} and A_l."""
    if alpha == 0:
        return product
    if not exact:
        return product + alpha * covariance
    cross: Array = np.multiply.outer(alpha * e, t)
    return product + alpha**2 * covariance + (cross + cross.T)


def gram(X: Any) -> Array:
    """X X^T in float64, or a sentence that says why it has none."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise RequestError(f"the data must be a matrix with one example per row, got an array of shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise RequestError("the data holds a value that is not a finite number")
    product: Array = rows @ rows.T
    # What the product of two equal rows lacks in symmetry is rounding.
    return (product + product.T) / 2


def pair_expectations(name: str, pairs: Pairs, slope: float, accuracy: float) -> tuple[Array, Array]:
    """G = 2E[s(u) s(v)] and Gdot = 2E[s'(u) s'(v)] for all pairs."""
    if name == "tanh":
        values, derivatives = tanh_pairs(pairs, 1.0, accuracy)
        return 2 * values, 2 * derivatives
    if name == "sigmoid":
        values, derivatives = tanh_pairs(pairs, 0.5, accuracy)
        return values / 2, derivatives / 8
    if name == "swish":
        values, derivatives = swish_pairs(pairs, accuracy)
        return 2 * values, 2 * derivatives
    return _rectified(pairs, slope if name == "leaky_relu" else 0.0)


def _rectified(pairs: Pairs, slope: float) -> tuple[Array, Array]:
    """The arc-cosine kernels; a leaky ReLU is slope * x + (1 - slope) relu(x)."""
    share = 1 - np.arccos(pairs.cosines) / np.pi
    sine = np.sqrt((1 - pairs.cosines) * (1 + pairs.cosines))
    values = (sine / np.pi + share * pairs.cosines) * (1 - slope) ** 2 + 2 * slope * pairs.cosines
    return values * pairs.products, share * (1 - slope) ** 2 + 2 * slope
