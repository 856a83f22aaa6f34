"""NAS-Bench-201: four nodes, six edges, one of five operations on each (Dong & Yang, 2020)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Decision, Group, Space, Weights
from nasight.spaces._blocks import ReluConvNorm, ResidualReduction, Zero, head, stem

if TYPE_CHECKING:
    from nasight.supernet import Supernet

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
NODES = 4
EDGES = tuple((source, target) for target in range(1, NODES) for source in range(target))
"""(source, target) in the order in which the benchmark's strings list them."""


def edge_name(source: int, target: int) -> str:
    return f"{source}->{target}"


ENTERING = tuple(tuple((source, edge_name(source, target)) for source in range(target)) for target in range(1, NODES))
"""For each node after the first: (source, name) of the edges that enter it."""


class NasBench201(Space):
    """The 15,625 cells of NAS-Bench-201, or the 4,096 without `none`.

    >>> space = NasBench201()
    >>> a = space.parse("|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|")
    >>> a["1->2"], len(space)
    ('skip_connect', 15625)
    """

    name = "nasbench201"
    edge_weights: ClassVar[bool] = True
    partial_channels: ClassVar[bool] = True
    sizes: ClassVar[dict[str, int]] = {"channels": 16, "cells": 5}

    def __init__(self, *, none: bool = True) -> None:
        self.operations = OPERATIONS if none else OPERATIONS[1:]
        self.decisions = tuple(Decision(edge_name(*edge), self.operations) for edge in EDGES)

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        names = tuple(d.name for d in self.decisions)
        groups = [Group("operations", names, (self.operations,) * len(EDGES))]
        if edges:
            into = tuple(tuple(edge_name(s, t) for s in range(t)) for t in range(1, NODES))
            groups.append(Group("edges", tuple(f"into {t}" for t in range(1, NODES)), into, exclusive=False))
        return tuple(groups)

    def derive(self, weights: Weights) -> Architecture:
        """Arg max on every edge; nothing is pruned, so edge weights do not matter here."""
        best = weights["operations"].argmax(1).tolist()
        return self.architecture({d.name: self.operations[i] for d, i in zip(self.decisions, best, strict=True)})

    def encode(self, arch: Architecture, *, edges: bool = False) -> dict[str, Tensor]:
        index = torch.tensor([self.operations.index(option) for _, option in self.checked(arch)])
        weights = {"operations": nn.functional.one_hot(index, len(self.operations)).float()}
        if edges:
            weights["edges"] = self.groups(edges=True)[1].uniform()
        return weights

    def parse(self, text: str) -> Architecture:
        rows = text.strip().split("+")
        if len(rows) != NODES - 1:
            raise RequestError(
                f"a NAS-Bench-201 cell has {NODES - 1} parts joined by '+', this text has {len(rows)}: {text[:120]!r}"
            )
        choices: dict[str, str] = {}
        for target, row in enumerate(rows, 1):
            if not (row.startswith("|") and row.endswith("|") and len(row) > 1):
                raise RequestError(f"part {target} must start and end with '|', got {row!r}")
            entries = row[1:-1].split("|")
            if len(entries) != target:
                raise RequestError(
                    f"part {target} must have {target} 'operation~input', it has {len(entries)}: {row!r}"
                )
            for source, entry in enumerate(entries):
                choices[edge_name(source, target)] = self._operation(entry, source, target)
        return self.architecture(choices)

    def _operation(self, entry: str, source: int, target: int) -> str:
        match = re.fullmatch(r"(\w+)~(\d+)", entry)
        where = f"part {target}, entry {source + 1}"
        if match is None:
            raise RequestError(f"{where}: expected 'operation~{source}', got {entry!r}")
        if int(match[2]) != source:
            raise RequestError(f"{where}: the input must be {source}, got {match[2]} in {entry!r}")
        if match[1] not in self.operations:
            raise RequestError(f"{where}: unknown operation {match[1]!r}, not one of {', '.join(self.operations)}")
        return match[1]

    def format(self, arch: Architecture) -> str:
        self.checked(arch)
        rows = ("|" + "".join(f"{arch[edge_name(s, t)]}~{s}|" for s in range(t)) for t in range(1, NODES))
        return "+".join(rows)

    def canonical(self, arch: Architecture) -> str:
        """The benchmark's form of a cell: the expression it computes, the same for isomorphic cells (6,466 in all).

        A node is the sorted sum of what enters it, `skip_connect` is its input, and `none` is '#'. This is the
        published form to the letter, with its two limits. It keeps zeros and sorts sums as texts: with zeros
        dropped and sums flattened, 4,930 expressions would remain. And it does not see weights: where an expression
        has a convolution of the same input twice, one cell may compute it once and another with two sets of weights
        (1,786 cells in 430 of the forms are with cells of other convolutions).
        """
        nodes, choices = ["0"], dict(arch.choices)
        for entering in ENTERING:
            terms = []
            for source, edge in entering:
                operation, before = choices[edge], nodes[source]
                if operation == "none" or before == "#":
                    terms.append("#")
                else:
                    terms.append(before if operation == "skip_connect" else f"({before})@{operation}")
            nodes.append("+".join(sorted(terms)))
        return nodes[-1]

    def usable(self, arch: Architecture) -> str | None:
        reached = {0}
        for source, target in EDGES:
            if source in reached and arch[edge_name(source, target)] != "none":
                reached.add(target)
        return None if NODES - 1 in reached else "no path of operations leads from the cell's input to its output"

    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        """Stem, three stages of `cells` cells at `channels`, twice and four times as many, and a linear head."""
        self.checked(arch)
        reason = self.usable(arch)
        if reason is not None:
            raise RequestError(f"{self.format(arch)} is not a network: {reason}")
        sizes, colours = self.size(**size), image_channels(inputs)
        c, layers = sizes["channels"], list[nn.Module]()
        for stage in range(3):
            width = c * 2**stage
            layers.append(stem(colours, c) if stage == 0 else ResidualReduction(width // 2, width))
            layers.extend(_Cell(arch, width) for _ in range(sizes["cells"]))
        return nn.Sequential(*layers, head(4 * c, classes))

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        from nasight.supernet._nasbench201 import NasBench201Supernet

        return NasBench201Supernet(self, image_channels(inputs), classes, **how, **size)


def image_channels(inputs: tuple[int, ...]) -> int:
    """The channels of an image shape; anything else is refused."""
    if len(inputs) != 3:
        raise RequestError(f"this space needs images (channels, height, width), got examples of shape {tuple(inputs)}")
    return int(inputs[0])


class _Cell(nn.Module):
    def __init__(self, arch: Architecture, channels: int) -> None:
        super().__init__()
        self.edges = nn.ModuleDict({name.replace("->", "_"): _operation(op, channels) for name, op in arch.choices})

    def forward(self, x: Tensor) -> Tensor:
        nodes = [x]
        for target in range(1, NODES):
            nodes.append(torch.stack([self.edges[f"{s}_{target}"](nodes[s]) for s in range(target)]).sum(0))
        return nodes[-1]


def _operation(name: str, channels: int) -> nn.Module:
    if name == "none":
        return Zero()
    if name == "skip_connect":
        return nn.Identity()
    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    return ReluConvNorm(channels, channels, 3 if name == "nor_conv_3x3" else 1)
