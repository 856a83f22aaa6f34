"""A cell of DARTS's supernet: its parameters, and its value computed the plain way."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.spaces._blocks import ReluConvNorm
from nasight.spaces._dropout import NO_MASKS, Masks
from nasight.spaces.darts._network import FactorizedReduce, grids
from nasight.spaces.darts._text import EDGES, INPUTS, NODES
from nasight.spaces.fast._mix import shuffle

Active = Sequence[frozenset[str]]

CONVOLUTIONS = {
    "sep_conv_3x3": (3, 1, 2),
    "sep_conv_5x5": (5, 1, 2),
    "dil_conv_3x3": (3, 2, 1),
    "dil_conv_5x5": (5, 2, 1),
}
"""name -> (side of the depthwise kernels, dilation, how often depthwise and pointwise are repeated)"""

OUT_OF = tuple(tuple(e for e, (source, _) in enumerate(EDGES) if source == node) for node in range(NODES))
INTO = tuple(tuple(e for e, (_, target) in enumerate(EDGES) if target == node) for node in range(NODES))
STRIDED = tuple(e for e, (source, _) in enumerate(EDGES) if source < INPUTS)
"""The edges of a reduction cell that halve the image."""


class MixedCell(nn.Module):
    """One cell whose edges are mixtures; `plain` and `fast_cell` compute the same function of the same parameters.

    `depthwise[name]` holds the kernels of an operation's depthwise convolutions, (repeats, edges, channels, 1, side,
    side), `pointwise[name]` those of its 1x1 convolutions, (repeats, edges, channels, channels). In a reduction
    cell, `skips` (edges from the inputs, channels, channels) holds those of the factorized skip connections.
    With `partial` = K, a K-th of the channels goes through the operations, the others pass by, and a channel
    shuffle mixes the two (PC-DARTS). The skip connection of an edge in `masks` is multiplied by its mask (P-DARTS), all
    that an edge in `paths` gives by its path (SNAS).
    """

    def __init__(
        self,
        operations: tuple[str, ...],
        before: tuple[int, int],
        channels: int,
        partial: int,
        *,
        reduce: bool,
        reduced: bool,
    ) -> None:
        super().__init__()
        self.operations, self.partial, self.reduce = operations, partial, reduce
        self.active = a = channels // partial
        self.inputs = nn.ModuleList(
            FactorizedReduce(wide, channels, affine=False, running=False)
            if reduced and position == 0
            else ReluConvNorm(wide, channels, 1, affine=False, running=False)
            for position, wide in enumerate(before)
        )
        self.depthwise, self.pointwise = nn.ParameterDict(), nn.ParameterDict()
        for name, (side, _, repeats) in CONVOLUTIONS.items():
            self.depthwise[name] = _kernels((repeats, len(EDGES), a, 1, side, side), side * side)
            self.pointwise[name] = _kernels((repeats, len(EDGES), a, a), a)
        if reduce:
            self.skips = _kernels((len(STRIDED), a, a), a)

    def stride(self, source: int) -> int:
        """Of the edges that leave this node."""
        return 2 if self.reduce and source < INPUTS else 1

    def image_of(self, nodes: list[Tensor]) -> Tensor:
        """An image as the operations give it, from the two inputs of the cell: (b, active, h, w)."""
        stride = self.stride(0)
        return nodes[0][:, : self.active, ::stride, ::stride]

    def skip_edges(self, active: Active) -> list[int]:
        """The edges with a skip connection that is the identity; one that halves the image is a convolution."""
        return [e for e, (source, _) in enumerate(EDGES) if "skip_connect" in active[e] and self.stride(source) == 1]

    def plain(
        self,
        nodes: list[Tensor],
        weights: Tensor,
        shares: Tensor,
        active: Active,
        masks: Masks,
        paths: Masks = NO_MASKS,
    ) -> Tensor:
        """Edge by edge, operation by operation."""
        for target in range(INPUTS, NODES):
            given = {
                e: self._edge(e, x, weights, shares, active, masks) for e, x in zip(INTO[target], nodes, strict=True)
            }
            nodes = [*nodes, torch.stack([x * paths[e] if e in paths else x for e, x in given.items()]).sum(0)]
        return torch.cat(nodes[INPUTS:], 1)

    def _edge(self, e: int, x: Tensor, weights: Tensor, shares: Tensor, active: Active, masks: Masks) -> Tensor:
        stride = self.stride(EDGES[e][0])
        through, past = x[:, : self.active], x[:, self.active :]
        mixed = torch.zeros_like(through[:, :, ::stride, ::stride])
        for o, name in enumerate(self.operations):
            if name in active[e]:
                mixed = mixed + weights[e, o] * self._operation(name, e, through, stride, masks)
        if self.partial == 1:
            return mixed
        past = pass_by(past, stride)
        return shuffle(torch.cat([mixed, shares[e] * past], 1), self.partial)

    def _operation(self, name: str, e: int, x: Tensor, stride: int, masks: Masks) -> Tensor:
        if name == "skip_connect" and stride == 1:
            return x * masks[e] if e in masks else x
        if name == "skip_connect":
            return _norm(self._factorized(e, F.relu(x)))
        if name == "max_pool_3x3":
            return _norm(F.max_pool2d(x, 3, stride, 1))
        if name == "avg_pool_3x3":
            return _norm(F.avg_pool2d(x, 3, stride, 1, count_include_pad=False))
        side, dilation, _ = CONVOLUTIONS[name]
        padding = dilation * (side // 2)
        for depthwise, pointwise in zip(self.depthwise[name][:, e], self.pointwise[name][:, e], strict=True):
            x = F.conv2d(F.relu(x), depthwise, None, stride, padding, dilation, self.active)
            x, stride = _norm(F.conv2d(x, pointwise[:, :, None, None])), 1
        return x

    def _factorized(self, e: int, x: Tensor) -> Tensor:
        kernels = self.skips[STRIDED.index(e)][:, :, None, None].tensor_split(2)
        return torch.cat([F.conv2d(grid, kernel) for grid, kernel in zip(grids(x), kernels, strict=True)], 1)


def _kernels(shape: tuple[int, ...], fan_in: int) -> nn.Parameter:
    """Uniform as a convolution of its own would start: within 1 / sqrt(fan_in)."""
    return nn.Parameter(torch.empty(shape).uniform_(-(fan_in**-0.5), fan_in**-0.5))


def _norm(x: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, training=True)


def pass_by(x: Tensor, stride: int) -> Tensor:
    """The channels that no operation sees, brought to the size of the others."""
    return x if stride == 1 else F.max_pool2d(x, 2, 2, ceil_mode=True)
