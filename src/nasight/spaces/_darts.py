"""DARTS: a normal and a reduction cell of four nodes, each the sum of two of seven operations (Liu et al., 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from math import comb, prod
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Decision, Group, Space, Weights
from nasight.spaces._darts_network import DartsNetwork
from nasight.spaces._darts_text import INPUTS, KINDS, OPERATIONS, cell, edge_name, genotype_text, json_text, read
from nasight.spaces._nasbench201 import image_channels

if TYPE_CHECKING:
    from nasight.supernet import Supernet

NODES = 6
"""Two inputs, then the intermediate nodes."""

EDGES = tuple((source, target) for target in range(INPUTS, NODES) for source in range(target))
EVALUATION = {"channels": 36, "cells": 20}
"""The sizes at which the papers retrain; `Darts.sizes` are those at which they search."""


class Darts(Space):
    """The cells of DARTS: two inputs for each node of both cells, and an operation other than `none` on each.

    An edge that is not one of its node's two inputs has the option `none`. With `none=False` the architecture
    weights leave it out.

    >>> space = Darts()
    >>> a = space.parse("DARTS_V2")
    >>> a["normal 2->5"], a["normal 3->5"]
    ('dil_conv_3x3', 'none')
    """

    name = "darts"
    edge_weights: ClassVar[bool] = True
    partial_channels: ClassVar[bool] = True
    sizes: ClassVar[dict[str, int]] = {"channels": 16, "cells": 8}

    def __init__(self, *, none: bool = True) -> None:
        self.operations = OPERATIONS if none else OPERATIONS[1:]
        self.decisions = tuple(Decision(edge_name(kind, *edge), OPERATIONS) for kind in KINDS for edge in EDGES)

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        groups = [
            Group(kind, tuple(edge_name(kind, *edge) for edge in EDGES), (self.operations,) * len(EDGES))
            for kind in KINDS
        ]
        if edges:
            targets = range(INPUTS, NODES)
            for kind in KINDS:
                into = tuple(tuple(edge_name(kind, s, t) for s in range(t)) for t in targets)
                groups.append(Group(f"{kind}_edges", tuple(f"{kind} into {t}" for t in targets), into, exclusive=False))
        return tuple(groups)

    def derive(self, weights: Weights) -> Architecture:
        """Of each node's inputs the two with the largest alpha * beta of an operation other than `none`."""
        choices = dict[str, str]()
        first = 1 if self.operations[0] == "none" else 0
        for kind in KINDS:
            strength = weights[kind]
            if f"{kind}_edges" in weights:
                strength = strength * weights[f"{kind}_edges"][:, None]
            value, index = strength[:, first:].max(1)
            for target in range(INPUTS, NODES):
                into = [e for e, (_, t) in enumerate(EDGES) if t == target]
                # The sort is stable: of equal edges the earlier one is kept.
                kept = sorted(into, key=lambda e: -float(value[e]))[:2]
                for e in into:
                    option = self.operations[first + int(index[e])] if e in kept else "none"
                    choices[edge_name(kind, *EDGES[e])] = option
        return self.architecture(choices)

    def encode(self, arch: Architecture, *, edges: bool = False) -> dict[str, Tensor]:
        self._proper(arch)
        weights = dict[str, Tensor]()
        for kind in KINDS:
            options = [arch[edge_name(kind, *edge)] for edge in EDGES]
            weights[kind] = torch.tensor([[float(o == name) for name in self.operations] for o in options])
            if edges:
                weights[f"{kind}_edges"] = torch.tensor([0.5 * (o != "none") for o in options])
        return weights

    def sample(self, generator: torch.Generator) -> Architecture:
        """Two inputs of each node, uniform among the pairs, and uniform operations."""
        choices = {d.name: "none" for d in self.decisions}

        def draw(n: int) -> int:
            return int(torch.randint(n, (), generator=generator))

        for kind, target in product(KINDS, range(INPUTS, NODES)):
            pairs = list(combinations(range(target), 2))
            for source in pairs[draw(len(pairs))]:
                choices[edge_name(kind, source, target)] = OPERATIONS[1 + draw(len(OPERATIONS) - 1)]
        return self.architecture(choices)

    def architecture(self, choices: Mapping[str, str]) -> Architecture:
        arch = super().architecture(choices)
        for kind, target in product(KINDS, range(INPUTS, NODES)):
            kept = sum(arch[edge_name(kind, source, target)] != "none" for source in range(target))
            if kept != 2:
                raise RequestError(f"node {target} of the {kind} cell has {kept} inputs, it must have two")
        return arch

    def parse(self, text: str) -> Architecture:
        """From `Genotype(...)`, JSON or the name of a published cell.

        Published cells of other spaces (NASNet, AmoebaNet, ENAS) are read too: they have more decisions, `a+b`
        where two operations read the same input, and "normal concat" where not all nodes are joined. They are
        not `in` the space, but `network` builds them.
        """
        cells = read(text)
        choices = {name: option for kind in KINDS for name, option in cells[kind].choices(kind).items()}
        return Architecture(self.name, tuple(choices.items()))

    def format(self, arch: Architecture, *, style: str = "genotype") -> str:
        """`Genotype(...)`, or JSON with `style="json"`."""
        styles = {"genotype": genotype_text, "json": json_text}
        if style not in styles:
            raise RequestError(f"style must be one of {', '.join(styles)}, got {style!r}")
        self._of_this_kind(arch)
        return styles[style]({kind: cell(arch, kind) for kind in KINDS})

    def network(
        self,
        arch: Architecture,
        inputs: tuple[int, ...] = (3, 32, 32),
        classes: int = 10,
        *,
        auxiliary: bool = False,
        drop_path: float = 0.0,
        **size: Any,
    ) -> DartsNetwork:
        """The network that papers retrain: 36 channels and 20 cells unless `size` says otherwise."""
        self._of_this_kind(arch)
        image_channels(inputs)
        sizes = self.size(**{**EVALUATION, **size})
        cells = {kind: cell(arch, kind) for kind in KINDS}
        return DartsNetwork(cells, inputs, classes, auxiliary=auxiliary, drop_path=drop_path, **sizes)

    def questions(self) -> dict[str, tuple[str, ...]]:
        """For each node which pair of edges leads into it, then the operation on the one and on the other."""
        asked = dict[str, tuple[str, ...]]()
        for kind, target in product(KINDS, range(INPUTS, NODES)):
            edges = [edge_name(kind, source, target) for source in range(target)]
            node = f"{kind} {target}"
            asked[f"{node} inputs"] = tuple(f"{a}, {b}" for a, b in combinations(edges, 2))
            asked[f"{node} first"] = asked[f"{node} second"] = OPERATIONS[1:]
        return asked

    def answered(self, answers: Mapping[str, str]) -> Architecture:
        choices = {decision.name: "none" for decision in self.decisions}
        for name, option in answers.items():
            if name.endswith(" inputs"):
                node = name.removesuffix(" inputs")
                for place, edge in zip(("first", "second"), option.split(", "), strict=True):
                    choices[edge] = answers[f"{node} {place}"]
        return self.architecture(choices)

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        from nasight.supernet._darts import DartsSupernet

        return DartsSupernet(self, image_channels(inputs), classes, **how, **size)

    def __len__(self) -> int:
        operations = len(OPERATIONS) - 1
        return int(prod(comb(target, 2) * operations**2 for target in range(INPUTS, NODES)) ** len(KINDS))

    def __iter__(self) -> Iterator[Architecture]:
        """Lazily: there are about 10^18."""
        nodes = [
            [
                {edge_name(kind, s, t): o for s, o in zip(pair, options, strict=True)}
                for pair in combinations(range(t), 2)
                for options in product(OPERATIONS[1:], repeat=2)
            ]
            for kind, t in product(KINDS, range(INPUTS, NODES))
        ]
        for parts in product(*nodes):
            kept = {name: option for part in parts for name, option in part.items()}
            yield Architecture(self.name, tuple((d.name, kept.get(d.name, "none")) for d in self.decisions))

    def _of_this_kind(self, arch: Architecture) -> None:
        if arch.space != self.name:
            raise RequestError(f"this architecture is of space {arch.space!r}, not {self.name!r}")

    def _proper(self, arch: Architecture) -> None:
        self._of_this_kind(arch)
        self.architecture(dict(arch.choices))
