"""Theorems 1 and 2 and Corollary 1 of GAEA: how many steps are enough, as printed and repaired."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from nasight.errors import RequestError
from nasight.geometry._theory_domain import Domain, Point
from nasight.geometry._theory_prox import Oracle

FORMS = ("repaired", "printed")


@dataclass(frozen=True)
class Iterations:
    """The steps, at a constant learning rate `lr`, that a `form` of a theorem says are enough for its epsilon."""

    steps: int
    lr: float
    form: str


def theorem_1(
    gamma: float, initial: float, g_w: float, g_theta: float, *, epsilon: float, form: str = "repaired"
) -> Iterations:
    """Theorem 1: steps and learning rate for shared weights and architecture parameters.

    Printed: T = 16 gamma F (G_w^2 + G_theta^2) / epsilon^2. That does not follow from Theorem 2; repaired it is twice
    as many, T = 32 gamma F (G_w^2 + G_theta^2) / epsilon^2, with a learning rate sqrt(2) times smaller at the same T.

    Parameters
    ----------
    gamma : the weak convexity of f relative to the potential.
    initial : F, the value of f at the start; f is never below 0.
    g_w, g_theta : bounds on the gradients; see `gradient_sizes`.
    epsilon : the stationarity to reach.
    form : "repaired" or "printed".

    >>> [theorem_1(1.0, 2.0, 1.0, 1.0, epsilon=0.5, form=form).steps for form in ("repaired", "printed")]
    [512, 256]
    """
    return corollary_1(gamma, initial, math.hypot(g_w, g_theta), blocks=2, epsilon=epsilon, form=form)


def corollary_1(
    gamma: float, drop: float, size: float, *, blocks: int, epsilon: float, form: str = "repaired"
) -> Iterations:
    """Corollary 1: steps and learning rate for any number of blocks.

    Printed: T = 8 gamma b L^2 drop / epsilon^2 with the learning rate sqrt(2 b drop / (gamma L^2 T)). Repaired:
    T = 16 gamma b L^2 drop / epsilon^2 with the learning rate sqrt(b drop / (gamma L^2 T)), the best in Theorem 2.

    Parameters
    ----------
    gamma : the weak convexity of f relative to the potential.
    drop : f at the start less the smallest f.
    size : L, the root of sum_i L_i^2 over the gradient bounds of the blocks.
    blocks : b, how many there are.
    epsilon : the stationarity to reach.
    form : "repaired" or "printed".

    >>> corollary_1(1.0, 2.0, 1.0, blocks=1, epsilon=0.5).steps
    128
    """
    _check(gamma, drop, size, blocks, form, epsilon=epsilon)
    steps = math.ceil((16 if form == "repaired" else 8) * gamma * blocks * size**2 * drop / epsilon**2 - 1e-9)
    steps = max(steps, 1)
    return Iterations(steps, best_rate(gamma, drop, size, blocks=blocks, steps=steps, form=form), form)


def best_rate(gamma: float, drop: float, size: float, *, blocks: int, steps: int, form: str = "repaired") -> float:
    """The constant learning rate for this many steps: sqrt(b drop / (gamma L^2 T)); printed, sqrt(2) times as large.

    The parameters are those of `corollary_1`, and `steps` is T.

    >>> best_rate(1.0, 4.0, 1.0, blocks=1, steps=100)
    0.2
    """
    _check(gamma, drop, size, blocks, form, steps=steps)
    return math.sqrt((1 if form == "repaired" else 2) * blocks * drop / (gamma * size**2 * steps))


def corollary_1_bound(
    gamma: float, drop: float, size: float, *, blocks: int, steps: int, form: str = "repaired"
) -> float:
    """The most that the mean of Delta_{1/(2 gamma)} is after T steps at the best rate: 4 L sqrt(b gamma drop / T).

    Printed: 2 L sqrt(2 b gamma drop / T), which is sqrt(2) times smaller and less than Theorem 2 gives at any rate.
    The parameters are those of `corollary_1`, and `steps` is T.

    >>> corollary_1_bound(1.0, 4.0, 1.0, blocks=1, steps=100)
    0.8
    """
    _check(gamma, drop, size, blocks, form, steps=steps)
    root = size * math.sqrt(blocks * gamma * drop / steps)
    return (4 if form == "repaired" else 2 * math.sqrt(2)) * root


def theorem_2_bound(
    gamma: float, drop: float, size: float, rates: Sequence[float], *, blocks: int, gamma_hat: float | None = None
) -> float:
    """Theorem 2: the bound of the mean of Delta_{1/gamma_hat} at the iterate drawn with chances as the learning rates.

    Parameters
    ----------
    gamma, size, blocks : as in `corollary_1`.
    drop : min_u f(u) + gamma_hat D(u || start) - f*, or the larger f(start) - f*.
    rates : the learning rate of each step; they must not increase.
    gamma_hat : 2 gamma by default.

    >>> round(theorem_2_bound(1.0, 4.0, 1.0, [0.2] * 100, blocks=1), 6)
    0.8
    """
    _check(gamma, drop, size, blocks, "repaired", steps=len(rates))
    gamma_hat = 2 * gamma if gamma_hat is None else gamma_hat
    if not gamma_hat > gamma:
        raise RequestError(f"gamma_hat must be greater than gamma = {gamma!r}, got {gamma_hat!r}")
    if any(b > a for a, b in pairwise(rates)) or not rates[-1] > 0:
        raise RequestError("the rates of theorem 2 must be positive and must not increase")
    squares = gamma_hat * size**2 / (2 * blocks) * sum(rate**2 for rate in rates)
    return gamma_hat * blocks / (gamma_hat - gamma) * (drop + squares) / sum(rates)


def block_descent(
    domain: Domain, oracle: Oracle, start: Point, *, lr: float, steps: int, generator: torch.Generator
) -> Iterator[dict[str, Tensor]]:
    """The iterates x(1), ..., x(T) of block-stochastic mirror descent (GAEA, algorithm 2).

    Every step moves one block, drawn uniformly. The theorems speak of an iterate drawn from these, so of
    the mean of their stationarity.

    Parameters
    ----------
    domain : the blocks of variables.
    oracle : from a point to a gradient there, which may be noisy.
    start : x(1).
    lr : learning rate.
    steps : T.
    generator : draws the blocks.

    >>> from nasight.geometry.theory import FREE
    >>> start, generator = {"w": torch.ones(1)}, torch.Generator().manual_seed(0)
    >>> path = block_descent(Domain({"w": FREE}), lambda x: x, start, lr=0.5, steps=3, generator=generator)
    >>> [float(x["w"]) for x in path]
    [1.0, 0.5, 0.25]
    """
    if not lr > 0 or steps < 1:
        raise RequestError(f"lr must be greater than 0 and steps at least 1, got {lr!r} and {steps!r}")
    x, names = domain.checked(start), list(domain.blocks)
    for _ in range(steps):
        yield x
        name = names[int(torch.randint(len(names), (), generator=generator))]
        x = {**x, name: domain.blocks[name].step(x[name], oracle(x)[name], lr)}


def _check(
    gamma: float, drop: float, size: float, blocks: int, form: str, *, epsilon: float = 1.0, steps: int = 1
) -> None:
    for name, value in (("gamma", gamma), ("the drop of f", drop), ("the gradient bound", size), ("epsilon", epsilon)):
        if not 0 < value < math.inf:
            raise RequestError(f"{name} must be greater than 0 and finite, got {value!r}")
    if blocks < 1 or steps < 1:
        raise RequestError(f"blocks and steps must be at least 1, got {blocks!r} and {steps!r}")
    if form not in FORMS:
        raise RequestError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
