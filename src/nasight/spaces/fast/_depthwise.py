"""Depthwise convolution whose gradients are computed by whichever formulation a CPU runs fast.

The library's own gradients are slow for three of DARTS's four kernels: on images laid out channels last, the gradient
of a dilated convolution costs 10 to 50 times its forward pass, that of a 5x5 kernel 6 times. All three are rewritten
as convolutions that are fast: stride and dilation 1, and at most three columns for the gradient of a kernel.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from nasight.spaces.fast._low import as_written, low_precision


def depthwise(x: Tensor, kernel: Tensor, stride: int = 1, dilation: int = 1) -> Tensor:
    """conv2d of x (b, c, h, w) with kernel (c, 1, side, side), an odd side, padded to keep the size."""
    if (low := low_precision(x)) is not None:
        with as_written(x):
            return depthwise(x.to(low), kernel.to(low), stride, dilation).float()
    if stride > 1 and dilation == stride:
        # Every pixel it reads is on the grid of the stride.
        x = x[:, :, ::stride, ::stride].contiguous(memory_format=torch.channels_last)
        stride = dilation = 1
    # Taps that see only padding, whatever the pixel, are cut off: tiny images would send them to slow code.
    half, reach = kernel.shape[-1] // 2, (max(x.shape[2:]) - 1) // dilation
    if reach < half:
        kernel = kernel[..., half - reach : half + reach + 1, half - reach : half + reach + 1].contiguous()
    out: Tensor = _Depthwise.apply(x, kernel, stride, dilation)  # type: ignore[no-untyped-call]
    return out


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: Tensor, stride: int, dilation: int) -> Tensor:
        ctx.save_for_backward(x, kernel)
        ctx.stride, ctx.dilation = stride, dilation
        return _convolve(x, kernel, stride, dilation)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, kernel = ctx.saved_tensors
        grad = grad.contiguous(memory_format=torch.channels_last)
        by_x = by_kernel = None
        if ctx.stride > 1:
            by_x, by_kernel = _library_gradients(grad, x, kernel, ctx.stride, ctx.needs_input_grad[:2])
        else:
            if ctx.needs_input_grad[0]:
                by_x = _convolve(grad, kernel.flip(2, 3), 1, ctx.dilation)
            if ctx.needs_input_grad[1]:
                by_kernel = _kernel_gradient(grad, x, kernel, ctx.dilation)
        return by_x, by_kernel, None, None


def _convolve(x: Tensor, kernel: Tensor, stride: int, dilation: int) -> Tensor:
    return F.conv2d(x, kernel, None, stride, dilation * (kernel.shape[-1] // 2), dilation, len(kernel))


def _kernel_gradient(grad: Tensor, x: Tensor, kernel: Tensor, dilation: int) -> Tensor:
    if dilation == 2:
        # A dilated convolution is an ordinary one on each of the four grids of every other pixel.
        grad, x = _grids(grad), _grids(x)
    side = kernel.shape[-1]
    if side == 1:
        return (grad * x).sum((0, 2, 3))[:, None, None, None]
    if side == 3:
        tiny = min(x.shape[2:]) < side
        return _part_gradient(grad, F.pad(x, (1,) * 4) if tiny else x, kernel, 0 if tiny else 1)
    # Columns 0 to 2 see pixels -2, -1, 0 from the center, columns 3 and 4 see 1 and 2.
    left = _part_gradient(grad, F.pad(x, (2, 0, 2, 2)), kernel[..., :3], 0)
    right = _part_gradient(grad, F.pad(x, (-1, 2, 2, 2)), kernel[..., 3:], 0)
    return torch.cat([left, right], 3)


def _part_gradient(grad: Tensor, x: Tensor, part: Tensor, padding: int) -> Tensor:
    found = torch.ops.aten.convolution_backward(
        grad, x, part.contiguous(), None, (1, 1), (padding,) * 2, (1, 1), False, (0, 0), len(part), (False, True, False)
    )
    by_part: Tensor = found[1]
    return by_part


def _grids(x: Tensor) -> Tensor:
    """(b, c, h, w) -> (4 b, c, h/2, w/2): the four grids of every other pixel; odd sides are padded with zeros."""
    x = F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2))
    b, c, h, w = x.shape
    parts = x.view(b, c, h // 2, 2, w // 2, 2).permute(3, 5, 0, 2, 4, 1)
    return parts.reshape(4 * b, h // 2, w // 2, c).permute(0, 3, 1, 2)


def _library_gradients(grad: Tensor, x: Tensor, kernel: Tensor, stride: int, needed: Any) -> tuple[Tensor, Tensor]:
    half = kernel.shape[-1] // 2
    by_x, by_kernel, _ = torch.ops.aten.convolution_backward(
        grad, x, kernel, None, (stride,) * 2, (half,) * 2, (1, 1), False, (0, 0), len(kernel), (*needed, False)
    )
    return by_x, by_kernel


def average_pool(x: Tensor, stride: int = 1) -> Tensor:
    """3x3 average pooling that does not count the padding, as a convolution with equal weights."""
    total = depthwise(x, x.new_ones(x.shape[1], 1, 3, 3), stride)
    h, w = x.shape[2:]
    counts = [F.avg_pool1d(x.new_ones(1, side), 3, stride, 1)[0] for side in (h, w)]
    return total / torch.outer(*counts).mul_(9)
