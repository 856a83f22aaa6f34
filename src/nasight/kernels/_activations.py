"""The five activations of EigenNAS, and what a centered Gaussian makes of each (Table 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError
from nasight.spaces.mlp import ACTIVATIONS

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
SLOPE = 0.01
# Where a smooth activation is its asymptote to the last digit, and where it is its tangent at zero.
FAR, NEAR = 1e3, 1e-12


@dataclass(frozen=True, slots=True)
class Constants:
    """Table 1 of EigenNAS, computed: `2E` is over z ~ N(0, v).

    `mu_1` E[z s(z)] at v = 1; `beta_1` the largest 2E[s(z)^2] / v; `beta_2` the largest 2E[s'(z)^2]; `beta_3` the
    smallest of these for v up to `t`; `mean` the largest sqrt(2) E[s(z)] / sqrt(v); `lipschitz` the largest slope.
    """

    mu_1: float
    beta_1: float
    beta_2: float
    beta_3: float
    mean: float
    lipschitz: float
    t: float


def checked_layers(
    activations: Sequence[str], skips: Sequence[float] | None
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The activations and skips of a network of L layers, or a `RequestError` that says what is wrong with them.

    Parameters
    ----------
    activations : L-1 names of relu, leaky_relu, sigmoid, tanh, swish.
    skips : L-2 numbers from 0 to 1, one over every layer after the first; None for no skips.

    >>> checked_layers(["relu", "tanh"], None)
    (('relu', 'tanh'), (0.0,))
    """
    names = tuple(activations)
    if isinstance(activations, str) or not names:
        raise RequestError(f"activations must be a list of at least one name, got {activations!r}")
    for name in names:
        if name not in ACTIVATIONS:
            raise RequestError(f"unknown activation {name!r}, not one of {', '.join(ACTIVATIONS)}")
    values = (0.0,) * (len(names) - 1) if skips is None else tuple(float(value) for value in skips)
    if len(values) != len(names) - 1:
        raise RequestError(
            f"{len(names)} activation(s) take {len(names) - 1} skip(s), one over every layer after the first, "
            f"got {len(values)}"
        )
    for value in values:
        if not 0 <= value <= 1:
            raise RequestError(f"a skip must be a number from 0 to 1, got {value:g}")
    return names, values


def checked_slope(slope: float) -> float:
    if not 0 <= slope < 1:
        raise RequestError(f"the slope of leaky_relu must be at least 0 and below 1, got {slope:g}")
    return float(slope)


def function(name: str, slope: float = SLOPE) -> Function:
    """The activation s."""
    functions: dict[str, Function] = {
        "relu": lambda x: np.maximum(x, 0),
        "leaky_relu": lambda x: np.maximum(slope * x, x),
        "sigmoid": lambda x: np.tanh(x / 2) / 2,
        "tanh": np.tanh,
        "swish": lambda x: x * (1 + np.tanh(x / 2)) / 2,
    }
    return functions[name]


def derivative(name: str, slope: float = SLOPE) -> Function:
    """The derivative s'."""
    functions: dict[str, Function] = {
        "relu": lambda x: np.heaviside(x, 0.5),
        "leaky_relu": lambda x: slope + (1 - slope) * np.heaviside(x, 0.5),
        "sigmoid": lambda x: bell(x / 2) / 4,
        "tanh": bell,
        "swish": lambda x: (1 + np.tanh(x / 2) + x / 2 * bell(x / 2)) / 2,
    }
    return functions[name]


def bell(x: Array) -> Array:
    """1 / cosh(x)^2, the derivative of tanh, without overflow."""
    e: Array = np.exp(-2 * np.abs(x))
    e *= 4 / (1 + e) ** 2
    return e


_ROOTS, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def expectation(f: Function, deviation: float) -> float:
    """E[f(z)] for z ~ N(0, deviation^2), exact to rounding for the activations, their derivatives and products.

    Gauss-Legendre on panels of the half-line: f may have a kink at zero, and varies on the scale of 1.
    """
    if deviation == 0:
        return float(f(np.zeros(1))[0])
    powers = 2.0 ** np.arange(-1, 7) / deviation
    ends = np.unique(np.concatenate([np.arange(0, 10.5, 1.5), powers[powers < 9]]))
    middle, half = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    z = (middle[:, None] + half[:, None] * _ROOTS).ravel()
    weights = (half[:, None] * _WEIGHTS).ravel() * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return float(weights @ (f(deviation * z) + f(-deviation * z)))


def expectations(f: Function, deviations: Array) -> Array:
    """E[f(z)] for each deviation; equal deviations cost one evaluation."""
    distinct, where = np.unique(deviations, return_inverse=True)
    return np.array([expectation(f, deviation) for deviation in distinct])[where]


def mean(name: str, deviations: Array, slope: float = SLOPE) -> Array:
    """sqrt(2) E[s(z)], the e_l of the exact kernel."""
    if name in ("tanh", "sigmoid"):
        return np.zeros_like(deviations)
    if name in ("relu", "leaky_relu"):
        return deviations * float((1 - slope if name == "leaky_relu" else 1) / np.sqrt(np.pi))
    return expectations(function(name), deviations) * float(np.sqrt(2))


@lru_cache(maxsize=1024)
def constants(name: str, t: float = np.inf, slope: float = SLOPE) -> Constants:
    """The constants of an activation, a row of Table 1 of EigenNAS.

    Parameters
    ----------
    name : relu, leaky_relu, sigmoid, tanh or swish.
    t : the largest variance that the activation sees; only `beta_3` depends on it.
    slope : the slope of leaky_relu below zero.

    >>> row = constants("tanh", t=1.0)
    >>> round(row.mu_1, 5), row.beta_1, row.beta_2
    (0.60571, 2.0, 2.0)
    """
    checked_layers([name], None)
    ds = derivative(name, slope)
    near, far = _limits(ds)
    at_end = _square(ds, t) if np.isfinite(t) else far
    beta_3 = min(near, at_end, -_largest(lambda v: -_square(ds, v), t))
    return Constants(**_whole_line(name, checked_slope(slope)), beta_3=beta_3, t=t)


@lru_cache(maxsize=64)
def _whole_line(name: str, slope: float) -> dict[str, float]:
    """The constants that take all variances into account."""
    s, ds = function(name, slope), derivative(name, slope)
    limits, ends = _limits(ds), np.array([-FAR, -NEAR, NEAR, FAR])
    return {
        "mu_1": expectation(lambda z: z * s(z), 1.0),
        "beta_1": max(*limits, _largest(lambda v: 2 * expectation(lambda z: s(z) ** 2, np.sqrt(v)) / v)),
        "beta_2": max(*limits, _largest(lambda v: _square(ds, v))),
        "mean": max(
            float((ds(ends)[3] - ds(ends)[0]) / np.sqrt(np.pi)),
            _largest(lambda v: np.sqrt(2) * expectation(s, np.sqrt(v)) / np.sqrt(v)),
        ),
        "lipschitz": max(float(np.abs(ds(ends)).max()), _largest(lambda x: float(ds(np.array([x]))[0]))),
    }


def _limits(ds: Function) -> tuple[float, float]:
    """2E[s'(z)^2] for a variance to 0 and to infinity: z is on either side of zero with probability 1/2."""
    return float((ds(np.array([-NEAR, NEAR])) ** 2).sum()), float((ds(np.array([-FAR, FAR])) ** 2).sum())


def _square(ds: Function, v: float) -> float:
    return 2 * expectation(lambda z: ds(z) ** 2, float(np.sqrt(v)))


def _largest(f: Callable[[float], float], end: float = np.inf) -> float:
    """The largest f(v) over 0 < v <= end: the best point of a logarithmic grid, refined between its neighbors."""
    from scipy.optimize import minimize_scalar

    grid = np.geomspace(1e-4, min(1e4, end) if end > 2e-4 else 2e-4, 40)
    values = [f(float(v)) for v in grid]
    best = int(np.argmax(values))
    span = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda v: -f(float(v)), bounds=span, method="bounded", options={"xatol": 1e-9})
    return max(values[best], -float(found.fun))
