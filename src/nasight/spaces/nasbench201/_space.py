"""NAS-Bench-201: four nodes, six edges, one of five operations on each (Dong & Yang, 2020)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Space
from nasight.spaces._blocks import image_channels
from nasight.spaces._graph import CellGraph
from nasight.spaces._groups import Decision, Group
from nasight.spaces._source import Source
from nasight.spaces._supernet import Supernet
from nasight.spaces.nasbench201._cell import EDGES, ENTERING, NODES, OPERATIONS, edge_name
from nasight.spaces.nasbench201._graph import KIND, choices_of, to_graph
from nasight.spaces.nasbench201._network import bare_network, cell_network
from nasight.spaces.nasbench201._source import write
from nasight.spaces.nasbench201._supernet import NasBench201Supernet

RESIDUAL = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|skip_connect~2|"
BENCHMARK = {"lr": 0.1, "nesterov": True, "weight_decay": 5e-4, "clip": None}
"""How the benchmark trains."""


class NasBench201(Space):
    """The 15,625 cells of NAS-Bench-201, or the 4,096 without `none`.

    >>> space = NasBench201()
    >>> a = space.parse("|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|")
    >>> a["1->2"], len(space)
    ('skip_connect', 15625)
    """

    name = "nasbench201"
    edge_weights: ClassVar[bool] = True
    channels_last: ClassVar[bool] = True
    partial_channels: ClassVar[bool] = True
    constants: ClassVar[bool] = True
    per_example: ClassVar[bool] = True
    skip_dropout: ClassVar[bool] = True
    sizes: ClassVar[Mapping[str, int]] = {"channels": 16, "cells": 5}
    search_sizes: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "tiny": {"channels": 8, "cells": 1},
        "small": {"channels": 8, "cells": 1},
        "paper": {"channels": 16, "cells": 5},
    }
    train_settings: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"epochs": 8, "batch_size": 32, "lr": 0.05, "size": {"channels": 8, "cells": 1}},
        "small": {"epochs": 12, "batch_size": 128, **BENCHMARK, "size": {"channels": 16, "cells": 2}},
        # Dong & Yang (2020), Table 1.
        "paper": {"epochs": 200, "batch_size": 256, **BENCHMARK, "size": {"channels": 16, "cells": 5}},
    }
    # As deep as the benchmark trains them: with one cell per stage the trace of the kernel ranked them the wrong way.
    score_size: ClassVar[Mapping[str, int]] = {"channels": 4, "cells": 5}
    prune_size: ClassVar[Mapping[str, int]] = {"channels": 3, "cells": 1}
    thin_size: ClassVar[Mapping[str, int]] = {"channels": 1, "cells": 1}
    # GAEA, C.3: `none` is left out, and the cosine of 25 epochs is laid over 50, so the rate ends half-way.
    search_options: ClassVar[Mapping[str, Any]] = {"none": False}
    cosine_stretch: ClassVar[float] = 2.0
    stages: ClassVar[int] = 3

    def __init__(self, *, none: bool = True) -> None:
        self.operations = OPERATIONS if none else OPERATIONS[1:]
        self.decisions = tuple(Decision(edge_name(*edge), self.operations) for edge in EDGES)

    @property
    def options(self) -> dict[str, Any]:
        return {"none": "none" in self.operations}

    @property
    def reference(self) -> Architecture:
        """The residual cell: two 3x3 convolutions beside a skip (Dong & Yang, 2020)."""
        return NasBench201().parse(RESIDUAL)

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        names = tuple(d.name for d in self.decisions)
        groups = [Group("operations", names, (self.operations,) * len(EDGES))]
        if edges:
            into = tuple(tuple(edge_name(s, t) for s in range(t)) for t in range(1, NODES))
            groups.append(Group("edges", tuple(f"into {t}" for t in range(1, NODES)), into, exclusive=False))
        return tuple(groups)

    def encode(self, arch: Architecture, *, edges: bool = False) -> dict[str, Tensor]:
        """One for the operation of an edge, zeros where that is `none` and the space leaves it out."""
        self._written(arch)
        rows = [[float(option == chosen) for option in self.operations] for _, chosen in arch]
        weights = {"operations": torch.tensor(rows)}
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
        self._written(arch)
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
        self._written(arch)
        reason = self.usable(arch)
        if reason is not None:
            raise RequestError(f"{self.format(arch)} is not a network: {reason}")
        return cell_network(arch, image_channels(inputs), classes, **self.size(**size))

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        groups = self.groups(edges=how["edges"])
        return NasBench201Supernet(
            groups, image_channels(inputs), classes, path=how["path"], partial=how["partial"], **size
        )

    def thin_network(self, arch: Architecture, inputs: tuple[int, ...], classes: int, **size: Any) -> nn.Module:
        """One cell on the image itself and the head (TE-NAS, released code)."""
        self._written(arch)
        return bare_network(arch, image_channels(inputs), classes)

    def pruning_supernet(
        self, inputs: tuple[int, ...], classes: int, *, thin: bool = False, **size: Any
    ) -> NasBench201Supernet:
        """With batch norms that learn scale and shift; thin: one cell on the image itself (TE-NAS, released code)."""
        sizes, colors = self.size(**size), image_channels(inputs)
        how = {"path": "plain", "partial": 1, "affine": True, "bare": thin}
        return NasBench201Supernet(self.groups(), colors, classes, **how, **sizes)  # type: ignore[arg-type]

    def counts_alike(self, arch: Architecture) -> Hashable:
        counted = Counter(option for _, option in arch.choices)
        return counted["nor_conv_1x1"], counted["nor_conv_3x3"]

    def lightest(self) -> tuple[Architecture, ...]:
        return (self.architecture({d.name: "skip_connect" for d in self.decisions}),)

    def cells(self, arch: Architecture) -> dict[str, CellGraph]:
        return {KIND: to_graph(arch)}

    def from_cells(self, cells: Mapping[str, CellGraph]) -> Architecture:
        return self.architecture(choices_of(cells[KIND]))

    def read_cells(self, text: str) -> dict[str, CellGraph] | None:
        return self.cells(self.parse(text)) if text.startswith("|") else None

    def source(self, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> Source:
        return write(arch, image_channels(inputs), **self.size(**size))

    def _written(self, arch: Architecture) -> None:
        """Refuse what is no cell of the benchmark; one with `none` is a cell although a search may leave it out."""
        if arch.space != self.name or not self._all(arch):
            self.checked(arch)

    def _all(self, arch: Architecture) -> bool:
        return [name for name, _ in arch] == [d.name for d in self.decisions] and all(o in OPERATIONS for _, o in arch)
