"""NAS-Bench-1Shot1: three spaces whose cells choose an operation at each node and which nodes it reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import combinations, product
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Space
from nasight.spaces._blocks import image_channels
from nasight.spaces._groups import Decision, Group, Weights
from nasight.spaces._source import Source
from nasight.spaces._supernet import Supernet
from nasight.spaces.nasbench1shot1._network import OPERATIONS, cell_network, leading_to_output
from nasight.spaces.nasbench1shot1._source import write
from nasight.spaces.nasbench1shot1._supernet import NasBench1Shot1Supernet

PARENTS = {1: (1, 2, 2, 2, 2), 2: (1, 1, 2, 2, 3), 3: (1, 1, 1, 2, 2, 2)}
"""For each space the number of inputs of node 1, 2, ... and, last, of the output."""


class NasBench1Shot1(Space):
    """Cells of 4 (spaces 1 and 2) or 5 (space 3) nodes, each with one operation and a fixed number of inputs.

    Node 0 is the cell's input, which enters a node through its own 1x1 convolution, batch norm and ReLU. A node
    applies its operation to the MEAN of its inputs. The cell's output concatenates the nodes, all scaled by one
    over the number of the output's inputs and zero where a node is not among these; if node 0 is, its projection
    to all channels is added with the same scale. Means, where NAS-Bench-101 takes sums, are the sums that
    weights on a simplex can express: 1/k for each of k inputs. Up to batch norm's epsilon the scale is invisible to
    every convolution that reads it. Nodes that do not lead to the output are left out of the stand-alone network, and
    so are channels that are always zero.

    The supernet is the released one. At `encode(arch)` its cells are those of the stand-alone network of `arch`, but
    in three places it is another function, as its publication and NAS-Bench-101 differ: node 2 of space 1, whose
    inputs have no weights, takes their sum; pools between stacks are padded; and a ReLU, a 1x1 convolution to
    4 * `channels` and a batch norm come before the head. With `sums` every chosen input enters the supernet with weight
    1 in place of 1/k, as the released code trains and ranks single architectures (RS-WS, ENAS).

    The spaces have 14,580, 29,160 and 1,312,200 architectures here, one for each answer to all decisions. The
    paper reports 6,240, 29,160 and 363,648: for spaces 1 and 3 it counts differently.

    >>> space = NasBench1Shot1(number=1)
    >>> a = space.parse("conv3x3-bn-relu(0)|maxpool3x3(0+1)|conv1x1-bn-relu(1+2)|maxpool3x3(0+3)|out(2+4)")
    >>> a["operation 3"], a["inputs out"], len(space)
    ('conv1x1-bn-relu', '2+4', 14580)
    """

    edge_weights: ClassVar[bool] = True
    channels_last: ClassVar[bool] = True
    partial_channels: ClassVar[bool] = True
    skip_dropout: ClassVar[bool] = True
    sizes: ClassVar[Mapping[str, int]] = {"channels": 16, "cells": 3}
    search_sizes: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "tiny": {"channels": 8, "cells": 1},
        "small": {"channels": 8, "cells": 1},
        "paper": {"channels": 16, "cells": 3},
    }
    train_settings: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"epochs": 8, "batch_size": 32, "lr": 0.05, "size": {"channels": 8, "cells": 1}},
        "small": {"epochs": 20, "lr": 0.05, "size": {"channels": 16, "cells": 2}},
    }
    score_size: ClassVar[Mapping[str, int]] = {"channels": 4, "cells": 3}
    thin_size: ClassVar[Mapping[str, int]] = {"channels": 1, "cells": 1}
    stages: ClassVar[int] = 3

    def __init__(self, number: int = 1, *, sums: bool = False) -> None:
        if number not in PARENTS:
            raise RequestError(f"NAS-Bench-1Shot1 has the spaces 1, 2 and 3, got number={number!r}")
        self.number, self.sums = number, sums
        self.name = f"nasbench1shot1-{number}"
        self.nodes = len(PARENTS[number]) - 1
        self.places = (*map(str, range(1, self.nodes + 1)), "out")
        """What has inputs: the nodes and the output; place i (from 0) may read the nodes 0 to i."""
        self.operation_names = tuple(f"operation {place}" for place in self.places[:-1])
        subsets = {
            f"inputs {place}": tuple("+".join(map(str, c)) for c in combinations(range(i + 1), PARENTS[number][i]))
            for i, place in enumerate(self.places)
        }
        self.forced = {name: options[0] for name, options in subsets.items() if len(options) == 1}
        """The places whose inputs are not a decision: there is one way to choose them."""
        self.decisions = (
            *(Decision(name, OPERATIONS) for name in self.operation_names),
            *(Decision(name, options) for name, options in subsets.items() if name not in self.forced),
        )

    @property
    def family(self) -> str:
        return "nasbench1shot1"

    @property
    def options(self) -> dict[str, Any]:
        return {"sums": True} if self.sums else {}

    @property
    def reference(self) -> Architecture:
        """3x3 convolutions one behind the other; where a place reads more, the cell's input and the nodes before."""
        choices = dict.fromkeys(self.operation_names, "conv3x3-bn-relu")
        for i, place in enumerate(self.places):
            nearest = [i, 0, *range(i - 1, 0, -1)]
            read = sorted(list(dict.fromkeys(nearest))[: PARENTS[self.number][i]])
            if f"inputs {place}" not in self.forced:
                choices[f"inputs {place}"] = "+".join(map(str, read))
        return self.architecture(choices)

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        """ "operations" (nodes, 3) and, flat, "inputs": for each decision on inputs a simplex over earlier nodes.

        Inputs always have weights here, so `edges` changes nothing.
        """
        free = [(i, f"inputs {place}") for i, place in enumerate(self.places) if f"inputs {place}" not in self.forced]
        return (
            Group("operations", self.operation_names, (OPERATIONS,) * self.nodes),
            Group(
                "inputs",
                tuple(n for _, n in free),
                tuple(tuple(map(str, range(i + 1))) for i, _ in free),
                exclusive=False,
            ),
        )

    def derive(self, weights: Weights) -> Architecture:
        """Arg max of a node's operations; of its candidate inputs those with the largest weights."""
        best = weights["operations"].argmax(1).tolist()
        choices = {name: OPERATIONS[i] for name, i in zip(self.operation_names, best, strict=True)}
        group = self.groups()[1]
        for name, row in zip(group.rows, group.split(weights["inputs"]), strict=True):
            count = PARENTS[self.number][self.places.index(name.removeprefix("inputs "))]
            largest = row.argsort(descending=True, stable=True)[:count].tolist()
            choices[name] = "+".join(map(str, sorted(largest)))
        return self.architecture(choices)

    def encode(self, arch: Architecture, *, edges: bool = False) -> dict[str, Tensor]:
        """Ones for the operations; one over their number, or with `sums` one, for the chosen inputs of a place."""
        self.checked(arch)
        operations, inputs = self.groups(edges=edges)
        index = torch.tensor([OPERATIONS.index(arch[name]) for name in self.operation_names])
        rows = list[Tensor]()
        for name, size in zip(inputs.rows, inputs.sizes, strict=True):
            chosen = [int(i) for i in arch[name].split("+")]
            row = torch.zeros(size)
            row[chosen] = 1.0 if self.sums else 1 / len(chosen)
            rows.append(row)
        return {operations.name: nn.functional.one_hot(index, len(OPERATIONS)).float(), inputs.name: torch.cat(rows)}

    def inputs_of(self, arch: Architecture) -> tuple[tuple[int, ...], ...]:
        """The inputs of node 1, 2, ... and, last, of the output."""
        texts = (arch.get(f"inputs {p}", self.forced.get(f"inputs {p}", "")) for p in self.places)
        return tuple(tuple(map(int, text.split("+"))) for text in texts)

    def parse(self, text: str) -> Architecture:
        """From 'operation(inputs)' for each node and 'out(inputs)', joined by '|'; inputs are joined by '+'."""
        entries = [entry.strip() for entry in text.strip().split("|")]
        if len(entries) != len(self.places):
            raise RequestError(
                f"a cell of {self.name} has {len(self.places)} parts joined by '|' ({self.nodes} nodes and 'out'), "
                f"this text has {len(entries)}: {text[:160]!r}"
            )
        choices = dict[str, str]()
        for i, (place, entry) in enumerate(zip(self.places, entries, strict=True)):
            match = re.fullmatch(r"([\w-]+)\((\d+(?:\+\d+)*)\)", entry)
            if match is None or (place == "out") != (match[1] == "out"):
                word = "out" if place == "out" else "operation"
                raise RequestError(f"part {i + 1}: expected '{word}(inputs)' such as {word}(0), got {entry!r}")
            if place != "out":
                if match[1] not in OPERATIONS:
                    raise RequestError(
                        f"part {i + 1}: unknown operation {match[1]!r}, not one of {', '.join(OPERATIONS)}"
                    )
                choices[f"operation {place}"] = match[1]
            inputs = self._inputs(i, match[2])
            if f"inputs {place}" not in self.forced:
                choices[f"inputs {place}"] = inputs
        return self.architecture(choices)

    def _inputs(self, place: int, text: str) -> str:
        numbers = sorted({int(n) for n in text.split("+")})
        count = PARENTS[self.number][place]
        if len(numbers) != count or len(text.split("+")) != count or numbers[-1] > place:
            among = "node 0" if place == 0 else f"{count} different nodes of 0 to {place}"
            raise RequestError(f"part {place + 1}: the inputs must be {among}, got {text!r}")
        return "+".join(map(str, numbers))

    def format(self, arch: Architecture) -> str:
        self.checked(arch)
        heads = (*(arch[name] for name in self.operation_names), "out")
        inputs = ("+".join(map(str, numbers)) for numbers in self.inputs_of(arch))
        return "|".join(f"{head}({text})" for head, text in zip(heads, inputs, strict=True))

    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        """Stem, three stacks of `cells` cells with `channels` a node, twice and four times as many, linear head."""
        self.checked(arch)
        operations = {n: arch[name] for n, name in enumerate(self.operation_names, 1)}
        return cell_network(self.inputs_of(arch), operations, image_channels(inputs), classes, **self.size(**size))

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        forced = [f"inputs {place}" in self.forced for place in self.places]
        return NasBench1Shot1Supernet(
            self.groups(), forced, image_channels(inputs), classes, path=how["path"], partial=how["partial"], **size
        )

    def counts_alike(self, arch: Architecture) -> Hashable:
        """The nodes that lead to the output: their operations, how many read the cell's input, and what is joined."""
        *read, outputs = inputs = self.inputs_of(arch)
        nodes = leading_to_output(inputs)
        kinds = tuple(sorted(Counter(arch[f"operation {n}"] for n in nodes).items()))
        return kinds, sum(0 in read[n - 1] for n in nodes), 0 in outputs, len(outputs)

    def lightest(self) -> tuple[Architecture, ...]:
        """Pools at every node, with all ways to choose their inputs."""
        pooled = dict.fromkeys(self.operation_names, OPERATIONS[0])
        free = [d for d in self.decisions if d.name not in pooled]
        return tuple(
            self.architecture({**pooled, **dict(zip((d.name for d in free), options, strict=True))})
            for options in product(*(d.options for d in free))
        )

    def source(self, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> Source:
        operations = {n: arch[name] for n, name in enumerate(self.operation_names, 1)}
        return write(self.inputs_of(arch), operations, image_channels(inputs), **self.size(**size))
