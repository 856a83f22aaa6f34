"""DARTS: a normal and a reduction cell of four nodes, each the sum of two of seven operations (Liu et al., 2019)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import comb, prod
from typing import Any, ClassVar

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._alternatives import Alternatives
from nasight.spaces._base import Space
from nasight.spaces._blocks import image_channels
from nasight.spaces._form import NetworkForm
from nasight.spaces._graph import CellGraph
from nasight.spaces._groups import Decision, Group, Weights
from nasight.spaces._source import Source
from nasight.spaces._supernet import Supernet
from nasight.spaces.darts._graph import from_graph, read_graphs, to_graph
from nasight.spaces.darts._network import DartsNetwork
from nasight.spaces.darts._pools import NAME, pools, pools_but
from nasight.spaces.darts._popular import FOUND_BY, IMAGENET_CELLS, PAPERS
from nasight.spaces.darts._source import write
from nasight.spaces.darts._supernet import DartsSupernet
from nasight.spaces.darts._text import (
    EDGES,
    INPUTS,
    KINDS,
    NODES,
    OPERATIONS,
    cell,
    edge_name,
    genotype_text,
    json_text,
    read,
)

EVALUATION = {"channels": 36, "cells": 20}
"""The sizes at which the papers retrain; `Darts.sizes` are those at which they search."""
IMAGENET = {"channels": 48, "cells": 14, "stem": 3}
"""The sizes at which they retrain on ImageNet."""
ON_IMAGENET = NetworkForm("ImageNet", (3, 224, 224), 1000, IMAGENET)


class Darts(Space):
    """The cells of DARTS: two inputs for each node of both cells, and an operation other than `none` on each.

    An edge that is not one of its node's two inputs has the option `none`. With `none=False` the architecture
    weights leave it out.

    >>> space = Darts()
    >>> a = space.parse("DARTS_V2")
    >>> a["normal 2->5"], a["normal 3->5"]
    ('dil_conv_3x3', 'none')
    """

    name = NAME
    edge_weights: ClassVar[bool] = True
    channels_last: ClassVar[bool] = True
    partial_channels: ClassVar[bool] = True
    skip_dropout: ClassVar[bool] = True
    per_example: ClassVar[bool] = True
    sizes: ClassVar[Mapping[str, int]] = {"channels": 16, "cells": 8}
    optional_sizes: ClassVar[Mapping[str, int]] = {"stem": 0}
    search_sizes: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "tiny": {"channels": 4, "cells": 3},
        "small": {"channels": 8, "cells": 5},
        "paper": {"channels": 16, "cells": 8},
    }
    train_settings: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"epochs": 8, "batch_size": 32, "lr": 0.05, "size": {"channels": 8, "cells": 3}},
        "small": {"epochs": 20, "size": {"channels": 16, "cells": 8}},
        # Liu et al. (2019), Section 3.2; the evaluation that GAEA repeats.
        "paper": {"epochs": 600, "cutout": 16, "auxiliary": True, "drop_path": 0.3, "size": EVALUATION},
        # PC-DARTS's released ImageNet training, which GAEA repeats.
        "imagenet": {
            "epochs": 250,
            "batch_size": 1024,
            "lr": 0.5,
            "schedule": "linear",
            "lr_warmup": 5,
            "weight_decay": 3e-5,
            "label_smoothing": 0.1,
            "auxiliary": True,
            "size": IMAGENET,
        },
        # DARTS's own.
        "imagenet-darts": {
            "epochs": 250,
            "batch_size": 128,
            "lr": 0.1,
            "schedule": "exponential",
            "weight_decay": 3e-5,
            "label_smoothing": 0.1,
            "auxiliary": True,
            "size": IMAGENET,
        },
    }
    photo_pixels: ClassVar[Mapping[str, int]] = {"imagenet": 224, "imagenet-darts": 224}
    score_size: ClassVar[Mapping[str, int]] = {"channels": 4, "cells": 8}
    thin_size: ClassVar[Mapping[str, int]] = {"channels": 2, "cells": 3}
    study_cells: ClassVar[int] = 5
    repeated_inputs: ClassVar[bool] = True
    published: ClassVar[Mapping[str, str]] = PAPERS
    found_by: ClassVar[Mapping[str, str]] = FOUND_BY
    transferred: ClassVar[Mapping[str, NetworkForm]] = dict.fromkeys(IMAGENET_CELLS, ON_IMAGENET)
    pruned: ClassVar[str | None] = "none"

    def __init__(self, *, none: bool = True) -> None:
        self.operations = OPERATIONS if none else OPERATIONS[1:]
        self.decisions = tuple(Decision(edge_name(kind, *edge), OPERATIONS) for kind in KINDS for edge in EDGES)

    @property
    def options(self) -> dict[str, Any]:
        return {"none": "none" in self.operations}

    @property
    def reference(self) -> Architecture:
        """The cells that DARTS published (second order)."""
        return self.parse("DARTS_V2")

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
        groups = self.groups(edges=how["edges"])
        return DartsSupernet(groups, image_channels(inputs), classes, path=how["path"], partial=how["partial"], **size)

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

    def usable(self, arch: Architecture) -> str | None:
        """Always in the space proper; a published cell with `none` may cut its output off."""
        for kind in KINDS:
            read = cell(arch, kind)
            reached = set(range(INPUTS))
            for node, source, operation in read.entries:
                if operation != "none" and source in reached:
                    reached.add(node)
            if not reached.intersection(read.concat):
                return f"no path of operations leads from the inputs of the {kind} cell to its output"
        return None

    def _of_this_kind(self, arch: Architecture) -> None:
        if arch.space != self.name:
            raise RequestError(f"this architecture is of space {arch.space!r}, not {self.name!r}")

    def _proper(self, arch: Architecture) -> None:
        self._of_this_kind(arch)
        self.architecture(dict(arch.choices))

    def alternatives(self, arch: Architecture, weights: Weights) -> Iterator[Alternatives]:
        """A cell decides twice: which two edges lead into a node, and which operation each of these has.

        An edge that another pair would use brings the operation that its weights prefer.
        """
        for kind in KINDS:
            first = 1 if self.operations[0] == "none" else 0
            operations = self.operations[first:]
            rows = [edge_name(kind, *edge) for edge in EDGES]
            own = {row: operations[int(w[first:].argmax())] for row, w in zip(rows, weights[kind], strict=True)}
            for target in range(INPUTS, NODES):
                edges = [edge_name(kind, source, target) for source in range(target)]
                kept = [edge for edge in edges if arch[edge] != "none"]
                pairs = list(combinations(edges, 2))
                if len(pairs) > 1:
                    archs = tuple(self._with_pair(arch, edges, pair, own) for pair in pairs)
                    about = (*((kind, edge) for edge in edges), (f"{kind}_edges", f"{kind} into {target}"))
                    names = tuple(" + ".join(e.split()[1] for e in pair) for pair in pairs)
                    chosen = names[pairs.index((kept[0], kept[1]))]
                    yield Alternatives(f"{kind} {target} inputs", chosen, names, archs, about)
                for edge in kept:
                    archs = tuple(arch.replace(edge, operation) for operation in operations)
                    yield Alternatives(edge, arch[edge], tuple(operations), archs, ((kind, edge),))

    def _with_pair(
        self, arch: Architecture, edges: Sequence[str], pair: Sequence[str], own: Mapping[str, str]
    ) -> Architecture:
        choices = dict(arch.choices)
        for edge in edges:
            kept = arch[edge] if arch[edge] != "none" else own[edge]
            choices[edge] = kept if edge in pair else "none"
        return self.architecture(choices)

    def changed(self, arch: Architecture, decision: str, option: str) -> Architecture | None:
        """Operations change one at a time; to change which edges are kept would take two changes at once."""
        return None if "none" in (arch[decision], option) else super().changed(arch, decision, option)

    def reduces(self, decision: str) -> bool:
        return decision.startswith("reduce")

    def counted(self, arch: Architecture, built: Callable[[Architecture], int]) -> int:
        """What the operations of both cells add to a network of pools, each built once.

        Published cells of other spaces are built themselves.
        """
        if len(arch.choices) > len(self.decisions) or any(option not in OPERATIONS for _, option in arch.choices):
            return built(arch)
        pooled = built(pools())
        others = (pools_but(edge, option) for edge, option in arch.choices if option != "none")
        return pooled + sum(built(other) - pooled for other in others)

    def lightest(self) -> tuple[Architecture, ...]:
        """Pools alone: they have no parameters, wherever they stand."""
        return (pools(),)

    def cells(self, arch: Architecture) -> dict[str, CellGraph]:
        self._of_this_kind(arch)
        return {kind: to_graph(cell(arch, kind)) for kind in KINDS}

    def from_cells(self, cells: Mapping[str, CellGraph]) -> Architecture:
        for kind in KINDS:
            if kind not in cells:
                raise RequestError(f"a network needs a normal and a reduction cell, there is no {kind!r} cell")
        return self.parse(json_text({kind: from_graph(kind, cells[kind]) for kind in KINDS}))

    def read_cells(self, text: str) -> dict[str, CellGraph] | None:
        """From a published name, `Genotype(...)` or JSON; JSON may describe a normal cell alone."""
        return read_graphs(text)

    def source(self, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> Source:
        """Without the auxiliary head and drop path, which are for training."""
        cells = {kind: cell(arch, kind) for kind in KINDS}
        return write(cells, image_channels(inputs), **self.size(**{**EVALUATION, **size}))
