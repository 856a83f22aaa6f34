"""The operations that written files are made of: each is the text of one class or function."""

from __future__ import annotations

RELU_CONV_NORM = '''
class ReluConvNorm(nn.Sequential):
    """ReLU, convolution, batch norm."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int = 1) -> None:
        super().__init__(
            nn.ReLU(),
            nn.Conv2d(channels_in, channels_out, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(channels_out),
        )
'''

CONV_NORM_RELU = '''
class ConvNormRelu(nn.Sequential):
    """Convolution, batch norm, ReLU."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int) -> None:
        super().__init__(
            nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(channels_out),
            nn.ReLU(),
        )
'''

RESIDUAL_REDUCTION = '''
class ResidualReduction(nn.Module):
    """Half the size: two 3x3 convolutions beside a pooled shortcut."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            ReluConvNorm(channels_in, channels_out, 3, stride=2), ReluConvNorm(channels_out, channels_out, 3)
        )
        self.shortcut = nn.Sequential(
            nn.AvgPool2d(2, 2, ceil_mode=True, count_include_pad=False),
            nn.Conv2d(channels_in, channels_out, 1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + self.shortcut(x)
'''

FACTORIZED_REDUCE = '''
class FactorizedReduce(nn.Module):
    """Half the size: two 1x1 convolutions on interleaved grids of pixels."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        half = channels_out // 2
        self.even = nn.Conv2d(channels_in, half, 1, bias=False)
        self.odd = nn.Conv2d(channels_in, channels_out - half, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels_out)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(x)
        height, width = x.shape[-2:]
        odd = F.pad(x, (0, width % 2, 0, height % 2))[..., 1::2, 1::2]
        return self.norm(torch.cat([self.even(x[..., ::2, ::2]), self.odd(odd)], 1))
'''

SEPARABLE_CONV = '''
class SeparableConv(nn.Sequential):
    """Depthwise and pointwise convolution with batch norm, twice; the first has the stride."""

    def __init__(self, channels: int, kernel: int, stride: int = 1) -> None:
        layers = []
        for step in (stride, 1):
            layers += [
                nn.ReLU(),
                nn.Conv2d(channels, channels, kernel, step, kernel // 2, groups=channels, bias=False),
                nn.Conv2d(channels, channels, 1, bias=False),
                nn.BatchNorm2d(channels),
            ]
        super().__init__(*layers)
'''

DILATED_CONV = '''
class DilatedConv(nn.Sequential):
    """Dilated depthwise and pointwise convolution with batch norm."""

    def __init__(self, channels: int, kernel: int, stride: int = 1) -> None:
        super().__init__(
            nn.ReLU(),
            nn.Conv2d(channels, channels, kernel, stride, kernel - 1, dilation=2, groups=channels, bias=False),
            nn.Conv2d(channels, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
'''

FACTORIZED_CONV = '''
class FactorizedConv(nn.Sequential):
    """A 7x7 convolution in two steps: along the rows, then along the columns."""

    def __init__(self, channels: int, stride: int = 1) -> None:
        super().__init__(
            nn.ReLU(),
            nn.Conv2d(channels, channels, (1, 7), (1, stride), (0, 3), bias=False),
            nn.Conv2d(channels, channels, (7, 1), (stride, 1), (3, 0), bias=False),
            nn.BatchNorm2d(channels),
        )
'''

AVG_POOL = """
def avg_pool(x: Tensor, stride: int = 1) -> Tensor:
    return F.avg_pool2d(x, 3, stride, 1, count_include_pad=False)
"""

MAX_POOL = """
def max_pool(x: Tensor, stride: int = 1) -> Tensor:
    return F.max_pool2d(x, 3, stride, 1)
"""

HALVING_STEM = '''
class HalvingStem(nn.Module):
    """Three convolutions of stride 2 before the cells: the outputs after two and after three of them."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        half = channels // 2
        first = [nn.Conv2d(channels_in, half, 3, 2, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU()]
        self.two = nn.Sequential(*first, nn.Conv2d(half, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels))
        self.three = ReluConvNorm(channels, channels, 3, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        two = self.two(x)
        return two, self.three(two)
'''
