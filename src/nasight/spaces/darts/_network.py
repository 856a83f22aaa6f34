"""The stand-alone network of two cells, as DARTS and its successors retrain it on small images."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.spaces._blocks import ReluConvNorm, Zero
from nasight.spaces._blocks import stem as plain_stem
from nasight.spaces._dropout import drawing
from nasight.spaces.darts._text import INPUTS, Cell

STEM = 3
"""The stem has this many times the channels of the first cell."""
HALVINGS = 3
"""The size "stem" of ImageNet's form: this many convolutions of stride 2."""


class FactorizedReduce(nn.Module):
    """ReLU, a 1x1 convolution on each of two interleaved grids of pixels, batch norm."""

    def __init__(self, channels_in: int, channels_out: int, *, affine: bool = True, running: bool = True) -> None:
        super().__init__()
        half = channels_out // 2
        self.even = nn.Conv2d(channels_in, half, 1, bias=False)
        self.odd = nn.Conv2d(channels_in, channels_out - half, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels_out, affine=affine, track_running_stats=running)

    def forward(self, x: Tensor) -> Tensor:
        even, odd = grids(F.relu(x))
        out: Tensor = self.norm(torch.cat([self.even(even), self.odd(odd)], 1))
        return out


def grids(x: Tensor) -> tuple[Tensor, Tensor]:
    """Every other pixel from (0, 0) on, and as many from (1, 1) on; an odd side is padded.

    A 1x1 convolution of stride 2 would read the same pixels, but with few channels, held last in memory, torch 2.13
    writes beyond its memory in the gradient of such a one.
    """
    h, w = x.shape[-2:]
    return x[..., ::2, ::2], F.pad(x, (0, w % 2, 0, h % 2))[..., 1::2, 1::2]


class SeparableConv(nn.Sequential):
    """Depthwise and pointwise convolution with batch norm, `repeats` times; only the first has the stride."""

    def __init__(self, channels: int, kernel: int, stride: int, *, dilation: int = 1, repeats: int = 1) -> None:
        layers = list[nn.Module]()
        for step in (stride, 1)[:repeats]:
            padding = dilation * (kernel - 1) // 2
            layers += [
                nn.ReLU(),
                nn.Conv2d(channels, channels, kernel, step, padding, dilation, groups=channels, bias=False),
                nn.Conv2d(channels, channels, 1, bias=False),
                nn.BatchNorm2d(channels),
            ]
        super().__init__(*layers)


class FactorizedConv(nn.Sequential):
    """NASNet's 7x7 convolution in two steps: along the rows, then along the columns."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__(
            nn.ReLU(),
            nn.Conv2d(channels, channels, (1, 7), (1, stride), (0, 3), bias=False),
            nn.Conv2d(channels, channels, (7, 1), (stride, 1), (3, 0), bias=False),
            nn.BatchNorm2d(channels),
        )


def operation(name: str, channels: int, stride: int) -> nn.Module:
    """An operation of a stand-alone network: affine batch norms, and none after pools."""
    if name == "none":
        return Zero(stride)
    if name == "skip_connect":
        return nn.Identity() if stride == 1 else FactorizedReduce(channels, channels)
    if name == "max_pool_3x3":
        return nn.MaxPool2d(3, stride, 1)
    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, stride, 1, count_include_pad=False)
    if name == "conv_7x1_1x7":
        return FactorizedConv(channels, stride)
    kernel = int(name[-1])
    if name.startswith("dil_conv"):
        return SeparableConv(channels, kernel, stride, dilation=2)
    return SeparableConv(channels, kernel, stride, repeats=2)


class DropPath(nn.Module):
    """Drops whole paths, each example's on its own draw, and scales up those that stay."""

    def __init__(self) -> None:
        super().__init__()
        self.probability = 0.0
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0.0:
            return x
        keep = 1.0 - self.probability
        mask = drawing(x, len(x), 1, 1, 1)
        return x * mask.bernoulli_(keep, generator=self.generator).div_(keep).to(x, non_blocking=True)


class NetworkCell(nn.Module):
    """One cell: each node the sum of its operations, the joined nodes' channels one behind the other."""

    def __init__(
        self, cell: Cell, before: tuple[int, int], channels: int, drop: DropPath, *, reduce: bool, reduced: bool
    ) -> None:
        super().__init__()
        self.cell, self.drop = cell, drop
        first = FactorizedReduce(before[0], channels) if reduced else ReluConvNorm(before[0], channels, 1)
        self.inputs = nn.ModuleList([first, ReluConvNorm(before[1], channels, 1)])
        self.operations = nn.ModuleList(
            operation(name, channels, 2 if reduce and source < INPUTS else 1) for _, source, name in cell.entries
        )
        self.channels = channels * len(cell.concat)

    def forward(self, before: Tensor, last: Tensor) -> Tensor:
        nodes = [self.inputs[0](before), self.inputs[1](last)]
        terms = list[Tensor]()
        for (_, source, _), op in zip(self.cell.entries, self.operations, strict=True):
            out = op(nodes[source])
            terms.append(out if isinstance(op, nn.Identity) else self.drop(out))
            if len(terms) == 2:
                nodes.append(terms[0] + terms[1])
                terms.clear()
        return torch.cat([nodes[n] for n in self.cell.concat], 1)


