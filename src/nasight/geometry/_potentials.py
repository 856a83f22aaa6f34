"""Distance-generating functions on the simplex, their divergences and their steps (GAEA, section 3.1)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


class Potential(ABC):
    """A convex function phi(x) = sum_i h(x_i) on the simplex; tensors are stacks of rows (..., k).

    Three elementwise formulas make a new one: the mirror step follows from them. `h'` must be finite at 1.
    """

    @abstractmethod
    def value(self, x: Tensor) -> Tensor:
        """phi of every row: (..., k) -> (...)."""

    @abstractmethod
    def gradient(self, x: Tensor) -> Tensor:
        """h' of every element of [0, 1]; it may be -inf at 0."""

    @abstractmethod
    def inverse_gradient(self, y: Tensor) -> Tensor:
        """The elements x at which h'(x) = y, for y from h'(0) to h'(1)."""

    def mirror_step(self, x: Tensor, grad: Tensor, lr: float) -> Tensor:
        """argmin over u in the simplex of lr * <grad, u> + D(u || x), row by row (GAEA, eq. 6).

        By the conditions of optimality u = (h')^-1(max(h'(x) - lr * grad + c, h'(0))) with the number c that makes
        the row sum to 1. With the largest h'(x) - lr * grad moved to 0, c lies between h'(1/k), where no element
        exceeds 1/k, and h'(1), where one element is 1: a bracket that does not depend on the gradient.
        """
        slope = self.gradient(x)
        y = torch.where(slope.isfinite(), slope - lr * (grad - least_alive(grad, slope.isfinite())), slope)
        y = y - y.amax(-1, keepdim=True)
        at_zero, low, high = (
            torch.full_like(y[..., :1], float(end))
            for end in self.gradient(x.new_tensor([0.0, 1.0 / x.shape[-1], 1.0]))
        )
        for _ in range(12 - round(math.log2(torch.finfo(x.dtype).eps))):
            middle = (low + high) / 2
            short = self.inverse_gradient(torch.maximum(y + middle, at_zero)).sum(-1, keepdim=True) < 1
            low, high = torch.where(short, middle, low), torch.where(short, high, middle)
        u = self.inverse_gradient(torch.maximum(y + high, at_zero))
        return u / u.sum(-1, keepdim=True)


@dataclass(frozen=True)
class NegativeEntropy(Potential):
    """phi(x) = <x, log x>: its divergence is Kullback and Leibler's, its step exponentiated gradient (GAEA, eq. 5)."""

    def value(self, x: Tensor) -> Tensor:
        return torch.xlogy(x, x).sum(-1)

    def gradient(self, x: Tensor) -> Tensor:
        return x.log() + 1

    def inverse_gradient(self, y: Tensor) -> Tensor:
        return (y - 1).exp()

    def mirror_step(self, x: Tensor, grad: Tensor, lr: float) -> Tensor:
        """x * exp(-lr * grad), divided by its sum; in logarithms, so that no gradient overflows."""
        alive = x > 0
        logits = torch.where(alive, x.log() - lr * (grad - least_alive(grad, alive)), -math.inf)
        return logits.softmax(-1)


@dataclass(frozen=True)
class Euclidean(Potential):
    """phi(x) = |x|^2 / 2: its step is projected gradient descent (GAEA, eq. 4)."""

    def value(self, x: Tensor) -> Tensor:
        return x.square().sum(-1) / 2

    def gradient(self, x: Tensor) -> Tensor:
        return x

    def inverse_gradient(self, y: Tensor) -> Tensor:
        return y

    def mirror_step(self, x: Tensor, grad: Tensor, lr: float) -> Tensor:
        """The projection of x - lr * grad on the simplex."""
        return project_simplex(x - lr * (grad - grad.amin(-1, keepdim=True)))


def project_simplex(x: Tensor) -> Tensor:
    """The point of the simplex that is nearest to each row of x (..., k): max(x - c, 0), where c makes it sum to 1.

    >>> project_simplex(torch.tensor([0.8, 0.6, -3.0]))
    tensor([0.6000, 0.4000, 0.0000])
    """
    x = x - x.amax(-1, keepdim=True)
    falling = x.sort(-1, descending=True).values
    # If the j largest elements are those that stay positive, c is (their sum - 1) / j.
    cut = (falling.cumsum(-1) - 1) / torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    stay = (falling > cut).sum(-1, keepdim=True).clamp(min=1)
    u = (x - cut.gather(-1, stay - 1)).clamp(min=0)
    return u / u.sum(-1, keepdim=True)


def bregman(potential: Potential, x: Tensor, y: Tensor) -> Tensor:
    """The Bregman divergence D(x || y) = phi(x) - phi(y) - <grad phi(y), x - y> of every row: (..., k) -> (...).

    Parameters
    ----------
    potential : phi.
    x, y : stacks of points of the simplex, (..., k).

    >>> bregman(Euclidean(), torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(1.)
    """
    step = x - y
    # An element that is 0 in both has slope -inf and adds nothing.
    slope = torch.where(step == 0, 0.0, potential.gradient(y) * step)
    return potential.value(x) - potential.value(y) - slope.sum(-1)


def least_alive(grad: Tensor, alive: Tensor) -> Tensor:
    """The smallest element of the gradient among the live ones of a row: (..., k) -> (..., 1).

    Taken off the gradient it changes nothing, since no step on the simplex sees a constant.
    """
    return torch.where(alive, grad, math.inf).amin(-1, keepdim=True)
