"""The network of a NAS-Bench-201 cell as source."""

from __future__ import annotations

from nasight.architecture import Architecture
from nasight.spaces import _templates as t
from nasight.spaces._source import Source, module_text
from nasight.spaces.nasbench201._cell import EDGES, NODES, edge_name


def write(arch: Architecture, colors: int, *, channels: int, cells: int) -> Source:
    """Modules are registered in the order of nasight's own network, so that weights can be carried over."""
    options = {edge: arch[edge_name(*edge)] for edge in EDGES}
    alive = _leading_to_output(options)
    made, lines = list[str](), list[str]()
    for source, target in EDGES:
        kernel = {"nor_conv_1x1": 1, "nor_conv_3x3": 3}.get(options[source, target])
        if kernel is not None:
            unused = "" if target in alive else "  # leads nowhere; kept so that trained weights fit"
            made.append(f"self.conv_{source}_{target} = ReluConvNorm(channels, channels, {kernel}){unused}")
    for target in range(1, NODES):
        if target in alive:
            terms = [_term(options[source, target], source, target) for source in range(target)]
            kept = [term for term in terms if term] or ["torch.zeros_like(x0)"]
            lines.append(f"x{target} = {' + '.join(kept)}" if target < NODES - 1 else f"return {' + '.join(kept)}")
    cell_text = module_text(
        "Cell", "The cell that was found: x1 and x2 are its inner nodes.", "channels: int", made, "x0: Tensor", lines
    )
    pools = [t.AVG_POOL] if any("avg_pool" in line for line in lines) else []
    network = f'''
class Network(nn.Module):
    """Stem, three stages of cells at {channels}, twice and four times as many channels, linear head."""

    def __init__(self, classes: int = CLASSES, colors: int = {colors}) -> None:
        super().__init__()
        channels, cells = {channels}, {cells}
        stem = [nn.Conv2d(colors, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
        layers = [nn.Sequential(*stem), *(Cell(channels) for _ in range(cells))]
        for width in (2 * channels, 4 * channels):
            layers += [ResidualReduction(width // 2, width), *(Cell(width) for _ in range(cells))]
        self.body = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(4 * channels)
        self.classifier = nn.Linear(4 * channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        features = torch.relu(self.norm(self.body(x)))
        return self.classifier(features.mean((2, 3)))
'''
    blocks = [*pools, t.RELU_CONV_NORM, t.RESIDUAL_REDUCTION, cell_text, network]
    return Source(blocks, {"channels": channels, "cells": cells})


def _term(option: str, source: int, target: int) -> str:
    if option == "none":
        return ""
    if option == "skip_connect":
        return f"x{source}"
    return f"avg_pool(x{source})" if option == "avg_pool_3x3" else f"self.conv_{source}_{target}(x{source})"


def _leading_to_output(options: dict[tuple[int, int], str]) -> set[int]:
    alive = {NODES - 1}
    for source, target in sorted(EDGES, key=lambda edge: -edge[1]):
        if target in alive and options[source, target] != "none":
            alive.add(source)
    return alive
