"""The domain of mirror descent: blocks of variables, each with its distance-generating function (GAEA, appendix B)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from nasight.errors import RequestError
from nasight.geometry._potentials import Euclidean, NegativeEntropy, Potential, bregman
from nasight.geometry._rows import Sizes, map_rows

Point = Mapping[str, Tensor]
"""One tensor per block."""


@dataclass(frozen=True)
class Block:
    """One block of variables: a stack of simplices under a potential or, with `simplex=False`, all of R^d.

    Rows are the last dimension; with `sizes` the tensor is flat and holds rows of these lengths, one behind the
    other. Without the simplex the potential is half the squared l2 norm.

    >>> Block().divergence(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.9, 0.1]]))
    tensor(0.5108)
    """

    potential: Potential = field(default_factory=NegativeEntropy)
    simplex: bool = True
    sizes: Sizes | None = None

    def __post_init__(self) -> None:
        if not self.simplex and not isinstance(self.potential, Euclidean):
            raise RequestError(f"a block without a simplex takes the Euclidean potential, got {self.potential!r}")

    def divergence(self, x: Tensor, y: Tensor) -> Tensor:
        """D(x || y), summed over the rows."""
        if not self.simplex:
            return (x - y).square().sum() / 2
        pairs = zip(self.split(x), self.split(y), strict=True)
        return torch.stack([bregman(self.potential, a, b).sum() for a, b in pairs]).sum()

    def slope(self, x: Tensor) -> Tensor:
        """The potential's gradient, 0 where it is infinite: such a weight is 0, and no step of a solver moves it."""
        return torch.nan_to_num(self.potential.gradient(x), nan=0.0, posinf=0.0, neginf=0.0)

    def step(self, x: Tensor, grad: Tensor, lr: float) -> Tensor:
        """argmin over u in the block of lr * <grad, u> + D(u || x) (GAEA, algorithm 2)."""
        if not self.simplex:
            return x - lr * grad
        return map_rows(lambda a, g: self.potential.mirror_step(a, g, lr), self.sizes, x, grad)

    def metric(self, x: Tensor) -> Tensor:
        """The square root of the inverse of the potential's second derivative, element by element."""
        if isinstance(self.potential, NegativeEntropy):
            return x.sqrt()
        if isinstance(self.potential, Euclidean):
            return torch.ones_like(x)
        raise RequestError(f"the second derivative of {type(self.potential).__name__} is not known here")

    def tangent(self, v: Tensor, metric: Tensor) -> Tensor:
        """`v` less its part across the simplex, where metric * v would change the sum of a row."""
        if not self.simplex:
            return v

        def rows(v: Tensor, m: Tensor) -> Tensor:
            return v - m * (m * v).sum(-1, keepdim=True) / m.square().sum(-1, keepdim=True)

        return map_rows(rows, self.sizes, v, metric)

    def split(self, x: Tensor) -> list[Tensor]:
        """The rows of a ragged block one by one, or the whole stack."""
        return [x] if self.sizes is None else list(torch.split(x, list(self.sizes)))

    def rows(self, x: Tensor) -> int:
        """How many simplices a tensor of this block holds."""
        return len(self.sizes) if self.sizes is not None else x.numel() // x.shape[-1]


FREE = Block(Euclidean(), simplex=False)
"""Shared weights: R^d with half the squared l2 norm."""


