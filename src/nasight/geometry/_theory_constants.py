"""The constants of the theorems, estimated from gradients: gamma, G_w, G_theta in both norms."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from nasight.errors import RequestError
from nasight.geometry._theory_domain import Domain, Point
from nasight.geometry._theory_prox import Oracle

DENSE = 128
"""Up to this many variables the curvature is a matrix; with more, Lanczos iterations find its smallest eigenvalue."""


@dataclass(frozen=True)
class GradientSizes:
    """G_w and G_theta of a sequence of gradients: roots of the largest mean square of a window.

    `l2` is G_theta for gradient descent (l2, its own dual), `linf` for exponentiated gradient: sqrt(sum over
    rows of the largest entry squared), the dual of the norm in which the entropy is 1-strongly convex. `printed` is the
    larger sqrt(|E|) * largest entry of all that GAEA's section 3 uses. `factor` is l2^2 / linf^2, at most `options`.
    """

    w: float
    l2: float
    linf: float
    printed: float
    factor: float
    options: int
    count: int


def gradient_sizes(domain: Domain, gradients: Iterable[Point], *, window: int = 32) -> GradientSizes:
    """The gradient bounds of Assumption 1 as a run shows them.

    They bound the mean square of a stochastic gradient at every point; from one gradient per step, the largest mean
    over a window of steps in a row stands for it. `factor` compares sums over the whole run; |O| times is the most it
    can be, 1 the least.

    Parameters
    ----------
    domain : the blocks of variables.
    gradients : one per step, with a tensor per block.
    window : steps in a row; all, if there are fewer.

    >>> from nasight.geometry.theory import FREE, Block
    >>> domain = Domain({"w": FREE, "theta": Block()})
    >>> sizes = gradient_sizes(domain, [{"w": torch.ones(4), "theta": torch.tensor([[3.0, 4.0]])}])
    >>> sizes.w, sizes.l2, sizes.linf
    (2.0, 5.0, 4.0)
    """
    if window < 1:
        raise RequestError(f"window must be at least 1, got {window!r}")
    recent: deque[Tensor] = deque(maxlen=window)
    best = total = torch.zeros(4, dtype=torch.float64)
    count = options = 0
    for gradient in gradients:
        square, longest = _squares(domain, gradient)
        options = max(options, longest)
        recent.append(square)
        total = total + square
        count += 1
        if len(recent) == window:
            best = torch.maximum(best, torch.stack(list(recent)).mean(0))
    if not count:
        raise RequestError("sizes need at least one gradient, got none")
    if count < window:
        best = total / count
    w, l2, linf, printed = best.sqrt().tolist()
    factor = float(total[1] / total[2]) if total[2] > 0 else math.nan
    return GradientSizes(w, l2, linf, printed, factor, options, count)


def _squares(domain: Domain, gradient: Point) -> tuple[Tensor, int]:
    """Squared norms of one gradient: of the free blocks; of the simplices in l2, by rows, and as printed."""
    w = l2 = rows = 0.0
    entry, number, longest = 0.0, 0, 0
    for name, block in domain.blocks.items():
        g = gradient[name].detach().double()
        if not g.isfinite().all():
            raise RequestError(f"a gradient of block {name!r} is not finite")
        if not block.simplex:
            w += float(g.square().sum())
            continue
        l2 += float(g.square().sum())
        rows += sum(float(row.abs().amax(-1).square().sum()) for row in block.split(g))
        entry, number = max(entry, float(g.abs().max())), number + block.rows(g)
        longest = max(longest, *(row.shape[-1] for row in block.split(g)))
    return torch.tensor([w, l2, rows, number * entry**2], dtype=torch.float64), longest


def gamma_from_pairs(domain: Domain, points: Sequence[Point], gradients: Sequence[Point]) -> float:
    """A lower bound of gamma from a run: no smaller gamma makes f + gamma phi convex between these points.

    Convexity asks <f'(x) - f'(y), x - y> + gamma (D(x || y) + D(y || x)) >= 0 of every pair; here, of every two
    neighbors. With noisy gradients it is an estimate, and the noise shows in it. 0 if nothing curves downwards.

    Parameters
    ----------
    domain : the blocks of variables.
    points : the points that a run visited, in order.
    gradients : the gradient at each of them.

    >>> from nasight.geometry.theory import FREE
    >>> points = [{"w": torch.zeros(2)}, {"w": torch.ones(2)}]
    >>> gamma_from_pairs(Domain({"w": FREE}), points, [{"w": -3 * point["w"]} for point in points])
    3.0
    """
    if len(points) != len(gradients) or len(points) < 2:
        raise RequestError(f"gamma needs at least 2 points and a gradient each, got {len(points)} and {len(gradients)}")
    found = 0.0
    checked = [domain.checked(point) for point in points]
    for (x, y), (gx, gy) in zip(pairwise(checked), pairwise(gradients), strict=True):
        apart = domain.symmetric(x, y)
        if 0 < apart < math.inf:
            found = max(found, -domain.inner(domain.minus(gx, gy), domain.minus(x, y)) / apart)
    return found


def gamma_at(domain: Domain, gradient: Oracle, x: Point, *, spacing: float = 1e-4, seed: int = 0) -> float:
    """The smallest gamma for which f + gamma phi is convex at x, by the curvature along the domain; 0 if f is.

    It is minus the smallest eigenvalue of S f'' S on the domain's directions, S the square root of the potential's
    inverse second derivative: diag(theta) for the entropy. Second derivatives are central differences of `gradient`,
    which must not be noisy (a fixed batch). gamma is at least the largest value over all points.

    Parameters
    ----------
    domain : the blocks of variables.
    gradient : from a point to the gradient of f there.
    x : the point.
    spacing : of the differences.
    seed : where the search for the smallest eigenvalue starts, if there are many variables.

    >>> from nasight.geometry.theory import FREE
    >>> round(gamma_at(Domain({"w": FREE}), lambda x: {"w": -3 * x["w"]}, {"w": torch.zeros(2)}), 6)
    3.0
    """
    x = domain.checked(x)
    metric = {name: block.metric(x[name]) for name, block in domain.blocks.items()}
    shapes = {name: t.shape for name, t in x.items()}
    size = sum(t.numel() for t in x.values())

    def tangent(v: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: block.tangent(v[name], metric[name]) for name, block in domain.blocks.items()}

    def curve(flat: Tensor) -> Tensor:
        pieces = torch.split(flat, [shape.numel() for shape in shapes.values()])
        v = tangent({name: p.reshape(shape) for (name, shape), p in zip(shapes.items(), pieces, strict=True)})
        ahead, behind = (
            gradient({name: x[name] + sign * spacing * metric[name] * v[name] for name in v}) for sign in (1, -1)
        )
        bent = {name: metric[name] * (ahead[name] - behind[name]).detach().double() / (2 * spacing) for name in v}
        return torch.cat([t.reshape(-1) for t in tangent(bent).values()])

    return max(-_smallest(curve, size, seed), 0.0)


def _smallest(curve: Callable[[Tensor], Tensor], size: int, seed: int) -> float:
    """The smallest eigenvalue of a symmetric map."""
    if size <= DENSE:
        matrix = torch.stack([curve(column) for column in torch.eye(size, dtype=torch.float64)])
        return float(torch.linalg.eigvalsh((matrix + matrix.T) / 2)[0])
    import numpy as np
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator(
        (size, size), matvec=lambda v: curve(torch.from_numpy(v.reshape(-1))).numpy(), dtype=float
    )
    start = np.random.default_rng(seed).normal(size=size)
    return float(eigsh(operator, k=1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False)[0])
