"""The Bregman proximal map and Bregman stationarity (GAEA, eq. 7): with a certificate, or from a noisy oracle."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nasight.errors import RequestError, RunError
from nasight.geometry._theory_domain import Domain, Point, symmetric_range

Objective = Callable[[dict[str, Tensor]], Tensor]
Oracle = Callable[[dict[str, Tensor]], Point]
"""A gradient at a point, exact or drawn anew at every call."""


@dataclass(frozen=True)
class Proximal:
    """A point near prox_lambda(x), and what is proved about it, given gamma.

    `gap` bounds what the point's objective exceeds the smallest by, and D(point || prox) is at most `distance`.
    `stationarity` is Delta_lambda computed with the point; the true one lies between `low` and `high`.
    """

    point: dict[str, Tensor]
    gap: float
    distance: float
    stationarity: float
    low: float
    high: float
    steps: int


def proximal(
    domain: Domain,
    f: Objective,
    x: Point,
    *,
    lam: float,
    gamma: float,
    tolerance: float = 1e-10,
    max_steps: int = 10_000,
) -> Proximal:
    """argmin over u of lam * f(u) + D(u || x), for an f that is smooth and gamma-relatively weakly convex.

    With lam < 1/gamma, h(u) = f(u) + D(u || x) / lam is mu-strongly convex relative to the potential,
    mu = 1/lam - gamma. So h(v) >= h(u) + <h'(u), v - u> + mu D(v || u) for all v, and the smallest value of the right
    side, which a mirror step of rate 1/mu attains, certifies how far h(u) is from the smallest h. The solver is
    mirror descent on h with a relative smoothness found by backtracking.

    Parameters
    ----------
    domain : the blocks of variables.
    f : the objective, differentiable by torch.
    x : the point.
    lam : lambda, below 1/gamma.
    gamma : the weak convexity of f relative to the potential.
    tolerance : the gap at which the solver ends.
    max_steps : a solver that takes more raises `RunError`.

    >>> from nasight.geometry.theory import FREE
    >>> half_square = lambda u: u["w"].square().sum() / 2
    >>> found = proximal(Domain({"w": FREE}), half_square, {"w": torch.ones(1)}, lam=1.0, gamma=0.5)
    >>> round(float(found.point["w"]), 4)
    0.5
    """
    mu = _modulus(lam, gamma)
    x = domain.checked(x)
    u, smooth = {name: t.clone() for name, t in x.items()}, max(gamma, 1e-3)
    for step in range(max_steps + 1):
        value, grad = _value_and_gradient(f, u)
        slope = _slope(domain, grad, u, x, lam)
        gap = _gap(domain, u, slope, mu)
        if gap <= tolerance:
            return _with_certificate(domain, x, u, gap, mu, lam, step)
        smooth = smooth / 2
        while True:
            v = domain.step(u, slope, 1 / (smooth + 1 / lam))
            moved = domain.minus(v, u)
            model = value + domain.inner(grad, moved) + smooth * domain.divergence(v, u)
            if float(f(v)) <= model + 1e-14 * max(1.0, abs(value)) or smooth > 1e12:
                break
            smooth *= 2
        u = v
    raise RunError(
        f"the proximal map did not reach the tolerance {tolerance:g} in {max_steps} steps (gap {gap:.3g}): f may not "
        f"be smooth, or not {gamma:g}-relatively weakly convex"
    )


def stationarity(
    domain: Domain, f: Objective, x: Point, *, gamma: float, lam: float | None = None, tolerance: float = 1e-10
) -> Proximal:
    """Delta_lambda at x with its certificate.

    Parameters
    ----------
    domain, f, x, gamma, tolerance : as in `proximal`.
    lam : lambda; 1/(2 gamma) by default, as in the theorems.

    >>> from nasight.geometry.theory import FREE
    >>> half_square = lambda u: u["w"].square().sum() / 2
    >>> stationarity(Domain({"w": FREE}), half_square, {"w": torch.zeros(2)}, gamma=1.0).stationarity
    0.0
    """
    return proximal(domain, f, x, lam=1 / (2 * gamma) if lam is None else lam, gamma=gamma, tolerance=tolerance)


def gradient_mapping(domain: Domain, x: Point, grad: Point, *, lam: float) -> float:
    """Delta_lambda of f's tangent plane at x: the prox is then one mirror step, and one gradient is enough.

    It is |grad|^2 for R^d; for a smooth f it is 0 where Delta_lambda is, and near it otherwise when lambda is small.

    Parameters
    ----------
    domain : the blocks of variables.
    x : the point.
    grad : the gradient of f there.
    lam : lambda.

    >>> from nasight.geometry.theory import FREE
    >>> gradient_mapping(Domain({"w": FREE}), {"w": torch.zeros(2)}, {"w": torch.tensor([3.0, 4.0])}, lam=0.5)
    25.0
    """
    if not lam > 0:
        raise RequestError(f"lam must be greater than 0, got {lam!r}")
    point = domain.checked(x)
    return domain.symmetric(point, domain.step(point, grad, lam)) / lam**2


@dataclass(frozen=True)
class Estimate:
    """A mean over independent repeats, and its standard error."""

    value: float
    error: float
    repeats: int


def estimate_stationarity(
    domain: Domain,
    oracle: Oracle,
    x: Point,
    *,
    gamma: float,
    lam: float | None = None,
    steps: int = 100,
    repeats: int = 4,
) -> Estimate:
    """Delta_lambda at x from noisy gradients alone, as a supernet gives them: an estimate without a certificate.

    Stochastic mirror descent on the mu-strongly convex h, with rates 2 / (mu (t + 2 + 2 kappa)), kappa = 1 / (lam mu)
    the condition of its known part, and an average that weighs step t by t. Noise in the inner solution biases the
    estimate upwards.

    Parameters
    ----------
    domain : the blocks of variables.
    oracle : from a point to a noisy gradient there.
    x : the point.
    gamma : the weak convexity of f relative to the potential.
    lam : lambda; 1/(2 gamma) by default.
    steps : of one solution.
    repeats : independent solutions, whose spread tells the standard error.

    >>> from nasight.geometry.theory import FREE
    >>> estimate_stationarity(Domain({"w": FREE}), lambda x: x, {"w": torch.zeros(2)}, gamma=1.0, steps=5).value
    0.0
    """
    lam = 1 / (2 * gamma) if lam is None else lam
    mu = _modulus(lam, gamma)
    if steps < 1 or repeats < 2:
        raise RequestError(f"steps must be at least 1 and repeats at least 2, got {steps!r} and {repeats!r}")
    start = domain.checked(x)
    kappa = 1 / (lam * mu)
    values = []
    for _ in range(repeats):
        u = {name: t.clone() for name, t in start.items()}
        mean = {name: torch.zeros_like(t) for name, t in u.items()}
        for t in range(1, steps + 1):
            noisy = {name: g.detach().double() for name, g in oracle(u).items()}
            u = domain.step(u, _slope(domain, noisy, u, start, lam), 2 / (mu * (t + 2 + 2 * kappa)))
            share = 2 / (t + 1)
            mean = {name: (1 - share) * mean[name] + share * u[name] for name in u}
        values.append(domain.symmetric(start, mean) / lam**2)
    result = torch.tensor(values, dtype=torch.float64)
    return Estimate(float(result.mean()), float(result.std() / math.sqrt(repeats)), repeats)


def _modulus(lam: float, gamma: float) -> float:
    if not gamma > 0 or not 0 < lam < 1 / gamma:
        raise RequestError(
            f"gamma must be greater than 0 and lam between 0 and 1/gamma, got gamma {gamma!r}, lam {lam!r}"
        )
    return 1 / lam - gamma


def _value_and_gradient(f: Objective, u: Point) -> tuple[float, dict[str, Tensor]]:
    leaves = {name: t.detach().clone().requires_grad_() for name, t in u.items()}
    value = f(leaves)
    grads = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
    filled = {
        name: torch.zeros_like(leaf) if g is None else g for (name, leaf), g in zip(leaves.items(), grads, strict=True)
    }
    number = float(value.detach())
    if not math.isfinite(number) or not all(bool(g.isfinite().all()) for g in filled.values()):
        raise RunError(f"the objective or its gradient is not finite (value {number:g})")
    return number, filled


def _slope(domain: Domain, grad: Point, u: Point, x: Point, lam: float) -> dict[str, Tensor]:
    """The gradient of h at u."""
    return {
        name: grad[name] + (block.slope(u[name]) - block.slope(x[name])) / lam for name, block in domain.blocks.items()
    }


def _gap(domain: Domain, u: Point, slope: Point, mu: float) -> float:
    v = domain.step(u, slope, 1 / mu)
    return max(-domain.inner(slope, domain.minus(v, u)) - mu * domain.divergence(v, u), 0.0)


def _with_certificate(
    domain: Domain, x: Point, u: dict[str, Tensor], gap: float, mu: float, lam: float, steps: int
) -> Proximal:
    # h(u) - h(prox) >= mu D(u || prox), because the prox is the smallest point of h.
    distance = gap / mu
    ranges = [symmetric_range(block, x[name], u[name], distance) for name, block in domain.blocks.items()]
    return Proximal(
        u,
        gap,
        distance,
        domain.symmetric(x, u) / lam**2,
        sum(low for low, _ in ranges) / lam**2,
        sum(high for _, high in ranges) / lam**2,
        steps,
    )
