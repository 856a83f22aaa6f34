"""Theorems 4.1 to 4.3 of Cells as calculators, and as checks on linear cells where both sides can be measured.

Each check gives a `TheoryCheck`: the value measured, the bound beside it, and the assumptions of the proof with their
size here. A bound promises something only where they hold.

The proofs of 4.2 and 4.3 put the widest cell's gradients into the narrowest cell's formula (eq. 4): they assume that
the gradients at the outputs of the two cells agree. That holds for an objective which is linear in the nodes, and
otherwise on special matrices only. Both theorems have a repaired form here, which asks for nothing: it takes the
narrowest cell's own output gradients,

    G_k = (df/dy_k) x^T at the narrowest cell's nodes,   c_ik = prod_{j <= k, j != i} lambda_j,

so that eq. 3 reads grad_i = sum_{k >= i} A_k G_k B with |A_k| |B| <= c_ik. Where the outputs agree, G_k is the widest
cell's gradient of W_k.

Theorem 4.2 as printed needs more than agreement. Its step from (7) to (8) bounds the change of df/dW_k, k > i, by
L_k |W_k - W_k'| = 0; but what moves is W_i, and df/dW_k moves with it unless no node's gradient depends on another
node. So it is printed for objectives that are sums of functions of one node each. The repaired form keeps the terms:

    |grad_i(W_i) - grad_i(W_i')| <= sum_{k >= i} c_ik M_ki |W_i - W_i'|,   M_ki = max |G_k - G_k'| / |W_i - W_i'|.

If the outputs of one example are to agree at every W_i (with invertible matrices behind it), the objective is affine in
every node behind i, and in node i too unless W_{i-1} ... W_1 x is x or -x: the printed theorem then says 0 <= 0. A
check that says more takes pairs of matrices at which the outputs happen to agree.

Theorem 4.3 as printed is right where the outputs agree. Its factor n can be n - i + 1, the number of terms, and by
Minkowski's inequality sqrt(E|sum a_k|^2) <= sum sqrt(E|a_k|^2) the whole can be (sum_k c_ik s_k)^2, which is never
larger; s_k^2 = E|G_k - E G_k|^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nasight.anatomy._theory_cells import Objective, block_gradient, checked, nodes, norms, own_gradients
from nasight.anatomy._theory_check import AGREE, TheoryAssumption, TheoryCheck
from nasight.errors import RequestError

__all__ = [
    "Objective",
    "TheoryAssumption",
    "TheoryCheck",
    "check_cells",
    "check_theorem_41",
    "check_theorem_42",
    "check_theorem_43",
    "nodes",
    "norms",
    "theorem_41",
    "theorem_42",
    "theorem_42_repaired",
    "theorem_43",
    "theorem_43_repaired",
]
NORMS = {"spectral": 2, "frobenius": "fro"}


def theorem_41(*, gap: float, smoothness: float, variance: float, rates: Sequence[float]) -> float:
    """2 (f(w_0) - f*) / H + L sigma^2 / H sum rates^2, H = sum rates: the bound on E|grad f(w_R)|^2.

    R is drawn with probability rate / H among the points where the steps were taken. Needs rates below 1/L.

    >>> round(theorem_41(gap=1.0, smoothness=1.0, variance=2.0, rates=[0.1] * 100), 12)
    0.4
    """
    if not rates or min(rates) <= 0:
        raise RequestError(f"every learning rate must be above 0, got {list(rates)[:5]}")
    if min(gap, smoothness, variance) < 0:
        raise RequestError(f"gap, smoothness and variance are at least 0, got {gap}, {smoothness} and {variance}")
    total = math.fsum(rates)
    return 2 * gap / total + smoothness * variance / total * math.fsum(rate * rate for rate in rates)


def check_theorem_41(hessian: Tensor, start: Tensor, *, variance: float, rates: Sequence[float]) -> TheoryCheck:
    """Theorem 4.1 on f(w) = w^T A w / 2, with noise of this variance spread over all directions, nothing sampled.

    The mean m and the second moment of w follow from w' = (I - rate A) w - rate * noise; E|grad f|^2 = E|A w|^2.
    """
    values, basis = torch.linalg.eigh(hessian.double())
    if float(values[0]) < 0:
        raise RequestError(f"f must have a minimum: the matrix has the eigenvalue {float(values[0]):g}")
    smoothness = float(values[-1])
    square = (basis.T @ start.double()).square()  # E of the squared coordinate along each eigenvector
    gap = float((values * square).sum() / 2)
    gradient = 0.0
    for rate in rates:
        gradient += rate * float((values.square() * square).sum())
        square = (1 - rate * values).square() * square + rate**2 * variance / len(values)
    largest = max(rates) * smoothness
    assumption = TheoryAssumption("every learning rate is below 1/L (largest rate times L)", largest < 1, largest)
    bound = theorem_41(gap=gap, smoothness=smoothness, variance=variance, rates=rates)
    return TheoryCheck("Theorem 4.1", None, gradient / math.fsum(rates), bound, (assumption,))


def theorem_42(lambdas: Sequence[float], constant: float, block: int) -> float:
    """As printed: (prod_{j < i} lambda_j) L_i, the block-wise Lipschitz constant of the narrowest cell's W_i.

    >>> theorem_42([2.0, 3.0, 5.0], 1.0, block=3)
    6.0
    """
    return math.prod(lambdas[: _block(block, len(lambdas)) - 1]) * constant


def theorem_42_repaired(lambdas: Sequence[float], constants: Sequence[float], block: int) -> float:
    """sum_{k >= i} c_ik M_ki; `constants` are M_ki for k = i ... n."""
    return math.fsum(c * m for c, m in zip(_factors(lambdas, block), constants, strict=True))


def theorem_43(lambdas: Sequence[float], deviations: Sequence[float], block: int) -> float:
    """As printed: n sum_{k >= i} (sigma_k c_ik)^2, the gradient variance of the narrowest cell's W_i.

    The product over j <= k divided by lambda_i is written without lambda_i, which may be 0.

    >>> theorem_43([2.0, 3.0], [1.0, 1.0], block=1)
    20.0
    """
    factors = _factors(lambdas, block)
    terms = ((c * s) ** 2 for c, s in zip(factors, deviations[block - 1 :], strict=True))
    return len(lambdas) * math.fsum(terms)


def theorem_43_repaired(lambdas: Sequence[float], deviations: Sequence[float], block: int) -> float:
    """(sum_{k >= i} c_ik s_k)^2: never above the printed form of the same deviations.

    >>> theorem_43_repaired([2.0, 3.0], [1.0, 1.0], block=1)
    16.0
    """
    factors = _factors(lambdas, block)
    return math.fsum(c * s for c, s in zip(factors, deviations[block - 1 :], strict=True)) ** 2


def check_theorem_42(
    weights: Sequence[Tensor],
    x: Tensor,
    objective: Objective,
    *,
    block: int,
    others: Sequence[Tensor],
    norm: str = "spectral",
) -> tuple[TheoryCheck, TheoryCheck]:
    """Theorem 4.2 as printed and repaired, on the pairs of W_i (i = block, from 1) with each of `others`.

    The function is the mean of the objective over the examples. Constants are the largest ratios over these pairs:
    measured from below, for the narrowest cell and for the widest alike, and the theorem holds pair by pair.
    """
    weights, x = checked(weights, x)
    first, lambdas = _block(block, len(weights)) - 1, norms(weights)
    narrow, wide, apart = 0.0, [0.0] * len(weights), 0.0
    own = [0.0] * (len(weights) - first)
    here = _means(weights, x, objective, block)
    for other in others:
        moved = [*weights[:first], other.double(), *weights[first + 1 :]]
        there = _means(moved, x, objective, block)
        step = _norm(other.double() - weights[first], norm)
        if step == 0:
            raise RequestError(f"a pair must be two different matrices of block {block}, got the same one twice")
        apart = max(apart, here.apart, there.apart)
        narrow = max(narrow, _norm(_gradient(moved, there, block) - _gradient(weights, here, block), norm) / step)
        for k in range(len(weights)):
            wide[k] = max(wide[k], _norm(there.wide[k] - here.wide[k], norm) / step)
            if k >= first:
                own[k - first] = max(own[k - first], _norm(there.narrow[k] - here.narrow[k], norm) / step)
    cross = math.fsum(c * m for c, m in zip(_factors(lambdas, block)[1:], wide[first + 1 :], strict=True))
    printed = theorem_42(lambdas, wide[first], block)
    assumptions = (
        _agreement(apart),
        TheoryAssumption(
            "the gradients at the nodes behind do not move with this block (terms left out, over the bound)",
            cross <= AGREE * printed + 1e-12,
            cross / printed if printed else cross,
        ),
    )
    return (
        TheoryCheck("Theorem 4.2", block, narrow, printed, assumptions),
        TheoryCheck("Theorem 4.2, repaired", block, narrow, theorem_42_repaired(lambdas, own, block)),
    )


def check_theorem_43(
    weights: Sequence[Tensor], x: Tensor, objective: Objective, *, block: int, norm: str = "frobenius"
) -> tuple[TheoryCheck, TheoryCheck]:
    """Theorem 4.3 as printed and repaired, on W_i (i = block, from 1), each example with the same weight.

    The norm of a gradient is that of all its entries, as in `gradient_variance`; the paper's is "spectral".
    """
    weights, x = checked(weights, x)
    lambdas = norms(weights)
    wide, narrow = (own_gradients(weights, x, objective, cell) for cell in ("widest", "narrowest"))
    value = _variance(block_gradient(weights, narrow, _block(block, len(weights))), norm)
    deviations = [[math.sqrt(_variance(g[:, k], norm)) for k in range(len(weights))] for g in (wide, narrow)]
    assumptions = (_agreement(_apart(wide, narrow, block)),)
    return (
        TheoryCheck("Theorem 4.3", block, value, theorem_43(lambdas, deviations[0], block), assumptions),
        TheoryCheck("Theorem 4.3, repaired", block, value, theorem_43_repaired(lambdas, deviations[1], block)),
    )


def check_cells(
    weights: Sequence[Tensor],
    x: Tensor,
    objective: Objective,
    *,
    generator: torch.Generator,
    pairs: int = 8,
    radius: float = 1.0,
    norm: str = "frobenius",
) -> list[TheoryCheck]:
    """Both theorems, as printed and repaired, on every block; pairs are W_i and W_i + `radius` x a random matrix.

    >>> weights = [torch.eye(2), 2 * torch.eye(2)]
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> checks = check_cells(weights, x, lambda z: z.sum((1, 2)), generator=torch.Generator().manual_seed(0))
    >>> [(c.name, c.block, c.holds, c.violated) for c in checks if c.block == 2 and "4.3" in c.name]
    [('Theorem 4.3', 2, True, False), ('Theorem 4.3, repaired', 2, True, False)]
    """
    found: list[TheoryCheck] = []
    for block, w in enumerate(weights, 1):
        noise = (torch.randn(w.shape, generator=generator, dtype=torch.float64) for _ in range(pairs))
        others = [w.double() + radius * step for step in noise]
        found += check_theorem_42(weights, x, objective, block=block, others=others, norm=norm)
        found += check_theorem_43(weights, x, objective, block=block, norm=norm)
    return found


class _Means(NamedTuple):
    wide: Tensor  # (n, d, d)
    narrow: Tensor
    apart: float


def _means(weights: Sequence[Tensor], x: Tensor, objective: Objective, block: int) -> _Means:
    wide, narrow = (own_gradients(weights, x, objective, cell) for cell in ("widest", "narrowest"))
    return _Means(wide.mean(0), narrow.mean(0), _apart(wide, narrow, block))


def _gradient(weights: Sequence[Tensor], means: _Means, block: int) -> Tensor:
    return block_gradient(weights, means.narrow[None], block)[0]


def _apart(wide: Tensor, narrow: Tensor, block: int) -> float:
    """How far the output gradients differ, over the larger of them; nodes before the block do not matter."""
    wide, narrow = wide[:, block - 1 :], narrow[:, block - 1 :]
    size = max(float(wide.abs().max()), float(narrow.abs().max()))
    return float((wide - narrow).abs().max()) / size if size else 0.0


def _agreement(apart: float) -> TheoryAssumption:
    return TheoryAssumption(
        "the output gradients of both cells agree (largest relative difference)", apart <= AGREE, apart
    )


def _factors(lambdas: Sequence[float], block: int) -> list[float]:
    """c_ik for k = i ... n."""
    _block(block, len(lambdas))
    return [math.prod(v for j, v in enumerate(lambdas[:k], 1) if j != block) for k in range(block, len(lambdas) + 1)]


def _variance(gradients: Tensor, norm: str) -> float:
    """E|g - E g|^2 over the examples, (m, d, d)."""
    centered = gradients - gradients.mean(0)
    return float(torch.linalg.matrix_norm(centered, ord=_order(norm)).square().mean())


def _norm(matrix: Tensor, norm: str) -> float:
    return float(torch.linalg.matrix_norm(matrix, ord=_order(norm)))


def _order(norm: str) -> Any:
    if norm not in NORMS:
        raise RequestError(f"a norm is {' or '.join(NORMS)}, got {norm!r}")
    return NORMS[norm]


def _block(block: int, blocks: int) -> int:
    if not 1 <= block <= blocks:
        raise RequestError(f"a block is 1 to {blocks}, got {block}")
    return block
