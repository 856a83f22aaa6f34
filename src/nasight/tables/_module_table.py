"""A table of cells that are graphs: those of NAS-Bench-101, by their hashes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces import load as load_space
from nasight.spaces.nasbench1shot1 import OPERATIONS, NasBench1Shot1
from nasight.tables._module_size import ModuleSize
from nasight.tables._modules import MOST_EDGES, MOST_NODES, Module
from nasight.tables._table import PARAMETERS, Numbers, Table
from nasight.tables._trials import RaceProblem

PAIRS = [(a, b) for b in range(1, MOST_NODES + 2) for a in range(b)]
"""Who may read whom in a cell of seven vertices."""
SIZES = (2,) * len(PAIRS) + (len(OPERATIONS),) * MOST_NODES
TRIES = 200


class ModuleTable(Table):
    """Accuracies and costs of cells of NAS-Bench-101, in the order of their hashes.

    A cell is found in whatever order its nodes are written, and with nodes that lead nowhere. Cells of
    NAS-Bench-1Shot1's three spaces are cells of this table. The mean over the trainings of a cell is what a search sees
    and what judges it; costs are seconds of training, without validation, as the benchmark counts them.
    """

    published = False

    def __init__(self, arrays: Mapping[str, NDArray[Any]], *, name: str, source: str) -> None:
        self.name, self.source, self.per_seed = name, source, {}
        self.hashes, self.texts = arrays["hashes"], arrays["texts"]
        numbers = {key: value for key, value in arrays.items() if key not in ("hashes", "texts")}
        self.columns: dict[str, Numbers] = {key: np.asarray(v, np.float64) for key, v in numbers.items()}
        found = sorted(int(key.removeprefix("c10_test")) for key in self.columns if key.startswith("c10_test"))
        self.lengths = tuple(found)
        self.seen = self.full

    @property
    def space(self) -> NoReturn:
        raise RequestError(f"table {self.name!r} lists graphs, which are of no one search space")

    def __len__(self) -> int:
        return len(self.hashes)

    def __repr__(self) -> str:
        return f"Table({self.name!r}: {len(self)} cells, {len(self.columns)} columns)"

    def covers(self, space: str) -> bool:
        return isinstance(load_space(space), NasBench1Shot1)

    def place(self, module: Module) -> int | None:
        """Where a cell is, or None: it computes nothing, is too large, or is not listed."""
        small = module.pruned()
        if small is None or len(small.operations) > MOST_NODES or small.edges > MOST_EDGES:
            return None
        key = small.hash().encode()
        at = int(np.searchsorted(self.hashes, key))
        return at if at < len(self) and self.hashes[at] == key else None

    def index(self, arch: Architecture | str) -> int:
        module = Module.parse(arch) if isinstance(arch, str) else _module(arch, _space_of(arch))
        found = self.place(module)
        if found is None:
            small = module.pruned()
            why = "no path leads from its input to its output"
            if small is not None:
                why = f"its hash {small.hash()} is not there ({len(small.operations)} nodes, {small.edges} edges)"
            raise RequestError(f"table {self.name!r} does not list {module.text}: {why}")
        return found

    def architecture(self, index: int) -> Architecture:
        return self.space.architecture({})

    def multiply_adds(self, index: int) -> int | None:
        """Of the benchmark's network; None where the table's parameters are not those of that network."""
        if PARAMETERS not in self.columns:
            return None
        small = Module.parse(self.text(index)).pruned()
        assert small is not None
        size = ModuleSize.of(small)
        return size.multiply_adds if size.parameters == round(1e6 * self.columns[PARAMETERS][index]) else None

    def text(self, index: int) -> str:
        return str(self.texts[index])

    def canonical(self, index: int) -> str:
        return bytes(self.hashes[index]).decode()

    @cached_property
    def classes(self) -> dict[str, list[int]]:
        return {self.canonical(place): [place] for place in range(len(self))}

    @property
    def measures(self) -> tuple[str, ...]:
        """What it has of CIFAR-10."""
        return tuple(key.removeprefix("c10_") for key in self.columns if key.startswith("c10_"))

    @property
    def lacks(self) -> tuple[str, ...]:
        have = {f"c10_test{epochs}" for epochs in (4, 12, 36, 108)}
        return tuple(sorted(have - set(self.columns)))

    @property
    def sizes(self) -> tuple[int, ...]:
        return SIZES

    def cost(self, dataset: str, epochs: int) -> Numbers:
        return self.column(f"{dataset}_traintime{epochs}_s")

    def problem(self, dataset: str, seconds: float) -> RaceProblem:
        accuracy = {epochs: self.column(f"{dataset}_val{epochs}") for epochs in self.lengths}
        price = {epochs: self.cost(dataset, epochs) for epochs in self.lengths}
        return ModuleProblem(SIZES, accuracy, price, seconds, self.seen, self)

    def optimum_of(self, space: str, dataset: str) -> float:
        """The best test accuracy among the cells of one of NAS-Bench-1Shot1's spaces that are listed.

        All architectures of the space are looked up: seconds for the first two, minutes for the third.
        """
        inside = load_space(space)
        if not isinstance(inside, NasBench1Shot1):
            raise RequestError(
                f"table {self.name!r} has no cells of {space!r}, only of NAS-Bench-1Shot1's three spaces"
            )
        found = (self.place(_module(arch, inside)) for arch in inside)
        places = sorted({place for place in found if place is not None})
        if not places:
            raise RequestError(f"table {self.name!r} lists no cell of {space}")
        return float(self.column(f"{dataset}_test{self.full}")[places].max())


class ModuleProblem(RaceProblem):
    """Searching a table of graphs: options are 21 edges and 5 operations, of which not every combination is listed."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        accuracy: Mapping[int, Numbers],
        price: Mapping[int, Numbers],
        seconds: float,
        seen: int,
        table: ModuleTable,
    ) -> None:
        super().__init__(sizes, accuracy, price, seconds, seen)
        object.__setattr__(self, "table", table)

    table: ModuleTable

    def draw(self, rng: np.random.Generator) -> tuple[list[int], int]:
        """A uniform cell of the table; nodes that it does not have get any operation."""
        place = int(rng.integers(len(self.table)))
        return self._options(Module.parse(self.table.text(place)), rng), place

    def neighbor(self, options: list[int], rng: np.random.Generator) -> tuple[list[int], int]:
        """A listed cell that differs in one edge or operation, or in as few as are found; else any cell."""
        here = self.table.place(_decoded(options))
        for attempt in range(TRIES):
            child = list(options)
            for _ in range(1 + attempt * 4 // TRIES):
                at = int(rng.integers(len(child)))
                child[at] = (child[at] + int(rng.integers(1, SIZES[at]))) % SIZES[at]
            place = self.table.place(_decoded(child))
            if place is not None and place != here:
                return child, place
        return self.draw(rng)

    def _options(self, module: Module, rng: np.random.Generator) -> list[int]:
        last = len(module.inputs)
        names = {node: node for node in range(last)} | {last: MOST_NODES + 1}
        edges = {(names[a], names[b]) for b, read in enumerate(module.inputs, 1) for a in read}
        chosen = [OPERATIONS.index(name) for name in module.operations]
        chosen += rng.integers(len(OPERATIONS), size=MOST_NODES - len(chosen)).tolist()
        return [int(pair in edges) for pair in PAIRS] + chosen


def _decoded(options: list[int]) -> Module:
    edges = [pair for pair, bit in zip(PAIRS, options, strict=False) if bit]
    read = tuple(tuple(a for a, b in edges if b == node) for node in range(1, MOST_NODES + 2))
    return Module(tuple(OPERATIONS[i] for i in options[len(PAIRS) :]), read)


def _module(arch: Architecture, space: NasBench1Shot1) -> Module:
    return Module(tuple(arch[name] for name in space.operation_names), space.inputs_of(arch))


def _space_of(arch: Architecture) -> NasBench1Shot1:
    for space in map(NasBench1Shot1, (1, 2, 3)):
        if arch in space:
            return space
    raise RequestError(f"{arch} is no cell of NAS-Bench-1Shot1, whose cells this table lists")