class AuxiliaryHead(nn.Sequential):
    """A second classifier inside the network, whose loss helps training."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__(
            nn.ReLU(),
            nn.AvgPool2d(5, 3, count_include_pad=False),
            nn.Conv2d(channels, 128, 1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Conv2d(128, 768, 2, bias=False),
            nn.BatchNorm2d(768),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(768, classes),
        )


class ImageNetAuxiliaryHead(nn.Sequential):
    """The same for large images, as DARTS released it: without a norm after the second convolution."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__(
            nn.ReLU(),
            nn.AvgPool2d(5, 2, count_include_pad=False),
            nn.Conv2d(channels, 128, 1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Conv2d(128, 768, 2, bias=False),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(768, classes),
        )


class HalvingStem(nn.Module):
    """Three convolutions of stride 2 before the cells (ImageNet): the outputs after two and after three of them."""

    def __init__(self, channels_in: int, channels: int, *, running: bool = True) -> None:
        super().__init__()
        half = channels // 2
        self.two = nn.Sequential(
            nn.Conv2d(channels_in, half, 3, 2, 1, bias=False),
            nn.BatchNorm2d(half, track_running_stats=running),
            nn.ReLU(),
            nn.Conv2d(half, channels, 3, 2, 1, bias=False),
            nn.BatchNorm2d(channels, track_running_stats=running),
        )
        self.three = ReluConvNorm(channels, channels, 3, 2, running=running)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        two = self.two(x)
        return two, self.three(two)


def check_stem(stem: int) -> None:
    """Refuse a number of halvings that no paper has."""
    if stem not in (0, HALVINGS):
        raise RequestError(
            f"size 'stem' is 0 (small images) or {HALVINGS} (three halvings, as for ImageNet), got {stem}"
        )


class DartsNetwork(nn.Module):
    """Stem, cells with a reduction after each third, global pooling, linear layer.

    With `stem` = 3 the image is halved three times before the cells, as papers do for ImageNet.

    With `auxiliary`, `forward` gives (logits, auxiliary logits) in training and logits otherwise. `drop_path` is
    the probability of dropping a path, which a trainer raises as it goes; `generator` is its source of chance.
    """

    def __init__(
        self,
        design: Mapping[str, Cell],
        inputs: tuple[int, ...],
        classes: int,
        *,
        channels: int,
        cells: int,
        stem: int = 0,
        auxiliary: bool = False,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        check_stem(stem)
        self._drop = DropPath()
        self.drop_path = drop_path
        reductions = (cells // 3, 2 * cells // 3)
        self._auxiliary_at = reductions[1]
        self.stem = HalvingStem(inputs[0], channels) if stem else plain_stem(inputs[0], STEM * channels)
        before = last = channels if stem else STEM * channels
        reduced = bool(stem)
        self.cells = nn.ModuleList()
        for index in range(cells):
            reduce = index in reductions
            channels *= 2 if reduce else 1
            design_here = design["reduce" if reduce else "normal"]
            cell = NetworkCell(design_here, (before, last), channels, self._drop, reduce=reduce, reduced=reduced)
            self.cells.append(cell)
            before, last, reduced = last, cell.channels, reduce
            if auxiliary and index == reductions[1]:
                _check_auxiliary(inputs, stem + len(set(reductions)), 7 if stem else 8)
                head = ImageNetAuxiliaryHead if stem else AuxiliaryHead
                self.auxiliary: nn.Module | None = head(cell.channels, classes)
        if not auxiliary:
            self.auxiliary = None
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, classes))

    @property
    def drop_path(self) -> float:
        return self._drop.probability

    @drop_path.setter
    def drop_path(self, probability: float) -> None:
        if not 0 <= probability < 1:
            raise RequestError(f"drop_path is a probability of at least 0 and below 1, got {probability!r}")
        self._drop.probability = float(probability)

    @property
    def generator(self) -> torch.Generator | None:
        return self._drop.generator

    @generator.setter
    def generator(self, generator: torch.Generator | None) -> None:
        self._drop.generator = generator

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        out = self.stem(x)
        before, last = out if isinstance(out, tuple) else (out, out)
        auxiliary: Tensor | None = None
        for index, cell in enumerate(self.cells):
            before, last = last, cell(before, last)
            if index == self._auxiliary_at and self.auxiliary is not None and self.training:
                auxiliary = self.auxiliary(last)
        logits: Tensor = self.head(last)
        return logits if auxiliary is None else (logits, auxiliary)


def _check_auxiliary(inputs: tuple[int, ...], reductions: int, least: int) -> None:
    side = min(inputs[1:])
    for _ in range(reductions):
        side = (side + 1) // 2
    # A 5x5 pool of stride 3 (large images: 2) must leave two pixels per side for the 2x2 convolution.
    if side < least:
        raise RequestError(
            f"images of {inputs[1]}x{inputs[2]} are too small for the auxiliary head, which needs {least}x{least}"
            f" pixels after {reductions} reductions and gets {side}; leave it out or take images of at least"
            f" {(least - 1) * 2**reductions + 1} pixels per side"
        )
