"""The supernet of plain convolutional networks: the first kernel, widths and numbers of layers are mixtures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.spaces._groups import Group
from nasight.spaces._placed import zeros_of
from nasight.spaces._supernet import Supernet
from nasight.spaces.convnet._network import KERNEL

DEPTH = {"1": 1, "2": 2, "2+": 2, "3+": 3}
"""Layers that an option of "layers" has; with a + their inputs are added to what they give."""
Row = tuple[Tensor, list[bool]]
"""The weights of a decision's options, and which of them are evaluated."""


class ConvNetSupernet(Supernet):
    """All stages at their largest width with all layers, the mean over the image, and a linear layer.

    All paths are one. `widths` are the channels of every option, stage by stage.
    """

    compiles: ClassVar[bool] = False

    def __init__(
        self,
        groups: tuple[Group, ...],
        widths: Sequence[Sequence[int]],
        halved: Sequence[bool],
        colors: int,
        classes: int,
        *,
        path: str,
    ) -> None:
        super().__init__(groups, path)
        self.halved = tuple(halved)
        first = [int(option) for option in groups[0].options[0]]
        before = [colors, *(max(options) for options in widths)]
        self.stages = nn.ModuleList(
            MixedStage(before[i], options, [KERNEL] if i else first) for i, options in enumerate(widths)
        )
        self.head = nn.Linear(before[-1], classes)

    def _logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool) -> Tensor:
        kept = {group.name: (zeros_of(weights, group.name, skip_zeros) != 0).tolist() for group in self.groups}
        x = x.contiguous(memory_format=torch.channels_last)
        for i, (stage, halved) in enumerate(zip(self.stages, self.halved, strict=True)):
            kernels = (weights["kernel"][0], kept["kernel"][0])
            x = stage(x, kernels, *((weights[name][i], kept[name][i]) for name in ("widths", "layers")))
            x = F.max_pool2d(x, 2) if halved else x
        return F.linear(x.mean((2, 3)), self.head.weight[:, : x.shape[1]], self.head.bias)


class MixedStage(nn.Module):
    """A stage of which width, number of layers and, in the first stage, the first kernel are mixed.

    A layer is relu(sum_k w_k norm(conv_k(x))) * sum_j w_j mask_j, where the j-th mask is one for the channels that the
    j-th width has: at ones and zeros the layer of that kernel and width. The stage is the sum over the options of
    "layers" of w_l times what a stage of these layers gives; they share their layers.
    """

    masks: Tensor

    def __init__(self, channels_in: int, widths: Sequence[int], first: Sequence[int]) -> None:
        super().__init__()
        self.widths, wide = tuple(widths), max(widths)
        self.first = nn.ModuleList(_convolution(channels_in, wide, kernel) for kernel in first)
        self.others = nn.ModuleList(_convolution(wide, wide, KERNEL) for _ in range(max(DEPTH.values()) - 1))
        masks = torch.tensor([[float(c < width) for c in range(wide)] for width in widths])  # (options, channels)
        self.register_buffer("masks", masks, persistent=False)

    def forward(self, x: Tensor, kernels: Row, widths: Row, layers: Row) -> Tensor:
        (width_weights, kept_widths), (layer_weights, kept_layers) = widths, layers
        # Channels beyond the widest of those that count are zero: they are left out.
        wide = max((width for width, keep in zip(self.widths, kept_widths, strict=True) if keep), default=1)
        mask = (width_weights @ self.masks[:, :wide].to(width_weights.dtype))[None, :, None, None]
        weight = dict(zip(DEPTH, layer_weights.unbind(0), strict=True))
        kept = {option for option, keep in zip(DEPTH, kept_layers, strict=True) if keep}
        deepest = max((DEPTH[option] for option in kept), default=1)
        first = F.relu(self._first(x, kernels, wide)) * mask
        total = weight["1"] * first
        if deepest > 1:
            second = F.relu(_normed(self.others[0], first, wide)) * mask
            skipped = first + second
            total = torch.addcmul(total, weight["2"], second) if "2" in kept else total
            total = torch.addcmul(total, weight["2+"], skipped) if "2+" in kept else total
        if deepest > 2:
            third = F.relu(_normed(self.others[1], skipped, wide)) * mask
            total = torch.addcmul(total, weight["3+"], skipped + third)
        return total

    def _first(self, x: Tensor, kernels: Row, wide: int) -> Tensor:
        """The first layer before its ReLU: where it has several kernels, their mixture."""
        if len(self.first) == 1:
            return _normed(self.first[0], x, wide)
        weights, kept = kernels
        parts = [
            weight * _normed(conv, x, wide)
            for conv, weight, keep in zip(self.first, weights.unbind(0), kept, strict=True)
            if keep
        ]
        return torch.stack(parts).sum(0) if parts else x.new_zeros(x.shape[0], wide, *x.shape[2:])


def _convolution(channels_in: int, channels_out: int, kernel: int) -> nn.Conv2d:
    return nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2, bias=False)


def _normed(conv: nn.Module, x: Tensor, channels: int) -> Tensor:
    """Convolution and batch norm, of the first so many channels."""
    assert isinstance(conv, nn.Conv2d)
    out = F.conv2d(x, conv.weight[:channels, : x.shape[1]], padding=conv.kernel_size[0] // 2)
    return F.batch_norm(out, None, None, training=True)
