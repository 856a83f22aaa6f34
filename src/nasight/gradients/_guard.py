"""Whether gradients found layer by layer, or example by example, are those that autograd has.

Both fast ways rest on what a network does not do: rows that stay in their order, parameters that only their layer uses,
examples that do not meet. Autograd knows. With factors c_i that all differ,

    d(sum_i c_i f_i) / dW  =  sum_i c_i g_i

holds only if every g_i is the gradient of f_i (but for a coincidence of the c_i), and its left side is one backward
pass of the whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.gradients._tape import LayerCall, NotContractible

TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3}
"""How far two sums may differ, relative to their size; of other types 0.03."""


class Mismatch(NotContractible):
    """A fast way gives other gradients than autograd."""


class SlowGradients(UserWarning):
    """Gradients are taken by a slower way; the message says of which module and why."""


def factors(rows: Tensor) -> Tensor:
    """A factor for each of `rows`, all different, between 1/2 and 3/2; in no order that a network could have."""
    count = rows.numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(count))
    return torch.linspace(0.5, 1.5, count, dtype=torch.float64)[order].view(rows.shape).to(rows)


Sums = tuple[Tensor, Tensor, Tensor]
"""A sum that was found, what it should be, and the sum of the squares of its terms."""


def unequal(sums: Sequence[Sums]) -> int | None:
    """The place of the first sum that is not what it should be, up to rounding; None where all are.

    A sum that vanishes, as that of a bias before a norm does, is compared with the size of all of them. Where a number
    is not finite there is nothing to compare, and no way to a finite result.
    """
    whole = sum((square for _, _, square in sums), torch.zeros(())).sqrt()
    for place, (found, expected, square) in enumerate(sums):
        error, tolerance = (found - expected).norm(), TOLERANCE.get(found.dtype, 0.03)
        limit = tolerance * (square.sqrt() + expected.norm() + 1e-3 * whole)
        if bool(torch.isfinite(error)) and bool(error > limit):
            return place
    return None


class LayerGuard:
    """Adds up what layers contract to, pass by pass, and compares it with autograd's sums.

    Of a matrix of weights one random direction v of its inputs is compared, G v with sum_i c_i B_i A_i^T v: that
    costs no more than to read the layer's input and output once.
    """

    def __init__(self, sums: dict[Tensor, Tensor | None]) -> None:
        self.sums = sums
        """Parameter -> d(sum_i c_i f_i) / dW."""
        self.found: dict[Tensor, tuple[Tensor, Tensor]] = {}
        """Parameter -> the same from the layers, along v, and the sum of the squares of its terms."""
        self.owner: dict[Tensor, tuple[nn.Module, str]] = {}

    def add(self, call: LayerCall, grad: Tensor, c: Tensor) -> None:
        """One use of a layer, the gradient at its output, and the factors of its rows."""
        for name in ("weight", "bias"):
            parameter = getattr(call.layer, name)
            if parameter is None or parameter not in self.sums:
                continue
            weighted = c[:, None] * (_along_inputs(call, grad) if name == "weight" else _over_places(call.layer, grad))
            total, square = weighted.sum(0), weighted.square().sum()
            if parameter in self.found:
                total, square = total + self.found[parameter][0], square + self.found[parameter][1]
            self.found[parameter], self.owner[parameter] = (total, square), (call.layer, name)

    def check(self) -> None:
        """Refuse what does not add up."""
        names, sums = list[str](), list[Sums]()
        for parameter, total in self.sums.items():
            if parameter in self.found:
                found, square = self.found[parameter]
                layer, name = self.owner[parameter]
                expected = torch.zeros_like(found) if total is None else _along(layer, name, total)
                names.append(f"the {name} of a {type(layer).__name__} gets other gradients than its calls explain")
                sums.append((found, expected, square))
            elif total is not None:
                names.append("a parameter is used without its layer being called")
                sums.append((torch.zeros_like(total), total, torch.zeros_like(total.sum())))
        wrong = unequal(sums)
        if wrong is not None:
            raise Mismatch(names[wrong])


def _along_inputs(call: LayerCall, grad: Tensor) -> Tensor:
    """Of one use: B_i A_i^T v, (n, q); of a batch norm, sum_t B x_hat."""
    layer = call.layer
    if isinstance(layer, nn.Linear):
        entering = (call.x @ _direction(layer)).reshape(len(grad), 1, -1)
        return (entering @ grad.reshape(len(grad), -1, grad.shape[-1]))[:, 0]
    if isinstance(layer, nn.Conv2d):
        how = (layer.stride, layer.padding, layer.dilation, layer.groups)
        entering = F.conv2d(call.x, _direction(layer), None, *how)  # type: ignore[arg-type]
        leaving = grad.reshape(len(grad), layer.groups, -1, grad.shape[2] * grad.shape[3])  # (n, groups, q, t)
        return (leaving @ entering.reshape(len(grad), layer.groups, -1, 1)).flatten(1)
    assert call.mean is not None
    assert call.inverse is not None
    others = list(range(2, grad.dim()))
    products = (grad * call.x).sum(others) if others else grad * call.x
    return (products - call.mean * _over_places(layer, grad)) * call.inverse


def _over_places(layer: nn.Module, grad: Tensor) -> Tensor:
    """Of one use: B_i summed over places, (n, q)."""
    if isinstance(layer, nn.Linear):
        return grad.reshape(len(grad), -1, grad.shape[-1]).sum(1)
    return grad.flatten(2).sum(2) if grad.dim() > 2 else grad


def _along(layer: nn.Module, name: str, total: Tensor) -> Tensor:
    """A whole gradient along v, (q,)."""
    if name == "weight" and isinstance(layer, nn.Linear):
        return total @ _direction(layer)
    if name == "weight" and isinstance(layer, nn.Conv2d):
        v = _direction(layer).repeat_interleave(len(total) // layer.groups, 0)
        return (total * v).sum((1, 2, 3))
    return total


def _direction(layer: nn.Linear | nn.Conv2d) -> Tensor:
    """v: (p,), or for each group of a convolution (p, kh, kw)."""
    shape = tuple(layer.weight.shape[1:])
    whole = (layer.groups, *shape) if isinstance(layer, nn.Conv2d) else shape
    return torch.randn(whole, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(layer.weight)
