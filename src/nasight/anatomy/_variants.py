"""Variants of a cell: other connections, other operations, and the widest and the narrowest of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import comb, factorial, prod

import torch

from nasight.anatomy._read import Design
from nasight.errors import RequestError
from nasight.reproducible import generator_for
from nasight.spaces import CellGraph, Edge
from nasight.spaces.darts import OPERATIONS as DARTS_OPERATIONS
from nasight.spaces.nasbench201 import OPERATIONS as NASBENCH201_OPERATIONS

KINDS = ("connections", "operations")
ENUMERABLE = 600_000
"""Up to this many variants are listed where drawing does not find enough."""
DRAWS = 50
"""Draws for each variant asked for before that."""


@dataclass(frozen=True, slots=True)
class VariantCount:
    """How many variants there are."""

    choices: int
    """Ways to choose anew, the original among them: for connections ((N-2)!/(M-1)!)^M (Cells, Appendix A.2)."""
    different: int
    """Different cells among these, the original left out; of two equal operations of a node either may come first."""


def count_variants(graph: CellGraph, kind: str = "connections", *, repeats: bool | None = None) -> VariantCount:
    """The number of variants of a cell, exactly.

    Connections: every operation stays at its node and reads any node before it, with `repeats` (default: where the
    cell has several inputs) also the one that the node's other operation reads. Operations: every edge gets any one.

    >>> from nasight.anatomy import read_cells
    >>> count_variants(read_cells("SNAS")["normal"]).choices
    14400
    """
    _check_kind(kind)
    if kind == "operations":
        candidates = len(operations_for(graph))
        twins = [_multiplicities([s for s, _, _ in graph.into(t)]) for t in _targets(graph)]
        different = prod(comb(candidates + k - 1, k) for ks in twins for k in ks)
        return VariantCount(candidates ** len(graph.edges), different - 1)
    repeats = _repeats(graph, repeats)
    choices, different = 1, 1
    for target in _targets(graph):
        operations = [operation for _, _, operation in graph.into(target)]
        k, before = len(operations), len(_sources(graph, target))
        choices *= before**k if repeats else factorial(before) // factorial(before - k)
        different *= _assignments(_multiplicities(operations), before, repeats)
    return VariantCount(choices, different - 1)


def variants(
    design: Design,
    count: int,
    *,
    kind: str = "connections",
    which: str | None = None,
    repeats: bool | None = None,
    seed: int = 0,
) -> list[Design]:
    """So many random variants, none equal to the original or to another, in whatever order their nodes are.

    `which` is the cell that varies: "normal" by default, whose width the paper tabulates, "reduce" or "both". A
    variant of a cell whose unused nodes are joined joins its own unused nodes.
    """
    _check_kind(kind)
    kinds = _which(design, which)
    if count < 1:
        raise RequestError(f"there must be at least 1 variant, got {count}")
    graphs = [design[k] for k in kinds]
    possible = prod(count_variants(g, kind, repeats=repeats).different + 1 for g in graphs) - 1
    if count > possible:
        raise RequestError(f"{design.name} has {possible} different variants of its {kind}, not {count}")
    found = _sample(graphs, count, kind, repeats, generator_for(seed, "variants", kind))
    if len(found) < count:
        raise RequestError(
            f"of {design.name} only {len(found)} variants of its {kind} were found that are networks of their own, "
            f"not {count}"
        )
    return [
        design.replace(f"{design.name} {kind} {number}", **dict(zip(kinds, cells, strict=True)))
        for number, cells in enumerate(found, 1)
    ]


def widest(design: Design) -> Design:
    """The same operations with the widest, shallowest connections, all cells alike (Cells, Section 5).

    Every operation reads an input: those that do stay, and the others take the input that their node lacks. What is
    joined stays too, so only connections change. Parameters move where a skip of a reduction cell comes to read an
    input: with stride 2 it is a convolution (Table 1).

    >>> from nasight.anatomy import read_cells
    >>> design = read_cells("NASNet")
    >>> widest(design).parameters() - design.parameters()
    26352
    """
    return _adapted(design, "widest")


def narrowest(design: Design) -> Design:
    """The same operations in a chain: every node reads the one or two nodes before it."""
    return _adapted(design, "narrowest")


def operations_for(graph: CellGraph) -> tuple[str, ...]:
    """What an edge may carry: the space's operations without `none`, and others that the cell itself has."""
    space = NASBENCH201_OPERATIONS if graph.inputs == 1 else DARTS_OPERATIONS
    return tuple(dict.fromkeys([*space[1:], *sorted({operation for _, _, operation in graph.edges})]))


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise RequestError(f"variants are of {' or '.join(KINDS)}, got {kind!r}")


def _which(design: Design, which: str | None) -> list[str]:
    kinds = [kind for kind, _ in design.cells]
    if which == "both" and len(kinds) == 2:
        return kinds
    chosen = which or design.main
    if chosen not in kinds:
        raise RequestError(
            f"the cell that varies is {' or '.join([*kinds, 'both'][: 2 * len(kinds) - 1])}, got {which!r}"
        )
    return [chosen]


def _repeats(graph: CellGraph, repeats: bool | None) -> bool:
    if graph.inputs == 1:
        if repeats:
            raise RequestError("NAS-Bench-201 has one operation between two nodes, so repeats must be off")
        return False
    return True if repeats is None else repeats


def _targets(graph: CellGraph) -> list[int]:
    return [node for node in (*graph.intermediate, graph.output) if graph.into(node)]


