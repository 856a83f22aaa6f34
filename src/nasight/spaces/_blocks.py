"""The layers that stand-alone networks and supernets of several spaces are made of."""

from __future__ import annotations

from torch import Tensor, nn

from nasight.errors import RequestError


class ReluConvNorm(nn.Sequential):
    """ReLU, convolution, batch norm: the order every cell space here uses.

    `affine=False` and `running=False` give the batch norm of a supernet: no scale of its own (it would hide the
    architecture weight that follows it) and always the statistics of the batch at hand.
    """

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        kernel: int,
        stride: int = 1,
        *,
        affine: bool = True,
        running: bool = True,
    ) -> None:
        super().__init__(
            nn.ReLU(),
            nn.Conv2d(channels_in, channels_out, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(channels_out, affine=affine, track_running_stats=running),
        )


class ConvNormRelu(nn.Sequential):
    """Convolution, batch norm, ReLU: the order of NAS-Bench-101 and of plain networks."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, *, running: bool = True) -> None:
        super().__init__(
            nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(channels_out, track_running_stats=running),
            nn.ReLU(),
        )


class Zero(nn.Module):
    """The `none` operation: nothing passes (and the stride is kept)."""

    def __init__(self, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return x[..., :: self.stride, :: self.stride] * 0.0


class ResidualReduction(nn.Module):
    """NAS-Bench-201's block between stages: two 3x3 convolutions, halved size, beside a pooled 1x1 shortcut."""

    def __init__(self, channels_in: int, channels_out: int, *, running: bool = True) -> None:
        super().__init__()
        self.body = nn.Sequential(
            ReluConvNorm(channels_in, channels_out, 3, 2, running=running),
            ReluConvNorm(channels_out, channels_out, 3, running=running),
        )
        # ceil_mode keeps odd sizes in step with the padded convolution of stride 2.
        self.shortcut = nn.Sequential(
            nn.AvgPool2d(2, 2, ceil_mode=True, count_include_pad=False),
            nn.Conv2d(channels_in, channels_out, 1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x) + self.shortcut(x)
        return out


def stem(channels_in: int, channels_out: int, *, running: bool = True) -> nn.Sequential:
    """3x3 convolution and batch norm: from the image to the first cell."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels_out, track_running_stats=running),
    )


def head(channels: int, classes: int, *, running: bool = True) -> nn.Sequential:
    """Batch norm, ReLU, global pooling, linear layer: from the last cell to the logits."""
    return nn.Sequential(
        nn.BatchNorm2d(channels, track_running_stats=running),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, classes),
    )


def image_channels(inputs: tuple[int, ...]) -> int:
    """The channels of an image shape; anything else is refused."""
    if len(inputs) != 3:
        raise RequestError(f"this space needs images (channels, height, width), got examples of shape {tuple(inputs)}")
    return int(inputs[0])