@dataclass(frozen=True)
class Domain:
    """A product of blocks; the potential is the sum of theirs.

    >>> domain = Domain({"w": FREE, "theta": Block()})
    >>> x = {"w": torch.tensor([1.0, 0.0]), "theta": torch.tensor([[0.5, 0.5]])}
    >>> y = {"w": torch.tensor([0.0, 0.0]), "theta": torch.tensor([[0.9, 0.1]])}
    >>> round(domain.divergence(x, y), 4)
    1.0108
    """

    blocks: Mapping[str, Block]

    def __post_init__(self) -> None:
        if not self.blocks:
            raise RequestError("a domain has at least one block, got none")

    def divergence(self, x: Point, y: Point) -> float:
        """D(x || y); infinite where y is 0 and x is not."""
        return sum(float(block.divergence(x[name], y[name])) for name, block in self.blocks.items())

    def symmetric(self, x: Point, y: Point) -> float:
        """D(x || y) + D(y || x)."""
        return self.divergence(x, y) + self.divergence(y, x)

    def step(self, x: Point, grad: Point, lr: float) -> dict[str, Tensor]:
        """The mirror step of every block at once."""
        return {name: block.step(x[name], grad[name], lr) for name, block in self.blocks.items()}

    def inner(self, grad: Point, step: Point) -> float:
        """The inner product of a gradient and a step, over all blocks."""
        return sum(float((grad[name] * step[name]).sum()) for name in self.blocks)

    def minus(self, x: Point, y: Point) -> dict[str, Tensor]:
        """x - y, block by block."""
        return {name: x[name] - y[name] for name in self.blocks}

    def checked(self, x: Point) -> dict[str, Tensor]:
        """The point in double precision, or a `RequestError` where it is not one of the domain."""
        if set(x) != set(self.blocks):
            raise RequestError(f"a point of this domain has the blocks {', '.join(self.blocks)}, got {', '.join(x)}")
        point = {name: x[name].detach().double() for name in self.blocks}
        for name, block in self.blocks.items():
            if not point[name].isfinite().all():
                raise RequestError(f"block {name!r} is not finite")
            if block.simplex:
                sums = torch.cat([row.sum(-1).reshape(-1) for row in block.split(point[name])])
                if point[name].min() < 0 or (sums - 1).abs().max() > 1e-4:
                    raise RequestError(
                        f"the rows of block {name!r} must be points of the simplex; the smallest entry is "
                        f"{float(point[name].min()):g} and a row sums to {float(sums[(sums - 1).abs().argmax()]):g}"
                    )
                point[name] = map_rows(lambda r: r / r.sum(-1, keepdim=True), block.sizes, point[name])
        return point


def kl_ball(x: Tensor, delta: float) -> tuple[Tensor, Tensor]:
    """Per entry, the smallest and largest p for which a distribution p can have KL(x || p) <= delta.

    By the inequality of data processing the two-point divergence of (x_i, 1 - x_i) from (p_i, 1 - p_i) is no larger.
    """

    def two_point(p: Tensor) -> Tensor:
        return torch.xlogy(x, x / p) + torch.xlogy(1 - x, (1 - x) / (1 - p))

    ends = []
    for end in (torch.zeros_like(x), torch.ones_like(x)):
        inside, outside = x.clone(), end
        for _ in range(60):
            middle = (inside + outside) / 2
            near = two_point(middle.clamp(1e-300, 1 - 1e-16)) <= delta
            inside, outside = torch.where(near, middle, inside), torch.where(near, outside, middle)
        ends.append(outside)
    return ends[0], ends[1]


def symmetric_range(block: Block, x: Tensor, u: Tensor, delta: float) -> tuple[float, float]:
    """Bounds of D(x || p) + D(p || x) over all p with D(u || p) <= delta."""
    if delta == 0:
        exact = float(block.divergence(x, u) + block.divergence(u, x))
        return exact, exact
    if isinstance(block.potential, Euclidean):
        distance, radius = float((x - u).norm()), math.sqrt(2 * delta)
        return max(distance - radius, 0.0) ** 2, (distance + radius) ** 2
    if not isinstance(block.potential, NegativeEntropy):
        return 0.0, math.inf
    # (x_i - p_i)(log x_i - log p_i) is convex in p_i and smallest, 0, at x_i.
    alive = x > 0
    low, high = kl_ball(u[alive], delta)
    x = x[alive]
    near = torch.minimum(torch.maximum(x, low), high)

    def term(p: Tensor) -> Tensor:
        return torch.where(p == x, 0.0, (x - p) * (x.log() - p.log()))

    return float(term(near).sum()), float(torch.maximum(term(low), term(high)).sum())
