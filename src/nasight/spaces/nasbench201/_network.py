"""The stand-alone network of a NAS-Bench-201 cell."""

from __future__ import annotations

from functools import reduce
from operator import add

from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.spaces._blocks import ReluConvNorm, ResidualReduction, Zero, head, stem
from nasight.spaces.nasbench201._cell import NODES


def cell_network(arch: Architecture, colors: int, classes: int, *, channels: int, cells: int) -> nn.Sequential:
    """Stem, three stages of `cells` cells at `channels`, twice and four times as many, and a linear head."""
    layers = list[nn.Module]()
    for stage in range(3):
        width = channels * 2**stage
        layers.append(stem(colors, channels) if stage == 0 else ResidualReduction(width // 2, width))
        layers.extend(_Cell(arch, width) for _ in range(cells))
    return nn.Sequential(*layers, head(4 * channels, classes))


def bare_network(arch: Architecture, colors: int, classes: int) -> nn.Sequential:
    """One cell on the image itself, with as many channels as that has, and a linear head."""
    return nn.Sequential(_Cell(arch, colors), head(colors, classes))


class _Cell(nn.Module):
    def __init__(self, arch: Architecture, channels: int) -> None:
        super().__init__()
        self.edges = nn.ModuleDict({name.replace("->", "_"): _operation(op, channels) for name, op in arch.choices})

    def forward(self, x: Tensor) -> Tensor:
        nodes = [x]
        for target in range(1, NODES):
            nodes.append(reduce(add, [self.edges[f"{s}_{target}"](nodes[s]) for s in range(target)]))
        return nodes[-1]


def _operation(name: str, channels: int) -> nn.Module:
    if name == "none":
        return Zero()
    if name == "skip_connect":
        return nn.Identity()
    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    return ReluConvNorm(channels, channels, 3 if name == "nor_conv_3x3" else 1)
