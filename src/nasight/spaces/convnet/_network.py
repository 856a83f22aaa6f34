"""The stand-alone network of the plain convolutional space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from nasight.spaces._blocks import ConvNormRelu

STAGES = 3
KERNEL = 3
"""The side of all kernels but the first."""


@dataclass(frozen=True)
class StageForm:
    """What is decided about a stage, in numbers."""

    channels: int
    first: int
    """The side of the kernels of its first layer."""
    layers: int
    skip: bool


class Stage(nn.Module):
    """Convolutions of one width; with `skip`, what enters a layer is added to what leaves it, but for the first."""

    def __init__(self, channels_in: int, channels: int, first: int, layers: int, skip: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            ConvNormRelu(channels if i else channels_in, channels, KERNEL if i else first) for i in range(layers)
        )
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            out = layer(x)
            x = x + out if i and self.skip else out
        return x


def channels_of(channels: int, stage: int, width: str) -> int:
    """The channels of a stage, counted from 0: each has twice as many as the one before, times its width.

    >>> channels_of(32, 0, "1"), channels_of(32, 2, "1.5"), channels_of(1, 0, "0.5")
    (32, 192, 1)
    """
    return max(1, round((channels << stage) * float(width)))


def halvings(inputs: tuple[int, ...]) -> tuple[bool, ...]:
    """After which stages the image is halved: the first two, while it has two pixels to halve.

    >>> halvings((3, 32, 32)), halvings((1, 3, 8)), halvings((1, 1, 8))
    ((True, True, False), (True, False, False), (False, False, False))
    """
    found, side = list[bool](), min(inputs[1:])
    for stage in range(STAGES):
        found.append(stage < STAGES - 1 and side >= 2)
        side = side // 2 if found[-1] else side
    return tuple(found)


def conv_network(forms: Sequence[StageForm], inputs: tuple[int, ...], classes: int) -> nn.Sequential:
    """The stages with a pool after each that halves the image, then the mean over the image and a linear layer."""
    layers, width = list[nn.Module](), inputs[0]
    for form, halved in zip(forms, halvings(inputs), strict=True):
        layers.append(Stage(width, form.channels, form.first, form.layers, form.skip))
        if halved:
            layers.append(nn.MaxPool2d(2))
        width = form.channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
