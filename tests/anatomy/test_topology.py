"""Widths, depths, distributions and drawings of cells."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasight.anatomy import CellGraph, distribution, names, nasbench201_distribution, read_cells, space_of
from nasight.errors import RequestError
from nasight.report import cell_svg, design_svg
from nasight.report._cell import _best_layout
from nasight.spaces import load

PAPER = {"NASNet": (5, 2), "AmoebaNet": (4, 4), "ENAS": (5, 2), "DARTS_V2": (3.5, 3), "SNAS": (4, 2)}
CELL_201 = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|"


def brute(nodes: int, repeats: bool) -> Counter[tuple[float, int]]:
    """(width, depth) of every connection, each built as a graph."""
    rows = []
    for target in range(2, 2 + nodes):
        pairs = product(range(target), repeat=2) if repeats else combinations(range(target), 2)
        rows.append([((a, target, "x"), (b, target, "y")) for a, b in pairs])
    found = Counter[tuple[float, int]]()
    for parts in product(*rows):
        graph = CellGraph(2, nodes, tuple(edge for part in parts for edge in part), tuple(range(2, 2 + nodes)))
        found[graph.width, graph.depth] += 1
    return found


@pytest.mark.parametrize(("name", "expected"), PAPER.items())
def test_figure_1s_widths_and_depths_are_reproduced(name: str, expected: tuple[float, int]) -> None:
    graph = read_cells(name)["normal"]
    assert (graph.width, graph.depth) == expected


@pytest.mark.parametrize("name", ["DARTS_V2", "ENAS", "AmoebaNet", "NASNet"])
def test_parameters_are_those_of_table_3(name: str) -> None:
    millions = {"DARTS_V2": 3.35, "ENAS": 3.86, "AmoebaNet": 3.15, "NASNet": 3.83}[name]
    assert round(read_cells(name).parameters() / 1e6, 2) == millions


def test_widest_and_shallowest_of_seven_and_eight_nodes_are_4c_and_5c_at_depth_2() -> None:
    darts, nasnet = distribution(), distribution(5, repeats=True)
    assert (darts.largest_width, darts.smallest_depth) == (4, 2)
    assert (nasnet.largest_width, nasnet.smallest_depth) == (5, 2)


@pytest.mark.parametrize(("nodes", "repeats"), [(4, False), (4, True), (3, True), (5, False)])
def test_counted_distributions_equal_those_of_every_graph(nodes: int, repeats: bool) -> None:
    assert distribution(nodes, repeats=repeats).counts == brute(nodes, repeats)


def test_the_darts_distribution_has_180_connections_and_nasnets_is_the_papers_formula() -> None:
    assert distribution().cells == 1 * 3 * 6 * 10
    assert distribution(5, repeats=True).cells == (2 * 3 * 4 * 5 * 6) ** 2


@pytest.mark.slow
def test_the_nasbench201_distribution_equals_a_walk_through_all_15625_cells() -> None:
    space, found, without_path = load("nasbench201"), Counter[tuple[float, int]](), 0
    for arch in space:
        try:
            graph = read_cells(space.format(arch))["cell"]
        except RequestError:
            without_path += 1
            continue
        found[graph.width, graph.depth] += 1
    assert nasbench201_distribution().counts == found
    assert without_path == 15625 - 15284


def test_one_cell_in_180_is_as_wide_and_shallow_as_that_of_snas() -> None:
    graph = read_cells("SNAS")["normal"]
    space = space_of(graph)
    assert space is not None
    assert space.standing(graph).as_wide_and_shallow == pytest.approx(100 / 180)
    assert space.standing(graph).width_percentile == 100


def test_a_nasbench201_cell_has_the_depth_of_its_operations_and_two_nodes_of_width() -> None:
    graph = read_cells(CELL_201)["cell"]
    assert (graph.width, graph.depth) == (1, 3)
    assert read_cells(CELL_201).parameters() == 73306 + 243040 + 28000
    idle = read_cells("|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|")
    assert (idle["cell"].width, idle["cell"].depth, idle.idle) == (0, 1, 1)
    assert idle.parameters() == 73306 + 243040


@given(st.permutations([2, 3, 4, 5]))
def test_a_cell_with_its_nodes_in_another_order_has_the_same_key(order: list[int]) -> None:
    # Nodes that read inputs only, so that every order of them is one of a cell.
    operations = {2: ("a", "b"), 3: ("a", "a"), 4: ("b", "a"), 5: ("c", "b")}
    edges = [(0, t, first) for t, (first, _) in operations.items()] + [(1, t, o) for t, (_, o) in operations.items()]
    names_ = dict(zip((2, 3, 4, 5), order, strict=True))
    moved = tuple((s, names_[t], o) for s, t, o in edges)
    joined = (2, 3, 4, 5)
    assert CellGraph(2, 4, moved, joined).key() == CellGraph(2, 4, tuple(edges), joined).key()


def test_cells_that_share_a_node_and_cells_that_compute_it_twice_have_different_keys() -> None:
    base = ((0, 2, "a"), (1, 2, "b"), (0, 3, "a"), (1, 3, "b"))
    shared = CellGraph(2, 4, (*base, (0, 4, "c"), (2, 4, "d"), (0, 5, "c"), (2, 5, "d")), (4, 5))
    twice = CellGraph(2, 4, (*base, (0, 4, "c"), (2, 4, "d"), (0, 5, "c"), (3, 5, "d")), (4, 5))
    assert shared.key() != twice.key()


def test_a_name_a_genotype_a_file_and_a_list_of_files_cells_give_the_same_cells(tmp_path: Path) -> None:
    design, space = read_cells("DARTS_V2"), load("darts")
    arch = space.parse("DARTS_V2")
    genotype = space.format(arch)
    one, several = tmp_path / "one.json", tmp_path / "several.json"
    cells = json.loads(space.format(arch, style="json"))  # type: ignore[call-arg]
    one.write_text(json.dumps(cells))
    several.write_text(json.dumps({"format": "[node, input, operation]", "cells": {"A": cells, "B": cells}}))
    for source in (genotype, one, f"{several}:B"):
        assert read_cells(source).cells == design.cells
    assert design.architecture() == arch
    (tmp_path / "list.json").write_text(json.dumps(cells["normal"]))
    assert read_cells(tmp_path / "list.json").cells == design.cells[:1]
    with pytest.raises(RequestError, match=r"several\.json:NAME"):
        read_cells(several)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("DARTS_V3", "did you mean 'DARTS_V2'"),
        ("", "empty text"),
        ("no/such.json", "does not exist"),
        ('[[2, 0, "sep_conv"]]', "two entries for each node"),
        ('{"normal": 3}', "expected \\[node, input, operation\\], got 3"),
        ("{", "not JSON at line 1"),
        ("Genotype(normal=[('sep_conv_3x3', 9), ('skip_connect', 0)])", "input of node 2 must be 0 to 1, got 9"),
        ("|none~0|+|none~0|none~1|+|none~0|none~1|none~2|", "no path"),
        (".", "no run.json"),
    ],
)
def test_a_wrong_source_is_refused_in_one_sentence(source: str, says: str) -> None:
    with pytest.raises(RequestError, match=says) as refused:
        read_cells(source)
    assert "\n" not in str(refused.value)


def test_widths_are_sums_of_exact_shares() -> None:
    thirds = tuple((s, 3, f"o{s}") for s in (0, 1, 2))
    graph = CellGraph(2, 2, ((0, 2, "a"), (1, 2, "b"), *thirds), (2, 3))
    assert graph.width == float(1 + Fraction(2, 3))


@pytest.mark.parametrize("name", names())
def test_a_drawing_is_well_formed_and_names_every_operation_and_node(name: str) -> None:
    design = read_cells(name)
    text = design_svg(design)
    root = ElementTree.fromstring(text)
    shown = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {f"{name}, {kind} cell" for kind in ("normal", "reduce")} <= set(shown)
    operations = sum(len(graph.edges) for _, graph in design.cells)
    assert sum(t in {"skip"} or " pool " in str(t) or "conv " in str(t) for t in shown) == operations
    assert root.find("{http://www.w3.org/2000/svg}desc") is not None
    assert "prefers-color-scheme" in text
    assert "prefers-color-scheme" not in design_svg(design, standalone=False)


def test_titles_and_operations_are_escaped() -> None:
    graph = CellGraph(1, 1, ((0, 1, "<script>&"), (1, 2, "b")), ())
    text = cell_svg(graph, title='<b>"&')
    assert "<script>" not in text
    assert "<b>" not in text
    ElementTree.fromstring(text)


def test_a_chain_is_drawn_without_crossings_and_darts_v2_with_the_three_that_must_be() -> None:
    # Its nodes 2, 3 and 4 read both inputs: every left-to-right drawing of that crosses three times.
    assert _best_layout(read_cells("DARTS_V2")["normal"]).crossings() == 3
    chain = [[2, 0, "sep_conv_3x3"], [2, 1, "sep_conv_3x3"]]
    chain += [[n, n - 1, o] for n in (3, 4, 5) for o in ("max_pool_3x3", "skip_connect")]
    assert _best_layout(read_cells(json.dumps(chain))["normal"]).crossings() == 0
