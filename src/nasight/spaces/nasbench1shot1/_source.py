"""The network of a NAS-Bench-1Shot1 cell as source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nasight.spaces import _templates as t
from nasight.spaces._source import Source, module_text
from nasight.spaces.nasbench1shot1._network import leading_to_output


def write(
    inputs: Sequence[Sequence[int]], operations: Mapping[int, str], colors: int, *, channels: int, cells: int
) -> Source:
    """The cell and the network; `inputs` are those of the nodes and, last, of the output."""
    *read, outputs = inputs
    nodes, past = leading_to_output(inputs), 0 in outputs
    kinds = {node: operations[node] for node in nodes}
    made = [
        f"self.conv_{n} = ConvNormRelu(channels, channels, {3 if kinds[n].startswith('conv3x3') else 1})"
        for n in nodes
        if kinds[n] != "maxpool3x3"
    ]
    made += [f"self.input_to_{n} = ConvNormRelu(channels_in, channels, 1)" for n in nodes if 0 in read[n - 1]]
    if past:
        made.append(f"self.input_to_out = ConvNormRelu(channels_in, {len(read)} * channels, 1)")
    lines = list[str]()
    for node in nodes:
        terms = [f"self.input_to_{node}(x)" if source == 0 else f"x{source}" for source in read[node - 1]]
        mean = terms[0] if len(terms) == 1 else f"({' + '.join(terms)}) / {len(terms)}"
        lines.append(f"x{node} = {'max_pool' if kinds[node] == 'maxpool3x3' else f'self.conv_{node}'}({mean})")
    blocks = tuple(range(1, len(read) + 1)) if past else outputs
    if any(n not in outputs for n in blocks):
        lines.append(f"nothing = torch.zeros_like(x{nodes[0]})")
    joined = f"torch.cat([{', '.join(f'x{n}' if n in outputs else 'nothing' for n in blocks)}], 1)"
    lines.append(
        f"return ({joined} + self.input_to_out(x)) / {len(outputs)}" if past else f"return {joined} / {len(outputs)}"
    )
    cell_text = module_text(
        "Cell",
        "The cell that was found: x1, x2, ... are its nodes.",
        "channels_in: int, channels: int",
        made,
        "x: Tensor",
        lines,
    )
    network = f'''
class Network(nn.Module):
    """Convolution, three stacks of cells at {channels}, twice and four times as many channels, linear head."""

    def __init__(self, classes: int = CLASSES, colors: int = {colors}) -> None:
        super().__init__()
        channels, cells = {channels}, {cells}
        layers: list[nn.Module] = [ConvNormRelu(colors, channels, 3)]
        width = channels
        for stack in range(3):
            if stack:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
            for _ in range(cells):
                layers.append(Cell(width, channels * 2**stack))
                width = {len(blocks)} * channels * 2**stack
        self.body = nn.Sequential(*layers)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.body(x).mean((2, 3)))
'''
    pools = [t.MAX_POOL] if any("max_pool" in line for line in lines) else []
    return Source([*pools, t.CONV_NORM_RELU, cell_text, network], {"channels": channels, "cells": cells})
