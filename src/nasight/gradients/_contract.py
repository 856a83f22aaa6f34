"""Norms and Gram matrices of per-example gradients, layer by layer, from what enters a layer and what comes back.

With A_i (p, t) what enters a linear map at t places and B_i (q, t) the gradient of what leaves it, the gradient of
example i with respect to the weights is B_i A_i^T, so that

    <g_i, g_j> = sum_{s,t} (A_i^T A_j)_{st} (B_i^T B_j)_{st},

for t = 1 the product of two inner products. Whether B A^T or the products over places are formed is decided by
their cost.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.compute import double, double_zeros
from nasight.gradients._tape import LayerCall

PATCHES = 2**19
"""Patches of a convolution up to this many numbers are copied out at once, more of them tap by tap."""
GRADIENTS = 2**25
"""At most this many numbers of per-example gradients are held at once."""
Layer = list[tuple[LayerCall, Tensor]]
"""All uses of one layer in a pass, each with the gradient at its output."""


def square_norms(layer: Layer) -> Tensor:
    """|g_i|^2 over the parameters of one layer, a part of what `signals` gives: (n,), float64."""
    vectors, maps = _parts(layer)
    total = double_zeros(len(layer[0][1]), like=layer[0][1])
    for vector in vectors:
        total += vector.square().sum(1).to(total.device)
    for a, b in maps:
        total += _map_norms(a, b).to(total.device)
    return total


def gram(layer: Layer) -> Tensor:
    """<g_i, g_j> over the parameters of one layer, a part of what `signals` gives: (n, n), float64."""
    vectors, maps = _parts(layer)
    n = len(layer[0][1])
    total = double_zeros(n, n, like=layer[0][1])
    for vector in vectors:
        total += _outer(vector)
    for a, b in maps:
        total += _map_gram(a, b)
    return total


def _outer(rows: Tensor) -> Tensor:
    rows = double(rows)
    return rows @ rows.t()


def _map_norms(a: Tensor, b: Tensor) -> Tensor:
    """`a` is (n, groups, p, t), `b` (n, groups, q, t)."""
    p, q, t = a.shape[2], b.shape[2], a.shape[3]
    if t == 1:
        return (a.square().sum((2, 3)) * b.square().sum((2, 3))).sum(1)
    if t * (p + q) < p * q:
        return ((a.mT @ a) * (b.mT @ b)).sum((1, 2, 3))
    step = max(1, GRADIENTS // (a.shape[1] * p * q))
    pieces = zip(torch.split(a, step), torch.split(b, step), strict=True)
    return torch.cat([(y @ x.mT).square_().sum((1, 2, 3)) for x, y in pieces])


def _map_gram(a: Tensor, b: Tensor) -> Tensor:
    n, groups, p, t = a.shape
    q = b.shape[2]
    if t == 1 or n * t * t * (p + q) < (t + n) * p * q:
        total = double_zeros(n, n, like=a)
        for x, y in zip(a.unbind(1), b.unbind(1), strict=True):
            both = _outer(x.mT.reshape(n * t, p)) * _outer(y.mT.reshape(n * t, q))  # (n t, n t)
            total += both if t == 1 else both.view(n, t, n, t).sum((1, 3))
        return total
    step = max(1, GRADIENTS // (n * groups * p))
    return torch.stack([_outer((y @ a.mT).flatten(1)) for y in torch.split(b, step, 2)]).sum(0)


def _parts(layer: Layer) -> tuple[list[Tensor], Iterator[tuple[Tensor, Tensor]]]:
    """Per-example gradients of vectors, (n, size), and the factors of those of linear maps, block by block."""
    module = layer[0][0].layer
    if isinstance(module, nn.Linear):
        outs = [_places(grad)[:, None] for _, grad in layer]
        maps = iter([([_places(call.x)[:, None] for call, _ in layer], outs)])
    elif isinstance(module, nn.Conv2d):
        outs = [_grouped(grad, module.groups) for _, grad in layer]
        maps = ((block, outs) for block in _blocks(module, [call.x for call, _ in layer]))
    else:
        return _norm_vectors(layer), iter(())
    vectors = [_joined(outs).sum(3).flatten(1)] if module.bias is not None and module.bias.requires_grad else []
    if not module.weight.requires_grad:
        return vectors, iter(())
    return vectors, ((_joined(a), _joined(b)) for a, b in maps)


def _joined(uses: list[Tensor]) -> Tensor:
    """A layer used several times has as many times the places."""
    return uses[0] if len(uses) == 1 else torch.cat(uses, -1)


def _places(x: Tensor) -> Tensor:
    """(n, ..., size) as (n, size, places)."""
    return x.reshape(len(x), -1, x.shape[-1]).mT


def _grouped(x: Tensor, groups: int) -> Tensor:
    """(n, channels, h, w) as (n, groups, channels per group, places)."""
    return x.reshape(len(x), groups, x.shape[1] // groups, -1)


def _norm_vectors(layer: Layer) -> list[Tensor]:
    """sum_t B x_hat and sum_t B, with x_hat = (x - mean) * inverse taken out of the sum."""
    weights, biases = [], []
    for call, grad in layer:
        assert call.mean is not None
        assert call.inverse is not None
        grad = grad.flatten(2) if grad.dim() > 2 else grad[:, :, None]
        x = call.x.reshape(grad.shape)
        biases.append(grad.sum(2))
        weights.append(((grad * x).sum(2) - call.mean * biases[-1]) * call.inverse)
    module = layer[0][0].layer
    pairs = ((module.weight, weights), (module.bias, biases))
    return [torch.stack(found).sum(0) for p, found in pairs if isinstance(p, Tensor) and p.requires_grad]


def _blocks(module: nn.Conv2d, inputs: list[Tensor]) -> Iterator[list[Tensor]]:
    """What enters the kernel at every place of every use, (n, groups, p, places): at once, or tap by tap."""
    if module.kernel_size == (1, 1) and module.padding in ((0, 0), "valid", "same"):
        rows, columns = module.stride
        yield [_grouped(x[:, :, ::rows, ::columns], module.groups) for x in inputs]
        return
    views = [_patches(module, x) for x in inputs]  # (n, c, kh, kw, h, w), not copied yet
    if sum(view.numel() for view in views) <= PATCHES:
        yield [view.reshape(len(view), module.groups, -1, view[0, 0, 0, 0].numel()) for view in views]
        return
    for i in range(module.kernel_size[0]):
        for j in range(module.kernel_size[1]):
            yield [_grouped(view[:, :, i, j], module.groups) for view in views]


def _patches(module: nn.Conv2d, x: Tensor) -> Tensor:
    # torch keeps the padding of every kind, "same" too, in the order that F.pad takes.
    padded = F.pad(x, module._reversed_padding_repeated_twice)
    view = padded
    for side, (size, stride, gap) in enumerate(zip(module.kernel_size, module.stride, module.dilation, strict=True)):
        view = view.unfold(2 + side, gap * (size - 1) + 1, stride)[..., ::gap]
    return view.permute(0, 1, 4, 5, 2, 3)
