"""Variants of cells: how many there are, and that none is what another is."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.anatomy import count_variants, distribution, names, narrowest, read_cells, variants, widest
from nasight.anatomy._variants import _every
from nasight.errors import RequestError
from nasight.spaces import load

CELL_201 = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|"


@pytest.mark.parametrize(("name", "choices"), [("DARTS_V2", 120**2), ("SNAS", 120**2), ("NASNet", 720**2)])
def test_connections_are_counted_by_the_papers_formula(name: str, choices: int) -> None:
    assert count_variants(read_cells(name)["normal"]).choices == choices


@pytest.mark.parametrize(("name", "repeats"), list(product(["DARTS_V2", "SNAS"], [True, False])))
def test_the_number_of_different_variants_is_that_of_a_walk_through_all(name: str, repeats: bool) -> None:
    graph = read_cells(name)["normal"]
    every = {made.edges for made in _every(graph, "connections", repeats)}
    assert count_variants(graph, repeats=repeats).different == len(every - {graph.edges})


def test_the_number_of_operation_variants_is_that_of_a_walk_through_all() -> None:
    graph = read_cells('[[2,0,"skip_connect"],[2,0,"sep_conv_3x3"],[3,1,"skip_connect"],[3,2,"max_pool_3x3"]]')[
        "normal"
    ]
    every = {made.edges for made in _every(graph, "operations", True)}
    found = count_variants(graph, "operations")
    assert (found.choices, found.different) == (7**4, len(every) - 1)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(names()), st.sampled_from(["connections", "operations"]), st.integers(0, 10**6))
def test_no_variant_is_the_original_or_another_one_and_what_stays_stays(name: str, kind: str, seed: int) -> None:
    design = read_cells(name)
    found = variants(design, 13, kind=kind, seed=seed)
    keys = {v["normal"].key() for v in found} | {design["normal"].key()}
    assert len(keys) == 14
    assert found == variants(design, 13, kind=kind, seed=seed)
    for variant in found:
        assert variant["reduce"] == design["reduce"]
        kept = 1 if kind == "connections" else 0
        assert sorted(e[1:] if kept else e[:2] for e in variant["normal"].edges) == sorted(
            e[1:] if kept else e[:2] for e in design["normal"].edges
        )
        variant.architecture()


def test_variants_with_distinct_inputs_stay_in_the_space() -> None:
    space = load("darts")
    for variant in variants(read_cells("DARTS_V2"), 10, repeats=False, which="both"):
        assert variant.architecture() in space


def test_all_variants_can_be_asked_for_and_one_more_is_refused() -> None:
    design = read_cells(CELL_201)
    with pytest.raises(RequestError, match="not 9") as refused:
        variants(design, 9)
    possible = int(str(refused.value).split(" has ")[-1].split()[0]) if " has " in str(refused.value) else None
    every = {g.key() for g in _every(design["cell"], "connections", False)} - {design["cell"].key()}
    assert len(variants(design, len(every))) == len(every)
    assert possible is None or possible >= len(every)
    with pytest.raises(RequestError, match=f"not {len(every) + 1}"):
        variants(design, len(every) + 1)


@pytest.mark.parametrize("name", names())
def test_the_widest_adaptation_keeps_operations_and_reaches_the_ends_of_its_space(name: str) -> None:
    design = read_cells(name)
    for kind, graph in widest(design).cells:
        assert (graph.width, graph.depth) == (graph.nodes, 2)
        assert sorted(e[1:] for e in graph.edges) == sorted(e[1:] for e in design[kind].edges)
    assert widest(read_cells("SNAS")).cells[0] == read_cells("SNAS").cells[0]


def test_the_narrowest_darts_cell_is_at_the_narrow_end_of_the_space() -> None:
    graph, space = narrowest(read_cells("DARTS_V2"))["normal"], distribution()
    assert graph.width == min(w for w, _ in space.counts)
    assert graph.depth == max(d for _, d in space.counts)


@pytest.mark.parametrize(
    ("count", "options", "says"),
    [
        (0, {}, "at least 1 variant, got 0"),
        (3, {"kind": "colors"}, "connections or operations, got 'colors'"),
        (3, {"which": "cell"}, "normal or reduce or both, got 'cell'"),
        (20_000, {}, "different variants of its connections, not 20000"),
    ],
)
def test_what_cannot_be_varied_is_refused_in_one_sentence(count: int, options: dict[str, str], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        variants(read_cells("DARTS_V2"), count, **options)  # type: ignore[arg-type]
