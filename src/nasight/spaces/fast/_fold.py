"""1x1 convolution and batch norm as one linear map, so that what is normalized never exists as an image.

The statistics of a linear map follow from the mean m and covariance V of its input rows x (n, c): with a kernel P
(o, c), the outputs have variance v = diag(P V P^T), and weight * norm(x P^T) = x A^T - A m, where
A = diag(weight / sqrt(v + epsilon)) P. The gradients below are those of this formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nasight.spaces.fast._low import as_written, low_precision
from nasight.spaces.fast._mix import EPSILON


class Fold(NamedTuple):
    """k maps side by side."""

    kernel: Tensor  # P (k, o, c)
    weight: Tensor  # (k, o) or (k, 1)
    mean: Tensor  # m (k, c)
    spread: Tensor  # P V (k, o, c)
    root: Tensor  # 1 / sqrt(v + epsilon) (k, o)
    map: Tensor  # A (k, o, c)


def fold_norm(kernel: Tensor, weight: Tensor, inputs: Sequence[Tensor]) -> Fold:
    n = len(inputs[0])
    mean = torch.stack([x.mean(0) for x in inputs])
    square = torch.stack([x.t() @ x for x in inputs]) / n
    spread = kernel @ torch.baddbmm(square, mean[:, :, None], mean[:, None, :], alpha=-1)
    root = torch.rsqrt((spread * kernel).sum(2).clamp_min_(0).add_(EPSILON))
    return Fold(kernel, weight, mean, spread, root, kernel * (weight * root)[:, :, None])


def bias(fold: Fold) -> Tensor:
    """-A m (k, o)."""
    return -(fold.map @ fold.mean[:, :, None])[:, :, 0]


class Gradients(NamedTuple):
    kernel: Tensor  # (k, o, c)
    weight: Tensor  # (k, o)
    shift: Tensor  # (k, c), to add to every row of the gradient of x
    slope: Tensor  # (k, c, c), the gradient of x grows by x @ slope


def gradients(fold: Fold, by_map: Tensor, by_bias: Tensor, n: int) -> Gradients:
    """Back from the gradients of A (k, o, c) and of the bias -A m (k, o), of n rows."""
    kernel, weight, mean, spread, root, folded = fold
    by_map = torch.baddbmm(by_map, by_bias[:, :, None], mean[:, None, :], alpha=-1)
    by_mean = -(by_bias[:, None, :] @ folded)[:, 0]
    by_scale = (by_map * kernel).sum(2)
    by_variance = -0.5 * by_scale * weight * root**3
    by_kernel = by_map * (weight * root)[:, :, None] + 2 * by_variance[:, :, None] * spread
    by_covariance = kernel.transpose(1, 2) @ (by_variance[:, :, None] * kernel)
    by_mean = by_mean - 2 * (by_covariance @ mean[:, :, None])[:, :, 0]
    return Gradients(by_kernel, by_scale * root, by_mean / n, by_covariance * (2 / n))


def by_input(x: Tensor, grad: Tensor, folded: Tensor, shift: Tensor, slope: Tensor) -> Tensor:
    return torch.addmm(shift, grad, folded).addmm_(x, slope)


class _NormalisedRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: Tensor) -> Tensor:
        fold = fold_norm(kernel[None], kernel.new_ones(1, 1), [x])
        out = torch.addmm(bias(fold)[0], x, fold.map[0].t()).relu_()
        ctx.save_for_backward(x, out, *fold)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, out, *saved = ctx.saved_tensors
        fold = Fold(*saved)
        grad = torch.ops.aten.threshold_backward(grad, out, 0)
        found = gradients(fold, (grad.t() @ x)[None], grad.sum(0)[None], len(x))
        by_x = None
        if ctx.needs_input_grad[0]:
            by_x = by_input(x, grad, fold.map[0], found.shift[0], found.slope[0])
        return by_x, found.kernel[0]


class _NormalisedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, start: Tensor, weight: Tensor, kernel: Tensor, *inputs: Tensor) -> Tensor:
        fold = fold_norm(kernel, weight[:, None], inputs)
        start += bias(fold).sum(0)
        for x, folded in zip(inputs, fold.map, strict=True):
            start.addmm_(x, folded.t())
        ctx.mark_dirty(start)
        ctx.save_for_backward(*fold, *inputs)
        return start

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        fold, inputs = Fold(*saved[:6]), saved[6:]
        grad = grad.contiguous()
        by_map = torch.stack([grad.t() @ x for x in inputs])
        by_bias = grad.sum(0).expand(len(inputs), -1)
        found = gradients(fold, by_map, by_bias, len(grad))
        by_inputs = (
            by_input(x, grad, *parts) if needed else None
            for needed, x, *parts in zip(
                ctx.needs_input_grad[3:], inputs, fold.map, found.shift, found.slope, strict=True
            )
        )
        return grad, found.weight.sum(1), found.kernel, *by_inputs


def normalized_relu(x: Tensor, kernel: Tensor) -> Tensor:
    """relu(norm(x @ kernel^T)) of rows x (n, c) and a kernel (o, c)."""
    if low_precision(x) is not None:
        with as_written(x):
            return normalized_relu(x.float(), kernel)
    out: Tensor = _NormalisedRelu.apply(x, kernel)  # type: ignore[no-untyped-call]
    return out


def add_normalized(start: Tensor, weight: Tensor, kernel: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    """start + sum_i weight[i] * norm(inputs[i] @ kernel[i]^T), written into `start` (n, o).

    `weight` is (k,), `kernel` (k, o, c), each of the k inputs (n, c).
    """
    if low_precision(start) is not None:
        with as_written(start):
            return add_normalized(start.float(), weight, kernel, [x.float() for x in inputs])
    out: Tensor = _NormalisedSum.apply(start, weight, kernel, *inputs)  # type: ignore[no-untyped-call]
    return out
