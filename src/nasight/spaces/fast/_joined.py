"""Convolutions that read the same node, with their ReLU and batch norms, as one step forward and one back."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from nasight.spaces.fast._fold import Fold, bias, by_input, fold_norm, gradients
from nasight.spaces.fast._low import as_written, low_precision
from nasight.spaces.fast._mix import EPSILON, images, rows

Weighted = tuple[Tensor, Tensor]


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        node: Tensor,
        narrow: Tensor | None,
        narrow_weight: Tensor | None,
        wide: Tensor | None,
        wide_weight: Tensor | None,
        low: torch.dtype | None,
    ) -> Tensor:
        image = F.relu(node)
        x = rows(image)
        fold: Fold | tuple[()] = ()
        norm: tuple[Tensor, ...] = ()
        if narrow is not None and narrow_weight is not None:
            fold = fold_norm(narrow[None, :, :, 0, 0], narrow_weight[None], [x])
        if wide is not None:
            raw = F.conv2d(image, wide, padding=1) if low is None else _convolved(image, wide, low)
            shift = bias(fold)[0] if isinstance(fold, Fold) else None
            out, mean, root = torch.native_batch_norm(raw, wide_weight, shift, None, None, True, 0.0, EPSILON)
            norm, out = (raw, mean, root), rows(out)
            if isinstance(fold, Fold):
                out.addmm_(x, fold.map[0].t())
        else:
            assert isinstance(fold, Fold)
            out = torch.addmm(bias(fold)[0], x, fold.map[0].t())
        ctx.save_for_backward(image, wide, wide_weight, *norm, *fold)
        ctx.low = low
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        image, wide, wide_weight, *saved = ctx.saved_tensors
        grad = grad.contiguous()
        by_image: Tensor | None = None
        by_wide = by_wide_weight = by_narrow = by_narrow_weight = None
        by_bias: Tensor | None = None
        if wide is not None:
            raw, mean, root = saved[:3]
            saved = saved[3:]
            by_raw, by_wide_weight, by_bias = torch.ops.aten.native_batch_norm_backward(
                images(grad, raw), raw, wide_weight, None, None, mean, root, True, EPSILON, [True, True, True]
            )
            given = (by_raw, image, wide) if ctx.low is None else tuple(t.to(ctx.low) for t in (by_raw, image, wide))
            by_image, by_wide, _ = torch.ops.aten.convolution_backward(
                *given, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]
            )
            if ctx.low is not None:
                by_image, by_wide = by_image.float(), by_wide.float()
        if saved:
            fold, x = Fold(*saved), rows(image)
            by_bias = grad.sum(0) if by_bias is None else by_bias
            found = gradients(fold, (grad.t() @ x)[None], by_bias[None], len(x))
            if by_image is None:
                by_image = images(by_input(x, grad, fold.map[0], found.shift[0], found.slope[0]), image)
            else:
                # Into the gradient of the wide convolutions, which nobody else reads.
                by_x = rows(by_image).addmm_(grad, fold.map[0]).addmm_(x, found.slope[0]).add_(found.shift[0])
                by_image = images(by_x, image)
            by_narrow, by_narrow_weight = found.kernel[0][:, :, None, None], found.weight[0]
        by_node = torch.ops.aten.threshold_backward(by_image, image, 0)
        return by_node, by_narrow, by_narrow_weight, by_wide, by_wide_weight, None


def joined(node: Tensor, narrow: Weighted | None, wide: Weighted | None) -> Tensor:
    """sum of weight * norm(conv(relu(node), kernel)) over a 1x1 kernel `narrow` and a 3x3 kernel `wide`, as rows.

    Each is (kernel (o, c, side, side), weight (o,)); one of the two may be None. The 3x3 convolution is normalized
    with its weight as the norm's scale. The 1x1 convolution is never normalized as an image: the statistics of a
    linear map follow from the mean and covariance of its input, so norm and weight fold into the kernel.
    """
    given, low = (*(narrow or (None, None)), *(wide or (None, None))), low_precision(node)
    out: Tensor
    if low is None:
        out = _Joined.apply(node, *given, None)  # type: ignore[no-untyped-call]
        return out
    with as_written(node):
        out = _Joined.apply(node.float(), *given, low)  # type: ignore[no-untyped-call]
    return out


def _convolved(image: Tensor, wide: Tensor, low: torch.dtype) -> Tensor:
    return F.conv2d(image.to(low), wide.to(low), padding=1).float()
