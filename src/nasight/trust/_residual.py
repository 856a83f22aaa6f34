"""What survives without realizability: y = f_alpha + r (docs/trust.md has the proposition and its proof).

L(f_i) = (1 - alpha_i)^2 L(f_i, mix_i) - E[(f_i - f_alpha) r] + L(r),      L(r) = E[r^2] / 2 = L(f_alpha)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasight.errors import RequestError
from nasight.trust._check import (
    ROUNDING,
    Array,
    Mask,
    coinciding,
    f_mixtures,
    half_mean_square,
    magnitude,
    pair_losses,
    read,
)

BLOCK = 50
"""Resamples whose counts are in memory at once."""


@dataclass(frozen=True)
class ResidualCheck:
    """What can be said of a pair when the mixture does not fit the targets.

    `cross` (h,): E[(f_i - f_alpha) r]. It is zero where alpha minimizes L(f_alpha) over the simplex without touching
    its boundary, however large the residual is; `slope` = max_ij E[(f_i - f_j) r] says how far from that alpha is.
    `condition` (h, h): L(f_i, mix_i) >= L(f_j, mix_j) + E[(f_i - f_j) r] / (1 - alpha_j)^2.
    `condition_by_size` (h, h): the same with 2 sqrt(L(f_i, f_j) L(r)) for the cross term, which needs the residual's
    size only. `concludes` (h, h): L(f_i) < L(f_j) and the condition, which proves alpha_j < alpha_i.
    `confidence` (h, h): the share of bootstrap resamples of the examples in which that is so; `at_level` (h, h):
    it is at least `level`. `best_confidence`: the share in which the arg max of the weights has the least loss.
    """

    losses: Array
    mixture_losses: Array
    residual: float
    cross: Array
    slope: float
    condition: Mask
    condition_by_size: Mask
    concludes: Mask
    confidence: Array
    at_level: Mask
    best_confidence: float
    level: float


def without_realizability(
    outputs: Any, weights: Any, targets: Any, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> ResidualCheck:
    """The proposition for all pairs, measured on these examples and bootstrapped over them.

    >>> f = [[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
    >>> found = without_realizability(f, [0.7, 0.3], [0.6, 0.4, 1.4, 1.1])
    >>> found.concludes.tolist(), round(found.residual, 3)
    ([[False, True], [False, False]], 0.004)
    """
    if not 0 < level < 1:
        raise RequestError(f"level must be between 0 and 1, got {level!r}")
    if resamples < 1:
        raise RequestError(f"there must be at least 1 resample, got {resamples!r}")
    f, alpha, y = read(outputs, weights, targets)
    mixture = alpha @ f
    r = y - mixture
    rest = np.array([np.delete(alpha, i).sum() for i in range(len(alpha))])
    scale = magnitude(f, y)
    pairs = pair_losses(f, y)
    rows = np.concatenate([(f - y) ** 2 / 2, (f - f_mixtures(f, alpha)) ** 2 / 2, (f - mixture) * r])  # (3h, n)
    losses, mixtures, cross = np.split(rows.mean(1), 3)
    undecidable = coinciding(pairs, mixtures, scale)
    residual = float(half_mean_square(r))
    condition = _condition(mixtures, cross, rest, scale) & ~undecidable
    by_size = _at_least(mixtures, 2 * np.sqrt(pairs * residual), rest, scale) & ~undecidable
    concludes = condition & _ordered(losses, scale)
    held, best = np.zeros_like(pairs), 0.0
    for means in _resampled(rows, resamples, np.random.default_rng(seed)):
        losses_b, mixtures_b, cross_b = np.split(means, 3, axis=1)
        held += (_condition(mixtures_b, cross_b, rest, scale) & _ordered(losses_b, scale)).sum(0)
        best += float((losses_b.argmin(1) == alpha.argmax()).sum())
    confidence = np.where(undecidable, 0.0, held / resamples)
    return ResidualCheck(
        losses,
        mixtures,
        residual,
        cross,
        float(cross.max() - cross.min()),
        condition,
        by_size,
        concludes,
        confidence,
        (confidence >= level) & concludes,
        best / resamples,
        level,
    )


def _condition(mixtures: Array, cross: Array, rest: Array, scale: float) -> Mask:
    return _at_least(mixtures, cross[..., :, None] - cross[..., None, :], rest, scale)


def _at_least(mixtures: Array, more: Array, rest: Array, scale: float) -> Mask:
    """L(f_i, mix_i) >= L(f_j, mix_j) + more_ij / (1 - alpha_j)^2, times (1 - alpha_j)^2: nothing is divided."""
    apart = mixtures[..., :, None] - mixtures[..., None, :]
    found: Mask = rest**2 * apart - more >= -ROUNDING * scale
    return found


def _ordered(losses: Array, scale: float) -> Mask:
    found: Mask = losses[..., None, :] - losses[..., :, None] > 2 * ROUNDING * scale
    return found


def _resampled(rows: Array, resamples: int, generator: np.random.Generator) -> Iterator[Array]:
    """Means of the rows over resampled examples, (resamples, rows) in blocks: a resample gives every example another
    weight and nothing else, so a block is one matrix product."""
    n = rows.shape[1]
    for first in range(0, resamples, BLOCK):
        counts = np.empty((min(BLOCK, resamples - first), n))
        for row in counts:
            row[:] = np.bincount(generator.integers(n, size=n), minlength=n)
        yield counts @ rows.T / n