def _sources(graph: CellGraph, target: int) -> list[int]:
    """The nodes that one may read: those before it which are computed at all."""
    computed = graph.layers()
    return [node for node in range(target) if node in computed]


def _multiplicities(values: Sequence[object]) -> list[int]:
    return [values.count(value) for value in dict.fromkeys(values)]


def _assignments(multiplicities: list[int], sources: int, repeats: bool) -> int:
    """Different ways to give sources to the operations of a node, equal operations not told apart."""
    total, left = 1, sources
    for k in multiplicities:
        total *= comb(sources + k - 1, k) if repeats else comb(left, k)
        left -= k
    return total


def _rebuilt(graph: CellGraph, edges: Sequence[Edge]) -> CellGraph | None:
    """The cell with these edges, or None where something in it would compute nothing (NAS-Bench-201)."""
    made = CellGraph(graph.inputs, graph.nodes, tuple(edges), _joined(graph, edges))
    return made if graph.inputs > 1 or made == made.live() else None


def _joined(graph: CellGraph, edges: Sequence[Edge]) -> tuple[int, ...]:
    """What a variant with these edges joins: its own unused nodes where the cell joins its own by NASNet's rule."""
    every = tuple(graph.intermediate)
    if graph.inputs > 1 and graph.joined == graph.unused() and (graph.repeats() or graph.joined != every):
        return CellGraph(graph.inputs, graph.nodes, tuple(edges), graph.joined).unused()
    return graph.joined


def _draw(graph: CellGraph, kind: str, repeats: bool, generator: torch.Generator) -> CellGraph | None:
    def below(n: int) -> int:
        return int(torch.randint(n, (), generator=generator))

    if kind == "operations":
        options = operations_for(graph)
        return _rebuilt(graph, [(s, t, options[below(len(options))]) for s, t, _ in graph.edges])
    edges = list[Edge]()
    for target in _targets(graph):
        sources = _sources(graph, target)
        for _, _, operation in graph.into(target):
            source = sources[below(len(sources))]
            edges.append((source, target, operation))
            if not repeats:
                sources.remove(source)
    return _rebuilt(graph, edges)


def _every(graph: CellGraph, kind: str, repeats: bool) -> Iterator[CellGraph]:
    if kind == "operations":
        for options in product(operations_for(graph), repeat=len(graph.edges)):
            made = _rebuilt(graph, [(s, t, o) for (s, t, _), o in zip(graph.edges, options, strict=True)])
            if made is not None:
                yield made
        return
    rows = list[list[list[Edge]]]()
    for target in _targets(graph):
        into, before = graph.into(target), _sources(graph, target)
        ways = product(before, repeat=len(into)) if repeats else permutations(before, len(into))
        rows.append([[(s, target, o) for s, (_, _, o) in zip(way, into, strict=True)] for way in ways])
    for parts in product(*rows):
        made = _rebuilt(graph, [edge for part in parts for edge in part])
        if made is not None:
            yield made


def _sample(
    graphs: list[CellGraph], count: int, kind: str, repeats: bool | None, generator: torch.Generator
) -> list[tuple[CellGraph, ...]]:
    """Drawn one after the other; where too many repeat each other, all are listed and shuffled."""
    seen, found = {tuple(g.key() for g in graphs)}, list[tuple[CellGraph, ...]]()

    def take(cells: Sequence[CellGraph | None]) -> None:
        made = tuple(cell for cell in cells if cell is not None)
        if len(made) == len(cells) and (key := tuple(cell.key() for cell in made)) not in seen:
            seen.add(key)
            found.append(made)

    for _ in range(DRAWS * count + 1000):
        if len(found) == count:
            return found
        take([_draw(g, kind, _repeats(g, repeats), generator) for g in graphs])
    if prod(count_variants(g, kind, repeats=repeats).choices for g in graphs) > ENUMERABLE:
        return found
    for cells in product(*(list(_every(g, kind, _repeats(g, repeats))) for g in graphs)):
        take(cells)
    order = torch.randperm(len(found), generator=generator).tolist()
    return [found[place] for place in order[:count]]


def _adapted(design: Design, how: str) -> Design:
    cells = {}
    for kind, graph in design.cells:
        if graph.inputs == 1:
            cells[kind] = _extreme(graph, how)
            continue
        edges = list[Edge]()
        for target in _targets(graph):
            edges += _from_inputs(graph, target) if how == "widest" else _from_last(graph, target)
        joined = graph.joined if how == "widest" else _joined(graph, edges)
        cells[kind] = CellGraph(graph.inputs, graph.nodes, tuple(edges), joined)
    return design.replace(f"{design.name} {how}", **cells)


def _from_inputs(graph: CellGraph, target: int) -> list[Edge]:
    free = [i for i in range(graph.inputs) if i not in {s for s, _, _ in graph.into(target)}]
    edges = list[Edge]()
    for place, (source, _, operation) in enumerate(graph.into(target)):
        if source >= graph.inputs:
            source = free.pop(0) if free else place % graph.inputs
        edges.append((source, target, operation))
    return edges


def _from_last(graph: CellGraph, target: int) -> list[Edge]:
    return [
        (max(target - 1 - place, 0), target, operation)
        for place, (_, _, operation) in enumerate(reversed(graph.into(target)))
    ]


def _extreme(graph: CellGraph, how: str) -> CellGraph:
    """By trying them all: NAS-Bench-201 has at most twelve connections of the same operations."""
    sign = 1 if how == "widest" else -1
    return min(
        [graph, *_every(graph, "connections", False)],
        key=lambda g: (-sign * g.width, sign * g.depth, len(set(graph.edges) - set(g.edges))),
    )
