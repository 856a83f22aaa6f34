"""The network of two DARTS cells as source."""

from __future__ import annotations

from collections.abc import Mapping

from nasight.spaces import _templates as t
from nasight.spaces._source import Source, indented
from nasight.spaces.darts._text import INPUTS, Cell

PLAIN = """        before = last = 3 * channels
        self.stem = nn.Sequential(nn.Conv2d(colors, last, 3, padding=1, bias=False), nn.BatchNorm2d(last))
        after_reduction = False
---
before = last = self.stem(x)"""
HALVED = """        before = last = channels
        self.stem = HalvingStem(colors, channels)
        after_reduction = True
---
before, last = self.stem(x)"""
SEPARABLE = {"sep_conv": "SeparableConv", "dil_conv": "DilatedConv"}


def write(designs: Mapping[str, Cell], colors: int, *, channels: int, cells: int, stem: int = 0) -> Source:
    """Both cells and the network, without the auxiliary head and drop path, which are for training."""
    texts = [_darts_cell("NormalCell", designs["normal"], 1), _darts_cell("ReductionCell", designs["reduce"], 2)]
    joined = "\n".join(texts)
    begin, start = (HALVED if stem else PLAIN).split("---\n")
    network = f'''
class Network(nn.Module):
    """Stem, {cells} cells with a reduction after each third, global pooling, linear layer."""

    def __init__(self, classes: int = CLASSES, colors: int = {colors}) -> None:
        super().__init__()
        channels, cells = {channels}, {cells}
{begin}        self.cells = nn.ModuleList()
        for index in range(cells):
            reduction = index in (cells // 3, 2 * cells // 3)
            channels *= 2 if reduction else 1
            kind = ReductionCell if reduction else NormalCell
            self.cells.append(kind(before, last, channels, after_reduction))
            before, last, after_reduction = last, kind.joined * channels, reduction
        self.classifier = nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        {start}
        for cell in self.cells:
            before, last = last, cell(before, last)
        return self.classifier(last.mean((2, 3)))
'''
    used = {
        "SeparableConv(": t.SEPARABLE_CONV,
        "DilatedConv(": t.DILATED_CONV,
        "FactorizedConv(": t.FACTORIZED_CONV,
        "avg_pool(": t.AVG_POOL,
        "max_pool(": t.MAX_POOL,
    }
    operations = [text for word, text in used.items() if word in joined]
    stems = [t.HALVING_STEM] if stem else []
    blocks = [t.RELU_CONV_NORM, t.FACTORIZED_REDUCE, *stems, *operations, *texts, network]
    return Source(blocks, {"channels": channels, "cells": cells, **({"stem": stem} if stem else {})})


def _darts_cell(name: str, design: Cell, stride: int) -> str:
    made, lines, terms = list[str](), list[str](), list[str]()
    for number, (node, source, option) in enumerate(design.entries):
        step = stride if source < INPUTS else 1
        made_here, term = _darts_edge(option, source, node, step, number % 2)
        made += [made_here] if made_here else []
        terms.append(term)
        if len(terms) == 2:
            lines.append(f"x{node} = {terms[0]} + {terms[1]}")
            terms.clear()
    lines.append(f"return torch.cat([{', '.join(f'x{n}' for n in design.concat)}], 1)")
    # A node that nothing reads would be a variable without a use.
    text = "\n".join(lines)
    lines = [line for line in lines if line.startswith("return") or text.count(line.split(" ")[0]) > 1]
    what = "reduction" if stride == 2 else "normal"
    return f'''
class {name}(nn.Module):
    """The {what} cell that was found: x0 and x1 come from the two cells before."""

    joined = {len(design.concat)}

    def __init__(self, before: int, last: int, channels: int, after_reduction: bool) -> None:
        super().__init__()
        fit = FactorizedReduce(before, channels) if after_reduction else ReluConvNorm(before, channels, 1)
        self.fit_0, self.fit_1 = fit, ReluConvNorm(last, channels, 1)
{indented(made)}
    def forward(self, before: Tensor, last: Tensor) -> Tensor:
        x0, x1 = self.fit_0(before), self.fit_1(last)
{indented(lines)}'''


def _darts_edge(option: str, source: int, node: int, stride: int, place: int) -> tuple[str, str]:
    """The line that makes the operation of an edge, if it has parameters, and the term of the sum."""
    strided = ", stride=2" if stride == 2 else ""
    if option == "none":
        return "", f"torch.zeros_like(x{source}[..., ::{stride}, ::{stride}])"
    if option in ("max_pool_3x3", "avg_pool_3x3"):
        return "", f"{option[:8]}(x{source}{strided})"
    if option == "skip_connect" and stride == 1:
        return "", f"x{source}"
    # Two operations of a node may read the same input, so the name tells them apart.
    name = f"self.op_{node}{'ab'[place]}"
    if option == "skip_connect":
        return f"{name} = FactorizedReduce(channels, channels)", f"{name}(x{source})"
    if option == "conv_7x1_1x7":
        return f"{name} = FactorizedConv(channels{strided})", f"{name}(x{source})"
    return f"{name} = {SEPARABLE[option[:8]]}(channels, {option[-1]}{strided})", f"{name}(x{source})"
