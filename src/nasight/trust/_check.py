"""The theorems on arg max over simplex weights, in their own setting (Simplex, Section 4).

Options f_1 ... f_h with shared weights, a mixture f_alpha = sum_i alpha_i f_i, and L(f, g) = E[(f - g)^2] / 2. Lemma 5
writes the mixture as alpha_i f_i + (1 - alpha_i) mix_i, where mix_i has the weights gamma_k = alpha_k / (1 - alpha_i).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUNDING = 1e-12
"""Losses closer than this share of their scale are equal; the premise asks for twice as much as the condition forgives,
so that rounding never proves what is not so."""
REALIZED = 1e-10
"""A residual below this share of the largest loss is rounding (of single precision, too)."""


@dataclass(frozen=True)
class Assumption:
    """Whether an assumption holds, by how much it does or does not, and what that number is."""

    holds: bool
    size: float
    says: str


@dataclass(frozen=True)
class Assumptions:
    """The three assumptions of the paper, measured."""

    total_order: Assumption
    interior: Assumption
    realizability: Assumption

    @property
    def hold(self) -> bool:
        return all(each.holds for _, each in self)

    def __iter__(self) -> Iterator[tuple[str, Assumption]]:
        return iter(vars(self).items())

    def to_dict(self) -> dict[str, Any]:
        return {name: dict(vars(each)) for name, each in self}


@dataclass(frozen=True)
class Check:
    """What the theorems say of these options.

    `losses` (h,): L(f_i, y). `mixture_losses` (h,): L(f_i, mix_i); NaN where alpha_i is 1 and no mixture is left.
    `pair_losses` (h, h): L(f_i, f_j). `condition` (h, h): whether L(f_i, mix_i) >= L(f_j, mix_j), which is Condition 3
    at h = 3 and Condition 6 beyond, and is always so at h = 2. `undecidable` (h, h): f_i and f_j coincide, or f_i
    coincides with its own mixture, so that the ratio in the proof has no denominator; the condition is then False.
    `concludes` (h, h): the theorem proves alpha_j < alpha_i, because its assumptions hold, L(f_i) < L(f_j), and
    the condition does. Of the total order a conclusion uses what the proof uses: that of its own pair.
    """

    theorem: str
    losses: Array
    mixture_losses: Array
    pair_losses: Array
    condition: Mask
    undecidable: Mask
    concludes: Mask
    assumptions: Assumptions
    weights: Array

    @property
    def chosen(self) -> int:
        """The arg max of the weights."""
        return int(self.weights.argmax())

    @property
    def best(self) -> int:
        """The option with the least loss under the shared weights."""
        return int(self.losses.argmin())

    def to_dict(self) -> dict[str, Any]:
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        lists = {name: [_plain(v) for v in value.tolist()] for name, value in arrays.items()}
        shown: dict[str, Any] = {"theorem": self.theorem, "chosen": self.chosen, "best": self.best, **lists}
        return {**shown, "assumptions": self.assumptions.to_dict()}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def check(outputs: Any, weights: Any, targets: Any) -> Check:
    """Losses, factorizations, conditions and conclusions of Theorems 1, 4 and 7 for all pairs of options.

    Parameters
    ----------
    outputs : (h, n), f_i(x) of every option on every example; NumPy arrays or torch tensors, as the others.
    weights : (h,), on the simplex.
    targets : (n,), y.

    Examples
    --------
    >>> f = [[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]
    >>> found = check(f, [0.7, 0.3], [0.7, 0.3, 1.4])
    >>> found.theorem, found.concludes.tolist()
    ('Theorem 1', [[False, True], [False, False]])
    """
    f, alpha, y = read(outputs, weights, targets)
    h = len(alpha)
    losses = half_mean_square(f - y)
    mixtures = half_mean_square(f - f_mixtures(f, alpha))
    pairs = pair_losses(f, y)
    scale = magnitude(f, y)
    undecidable = coinciding(pairs, mixtures, scale)
    condition = (mixtures[:, None] - mixtures[None, :] >= -ROUNDING * scale) & ~undecidable
    mixture = alpha @ f
    # What rounding left of a residual must not decide a pair.
    cross = (f - mixture) @ (y - mixture) / len(y)
    ordered = losses[None, :] - losses[:, None] > 2 * ROUNDING * scale + np.abs(cross[:, None] - cross[None, :])
    assumptions = _assumptions(losses, alpha, float(half_mean_square(y - mixture)), scale)
    # Theorem 1 does not need Assumption 2.
    inside = assumptions.interior.holds or h == 2
    concludes = ordered & condition & (inside and assumptions.realizability.holds)
    theorem = {2: "Theorem 1", 3: "Theorem 4"}.get(h, "Theorem 7")
    return Check(theorem, losses, mixtures, pairs, condition, undecidable, concludes, assumptions, alpha)


def factor(weights: Any, i: int) -> tuple[float, Array]:
    """(1 - alpha_i, gamma) with alpha_k = (1 - alpha_i) gamma_k for every k but i (Lemma 2 at h = 3, Lemma 5).

    >>> rest, gamma = factor([0.5, 0.3, 0.2], 0)
    >>> rest, gamma.tolist()
    (0.5, [0.6, 0.4])
    """
    alpha = read_weights(weights)
    others = np.delete(alpha, i)
    rest = float(others.sum())
    if rest == 0:
        raise RequestError(f"weight {i} is 1: there is no mixture of the other options to factor out")
    return rest, others / rest


def f_mixtures(f: Array, alpha: Array) -> Array:
    """mix_i of every option, (h, n), from gamma itself: 1 - alpha_i in a difference would lose its digits."""
    h = len(alpha)
    if h == 2:
        return f[::-1]
    gamma = np.tile(alpha, (h, 1))
    np.fill_diagonal(gamma, 0.0)
    rest = gamma.sum(1, keepdims=True)
    gamma = np.divide(gamma, rest, out=np.full_like(gamma, np.nan), where=rest > 0)
    found: Array = gamma @ f
    return found


def pair_losses(f: Array, y: Array) -> Array:
    """L(f_i, f_j), (h, h), from the Gram matrix of f_i - y."""
    z = f - y
    gram = z @ z.T / z.shape[1]
    squares = gram.diagonal()
    found: Array = np.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0.0) / 2
    np.fill_diagonal(found, 0.0)
    return found


def half_mean_square(z: Array) -> Array:
    """E[z^2] / 2 over the last axis."""
    found: Array = np.asarray(np.einsum("...n,...n->...", z, z) / (2 * z.shape[-1]))
    return found


def magnitude(f: Array, y: Array) -> float:
    """The size in whose proportion rounding is measured."""
    return float(max(half_mean_square(f).max(), half_mean_square(y), np.finfo(float).tiny))


def coinciding(pairs: Array, mixtures: Array, scale: float) -> Mask:
    """(h, h): f_i = f_j, or f_i = mix_i, up to rounding; the diagonal is no pair."""
    same = pairs <= ROUNDING * scale
    found = same | ~(mixtures > ROUNDING * scale)[:, None]
    np.fill_diagonal(found, True)
    return found


def _assumptions(losses: Array, alpha: Array, residual: float, scale: float) -> Assumptions:
    ladder = np.concatenate([[residual], np.sort(losses)])
    gaps = np.diff(ladder)
    smallest, ties = float(gaps.min()), int((gaps <= 2 * ROUNDING * scale).sum())
    said = f"{ties} tie{'s' if ties != 1 else ''}, " if ties else ""
    share = residual / max(float(losses.max()), np.finfo(float).tiny)
    realized = residual <= REALIZED * float(losses.max()) or residual <= ROUNDING * scale
    boundary = int((alpha <= 0).sum())
    return Assumptions(
        Assumption(ties == 0, smallest, f"{said}the smallest step of L(f_alpha) < L(f_(1)) < ... is {smallest:.3g}"),
        Assumption(
            boundary == 0,
            float(alpha.min()),
            f"{boundary} weights are zero" if boundary else f"the smallest weight is {alpha.min():.3g}",
        ),
        Assumption(realized, residual, f"L(f_alpha) is {residual:.3g}, {share:.2g} of the largest loss"),
    )


def read(outputs: Any, weights: Any, targets: Any) -> tuple[Array, Array, Array]:
    """The arguments as arrays of doubles, checked."""
    f, y, alpha = _array("outputs", outputs, 2), _array("targets", targets, 1), read_weights(weights)
    if f.shape[0] != len(alpha):
        raise RequestError(f"outputs have {f.shape[0]} rows but there are {len(alpha)} weights: one row an option")
    if f.shape[1] != len(y):
        raise RequestError(f"outputs have {f.shape[1]} columns but there are {len(y)} targets: one column an example")
    return f, alpha, y


def read_weights(weights: Any) -> Array:
    """Weights on the simplex; what single precision leaves of their sum is divided away."""
    alpha = _array("weights", weights, 1)
    if len(alpha) < 2:
        raise RequestError(f"there must be at least 2 options to choose from, got {len(alpha)}")
    if alpha.min() < 0:
        raise RequestError(f"weights must not be negative, got {alpha.min():g}")
    if abs(alpha.sum() - 1) > 1e-5:
        raise RequestError(f"weights must sum to 1, got a sum of {alpha.sum():g}")
    normal: Array = alpha / alpha.sum()
    return normal


def _array(name: str, value: Any, dimensions: int) -> Array:
    shape = "(options, examples)" if dimensions == 2 else "(options,)" if name == "weights" else "(examples,)"
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise RequestError(f"{name} must be numbers of shape {shape}, got {type(value).__name__}") from None
    if array.ndim != dimensions or array.size == 0:
        raise RequestError(f"{name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i[0]) for i in np.nonzero(~np.isfinite(array)))
        raise RequestError(f"{name} must be finite, got {array[where]} at {where if dimensions == 2 else where[0]}")
    return array
