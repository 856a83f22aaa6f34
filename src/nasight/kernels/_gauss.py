"""E[s(u) s(v)] and E[s'(u) s'(v)] over a bivariate Gaussian, for all pairs of many variables at once.

A two-dimensional quadrature for every pair is out of reach for a thousand points. Here it is done for a few
pairs only, and the others are interpolated to the same accuracy:

1. All three smooth activations are tanh in disguise. With z = x/2, sigmoid(x) - 1/2 = tanh(z)/2 and
   swish(x) = z + g(z), g(z) = z tanh(z); tanh' and g'' are even bells that decay like exp(-2|z|).
2. Price's theorem: d/drho E[f(u) f(v)] = a b E[f'(u) f'(v)] for deviations a, b and correlation rho. So the expectation
   H of a product of two bells gives the others by integrals over rho, which are exact for a Chebyshev series.
3. H is even in rho. In the angle theta = arccos|rho| its Chebyshev series converges fast even where tanh is almost a
   step (ReLU and sign have kernels that are entire in theta), and so does that in arcsinh(2a), which is like a where
   tanh is a line and like log a where it is a step: H is needed on a small grid.
4. On the grid H is a trapezoidal sum along the principal axes of the Gaussian, which converges exponentially for any
   covariance, singular ones included.

When all deviations are equal (data of equal norm) the grid is one series in theta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from nasight.errors import RunError
from nasight.kernels._activations import Array, Function, bell, expectations

# Half-width of the strip in which the bells are analytic (poles at +-i pi/2), and their decay exp(-2 |z|).
STRIP, DECAY = np.pi / 2, 2.0
STEEP = 4.0  # deviation from which H is narrow at theta = 0 and the angles are laid denser there
MORE = 8  # coefficients that a product with the sine and an integral add
MOST_NODES = 2048  # in either direction of the grid
CHUNK = 1 << 20  # values of the trapezoidal sum held at once
ROWS = 64  # of the matrix evaluated at once, to stay in the cache


def second_bell(z: Array) -> Array:
    """g''(z) for g(z) = z tanh(z)."""
    e: Array = np.exp(-2 * np.abs(z))
    e *= 8 / (1 + e) ** 2 * (1 - np.abs(z) * (1 - e) / (1 + e))
    return e


@dataclass(frozen=True, slots=True)
class Pairs:
    """N Gaussian variables: their deviations (N,) and the cosines of the angles between them (N, N)."""

    deviations: Array
    cosines: Array

    @classmethod
    def of(cls, covariance: Array) -> Pairs:
        deviations = np.sqrt(np.diagonal(covariance))
        # A point at zero stays at zero in every layer: any correlation will do.
        safe = np.where(deviations > 0, deviations, 1.0)
        cosines = covariance / np.multiply.outer(safe, safe)
        np.clip(cosines, -1, 1, out=cosines)
        np.fill_diagonal(cosines, 1.0)
        return cls(deviations, cosines)

    @property
    def products(self) -> Array:
        """Deviation times deviation, (N, N)."""
        return np.multiply.outer(self.deviations, self.deviations)


def tanh_pairs(pairs: Pairs, scale: float, accuracy: float) -> tuple[Array, Array]:
    """E[tanh(u) tanh(v)] and E[tanh'(u) tanh'(v)] for u, v of `scale` times these deviations."""
    bells, once = bell_integrals(bell, pairs, scale, accuracy, orders=(0, 1))
    return scale**2 * pairs.products * once, bells


def swish_pairs(pairs: Pairs, accuracy: float) -> tuple[Array, Array]:
    """E[s(u) s(v)] and E[s'(u) s'(v)] of the swish."""
    once, twice = bell_integrals(second_bell, pairs, 0.5, accuracy, orders=(1, 2))
    products = pairs.products / 4  # of the deviations of z = x/2
    means = expectations(lambda z: z * np.tanh(z), pairs.deviations / 2)
    values = products * (pairs.cosines + products * twice) + np.multiply.outer(means, means)
    return values, (1 + products * once) / 4


def bell_integrals(
    function: Function, pairs: Pairs, scale: float, accuracy: float, orders: tuple[int, ...]
) -> list[Array]:
    """H of `order` 0, its integral over rho from zero (1), and the integral of that (2), for all pairs."""
    epsilon = max(accuracy * 1e-3, 1e-14)
    floor = 1e-6  # H differs from its value at zero by a square
    deviations = np.maximum(pairs.deviations * scale, floor)

    def on_grid(a: Array, b: Array, theta: Array) -> Array:
        return product_expectation(function, a, b, theta, epsilon)

    nodes, spread = _deviation_nodes(on_grid, deviations, epsilon)
    angles = Angles(2 if nodes[-1] > STEEP else 1)
    count = _angle_count(on_grid, nodes, angles, epsilon)
    theta = angles.at(chebyshev.chebpts1(count))
    i, j = np.triu_indices(len(nodes))
    values = on_grid(nodes[i, None], nodes[j, None], theta[None])
    grids = []
    for order in orders:
        grid = np.empty((count + MORE * order, len(nodes), len(nodes)))
        grid[:, i, j] = grid[:, j, i] = _series(values, angles, order).T
        grids.append(grid)
    return _evaluate(grids, spread, pairs.cosines, angles, [order % 2 == 1 for order in orders])


@dataclass(frozen=True, slots=True)
class Angles:
    """theta = pi/2 ((1 + t)/2)^power, from t in [-1, 1]."""

    power: int

    def at(self, t: Array) -> Array:
        angles: Array = np.pi / 2 * ((1 + t) / 2) ** self.power
        return angles

    def rate(self, t: Array) -> Array:
        """d theta / d t."""
        rates: Array = np.pi / 4 * self.power * ((1 + t) / 2) ** (self.power - 1)
        return rates

    def inverse(self, theta: Array) -> Array:
        share = theta * (2 / np.pi)
        return 2 * (np.sqrt(share) if self.power == 2 else share) - 1


def product_expectation(function: Function, a: Array, b: Array, theta: Array, epsilon: float) -> Array:
    """E[f(u) f(v)] for a bell f, deviations a and b, correlation cos(theta) >= 0; the arguments are broadcast."""
    shape = np.broadcast_shapes(a.shape, b.shape, theta.shape)
    a, b, theta = (np.broadcast_to(value, shape).ravel() for value in (a, b, theta))
    # Principal axes: u = cos(phi) p - sin(phi) q, v = sin(phi) p + cos(phi) q with independent p and q.
    c = a * b * np.cos(theta)
    phi = np.arctan2(2 * c, (a - b) * (a + b)) / 2
    p = np.sqrt((a**2 + b**2) / 2 + np.hypot((a - b) * (a + b) / 2, c))
    q = a * b * np.sin(theta) / p
    steps_p, count_p = _lattice(p, epsilon)
    steps_q, count_q = _lattice(q, epsilon)
    out = np.empty(len(a))
    order = np.argsort(count_p * count_q)[::-1]
    while len(order):
        most_p = int(count_p[order[0]])
        size = max(1, CHUNK // (2 * most_p * int(count_q[order[0]])))
        part, order = order[:size], order[size:]
        k = np.arange(count_p[part].max() + 1)
        m = np.arange(-count_q[part].max(), count_q[part].max() + 1)
        x, y = steps_p[part, None] * k, steps_q[part, None] * m
        # The integrand is even: the half-plane p >= 0, its border counted once, the rest twice.
        weights_p = _normal(x) * np.where(k, 2.0, 1.0) * steps_p[part, None]
        weights_q = _normal(y) * steps_q[part, None]
        x, y = p[part, None] * x, q[part, None] * y
        cos, sin = np.cos(phi[part])[:, None, None], np.sin(phi[part])[:, None, None]
        product = function(cos * x[:, :, None] - sin * y[:, None, :])
        product *= function(sin * x[:, :, None] + cos * y[:, None, :])
        out[part] = np.einsum("nk,nkm,nm->n", weights_p, product, weights_q, optimize=True)
    return out.reshape(shape)


def _normal(x: Array) -> Array:
    density: Array = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return density


def _lattice(deviation: Array, epsilon: float) -> tuple[Array, NDArray[np.int64]]:
    """Step and number of steps of the trapezoidal rule in a standard normal variable times `deviation`.

    Shifting the line of integration by y <= lambda leaves exp(y^2/2 - 2 pi y / step) of the error; the range ends
    where the normal density times the bells' decay is epsilon.
    """
    log = -np.log(epsilon) + 2.0
    shift = np.minimum(STRIP / np.maximum(deviation, 1e-12) * 0.95, np.sqrt(2 * log))
    step = 2 * np.pi / (log / shift + shift / 2)
    rate = DECAY * deviation
    reach = np.sqrt(rate**2 + 2 * (log + 3)) - rate
    # The difference above cancels for wide Gaussians.
    reach = np.where(rate > 1e3, (log + 3) / np.maximum(rate, 1.0), reach)
    return step, np.ceil(reach / step).astype(np.int64)


Grid = Callable[[Array, Array, Array], Array]


def _deviation_nodes(on_grid: Grid, deviations: Array, epsilon: float) -> tuple[Array, Array]:
    """Deviations to compute H at, (n,), and the matrix that interpolates from them to all, (N, n)."""
    low, high = float(deviations.min()), float(deviations.max())
    if high - low <= epsilon * high:
        return np.array([high]), np.ones((len(deviations), 1))
    distinct, where = np.unique(deviations, return_inverse=True)
    start, length = np.arcsinh(2 * low), np.arcsinh(2 * high) - np.arcsinh(2 * low)
    count = 6
    while count < min(len(distinct), MOST_NODES):
        t = chebyshev.chebpts1(count)
        nodes = np.sinh(start + (t + 1) / 2 * length) / 2
        probe = np.array([0.0, np.pi / 8, np.pi / 2])[:, None]
        values = np.concatenate(
            [on_grid(nodes[None], nodes[None], probe), on_grid(nodes[None], np.array([[low], [high]]), probe[:1])]
        )
        if _converged(_coefficients(values), epsilon):
            position = np.clip(2 * (np.arcsinh(2 * deviations) - start) / length - 1, -1, 1)
            return nodes, chebyshev.chebvander(position, count - 1) @ _coefficients(np.eye(count)).T
        count = count * 3 // 2
    return distinct, np.eye(len(distinct))[where]


def _angle_count(on_grid: Grid, nodes: Array, angles: Angles, epsilon: float) -> int:
    """How many angles resolve H for the widest pair, whose H is the steepest."""
    count = 12
    while count <= MOST_NODES:
        theta = angles.at(chebyshev.chebpts1(count))
        if _converged(_coefficients(on_grid(nodes[-1:, None], nodes[-1:, None], theta[None])), epsilon):
            return count
        count = count * 3 // 2
    raise RunError(
        f"pre-activations of deviation {nodes[-1]:.3g} are not resolved to this accuracy; scale the data down or ask "
        "for less accuracy"
    )


def _converged(coefficients: Array, epsilon: float) -> bool:
    tail = np.abs(coefficients[..., -max(3, coefficients.shape[-1] // 6) :]).max(-1)
    return bool(np.all(tail <= epsilon * np.abs(coefficients).max(-1)))


def _coefficients(values: Array) -> Array:
    """Chebyshev coefficients from values at chebpts1 along the last axis."""
    from scipy.fft import dct

    count = values.shape[-1]
    coefficients: Array = dct(values[..., ::-1], type=2, axis=-1) / count
    coefficients[..., 0] /= 2
    return coefficients


def _series(values: Array, angles: Angles, order: int) -> Array:
    """Coefficients over the angle (pairs, angles) of the `order`-fold integral of H over rho from zero.

    d rho = -sin(theta) d theta, and the integral vanishes at theta = pi/2 (t = 1).
    """
    series = _coefficients(values)
    for _ in range(order):
        count = series.shape[-1] + MORE
        t = chebyshev.chebpts1(count)
        samples = chebyshev.chebval(t, series.T, tensor=True) * np.sin(angles.at(t)) * angles.rate(t)
        integral = -chebyshev.chebint(_coefficients(samples), lbnd=1, axis=-1)
        series = np.asarray(integral[..., :count], dtype=np.float64)
    return series


def _evaluate(grids: list[Array], spread: Array, cosines: Array, angles: Angles, odd: list[bool]) -> list[Array]:
    """The series at the angles of all pairs; the lower triangle is a mirror image."""
    total = len(cosines)
    results = [np.empty((total, total)) for _ in grids]
    for start in range(0, total, ROWS):
        rows = slice(start, min(start + ROWS, total))
        cosine = cosines[rows, start:]
        t = angles.inverse(np.arccos(np.abs(cosine)))
        for grid, result, sign in zip(grids, results, odd, strict=True):
            block = _block(grid, spread[rows], spread[start:], t)
            if sign:
                block *= np.sign(cosine)
            square = block[:, : len(block)]
            square[...] = (square + square.T) / 2
            result[rows, start:] = block
            result[start:, rows] = block.T
    return results


def _block(grid: Array, left: Array, right: Array, t: Array) -> Array:
    """Clenshaw's recurrence for sum_k (left grid_k right^T) T_k(t)."""
    if grid.shape[1] == 1:
        return np.asarray(chebyshev.chebval(t, grid[:, 0, 0]), dtype=np.float64)
    sides = left @ grid  # (degree, rows, nodes)
    b1 = b2 = np.zeros_like(t)
    for k in range(len(grid) - 1, 0, -1):
        b1, b2 = sides[k] @ right.T + 2 * t * b1 - b2, b1
    result: Array = sides[0] @ right.T + t * b1 - b2
    return result
