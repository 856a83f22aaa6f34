"""The stand-alone network of a NAS-Bench-1Shot1 cell, and the blocks that its supernet shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nasight.spaces._blocks import ConvNormRelu

OPERATIONS = ("maxpool3x3", "conv3x3-bn-relu", "conv1x1-bn-relu")


def cell_network(
    inputs: Sequence[Sequence[int]],
    operations: Mapping[int, str],
    colors: int,
    classes: int,
    *,
    channels: int,
    cells: int,
) -> nn.Sequential:
    """Stem, three stacks of `cells` cells with `channels` per node, twice and four times as many, linear head.

    `inputs` are those of node 1, 2, ... and, last, of the output; `operations` are those of the nodes.
    """
    width = channels
    layers: list[nn.Module] = [ConvNormRelu(colors, width, 3)]
    for stack in range(3):
        if stack:
            layers.append(downsample())
        for _ in range(cells):
            cell = _Cell(inputs, operations, width, channels * 2**stack)
            layers.append(cell)
            width = cell.width
    return nn.Sequential(*layers, pooled_head(width, classes))


def leading_to_output(inputs: Sequence[Sequence[int]]) -> list[int]:
    """The nodes that the output depends on, the cell's input (0) left out."""
    *read, outputs = inputs
    alive = set(outputs)
    for node in range(len(read), 0, -1):
        if node in alive:
            alive.update(read[node - 1])
    return sorted(alive - {0})


def downsample() -> nn.Module:
    """Half the size; odd sizes are rounded up, so that small images survive."""
    return nn.MaxPool2d(2, ceil_mode=True)


def pooled_head(channels: int, classes: int) -> nn.Sequential:
    """Global pooling and linear layer."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class _Cell(nn.Module):
    """`width` is the number of its output's channels."""

    def __init__(
        self, inputs: Sequence[Sequence[int]], operations: Mapping[int, str], channels_in: int, channels: int
    ) -> None:
        super().__init__()
        *read_by, self.outputs = inputs
        nodes = len(read_by)
        self.inputs = {node: read_by[node - 1] for node in leading_to_output(inputs)}
        self.operations = nn.ModuleDict({str(n): _operation(operations[n], channels) for n in self.inputs})
        self.projections = nn.ModuleDict(
            {str(n): ConvNormRelu(channels_in, channels, 1) for n, read in self.inputs.items() if 0 in read}
        )
        self.past = ConvNormRelu(channels_in, channels * nodes, 1) if 0 in self.outputs else None
        # Beside the projected input every node has its channels, alone only those of the output's inputs do.
        self.blocks = tuple(range(1, nodes + 1)) if self.past is not None else self.outputs
        self.width = channels * len(self.blocks)

    def forward(self, x: Tensor) -> Tensor:
        states = dict[int, Tensor]()
        for node, read in self.inputs.items():
            parts = [self.projections[str(node)](x) if source == 0 else states[source] for source in read]
            states[node] = self.operations[str(node)](torch.stack(parts).mean(0))
        nothing = torch.zeros_like(next(iter(states.values())))
        out = torch.cat([states[n] if n in self.outputs else nothing for n in self.blocks], 1)
        if self.past is not None:
            out = out + self.past(x)
        return out / len(self.outputs)


def _operation(name: str, channels: int) -> nn.Module:
    if name == "maxpool3x3":
        return nn.MaxPool2d(3, 1, 1)
    return ConvNormRelu(channels, channels, 3 if name == "conv3x3-bn-relu" else 1)
