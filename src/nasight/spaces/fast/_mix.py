"""The pieces fast paths share: rows instead of images, and weighted sums in one pass forward and one back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nasight.spaces.fast._low import as_written, low_precision

EPSILON = 1e-5
"""Batch norm's own constant, for the places that fold it into a convolution."""


def rows(image: Tensor) -> Tensor:
    """(b, c, h, w) -> (b h w, c); a view where the image is laid out channels last."""
    return image.permute(0, 2, 3, 1).reshape(-1, image.shape[1])


def images(rows: Tensor, like: Tensor) -> Tensor:
    """(b h w, c) -> (b, c, h, w), laid out channels last, with the batch and size of `like`."""
    b, _, h, w = like.shape
    return rows.view(b, h, w, -1).permute(0, 3, 1, 2)


def shuffle(x: Tensor, parts: int) -> Tensor:
    """Channels regrouped so that each of `parts` neighbors comes from another part (PC-DARTS)."""
    if parts == 1:
        return x
    b, c, h, w = x.shape
    return x.view(b, parts, c // parts, h, w).transpose(1, 2).reshape(b, c, h, w)


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, free: int, *terms: Tensor) -> Tensor:
        plain, weighted = terms[:free], terms[free:]
        # Numbers make the fastest sum, but to read them from a device would wait for it.
        known = weights.device.type == "cpu"
        values = weights.tolist() if known else weights.unbind()
        out = plain[0] + plain[1] if free > 1 else plain[0].clone() if free else weighted[0] * values[0]
        for term in plain[2:]:
            out += term
        for value, term in zip(values[not free :], weighted[not free :], strict=True):
            if known:
                out.add_(term, alpha=value)
            else:
                out.addcmul_(term, value)
        ctx.save_for_backward(*weighted)
        ctx.values, ctx.free = values, free
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad = grads[0].contiguous()
        flat = grad.view(-1)
        weighted, need = ctx.saved_tensors, ctx.needs_input_grad
        by_weight = torch.stack([torch.dot(flat, t.reshape(-1)) for t in weighted]) if weighted and need[0] else None
        plain = [grad if needed else None for needed in need[2 : 2 + ctx.free]]
        scaled = [
            grad * value if needed else None for value, needed in zip(ctx.values, need[2 + ctx.free :], strict=True)
        ]
        return by_weight, None, *plain, *scaled


def weighted_sum(plain: Sequence[Tensor], weights: Tensor, weighted: Sequence[Tensor]) -> Tensor:
    """sum(plain) + sum_i weights[i] * weighted[i], all of one shape (n, c).

    Autograd would write a product and a sum for each term, forward and backward; here each term is read once
    forward (an in-place axpy) and once backward (a dot product for its weight).
    """
    if low_precision(weights) is not None:
        with as_written(weights):
            return weighted_sum([t.float() for t in plain], weights, [t.float() for t in weighted])
    out: Tensor = _WeightedSum.apply(weights, len(plain), *plain, *weighted)  # type: ignore[no-untyped-call]
    return out
