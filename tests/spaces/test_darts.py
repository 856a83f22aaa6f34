from __future__ import annotations

import json
from itertools import combinations, islice

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces import load
from nasight.spaces.darts import POPULAR

torch.set_num_threads(1)
SPACE = load("darts")
KINDS = ("normal", "reduce")


@st.composite
def texts(draw: st.DrawFn) -> dict[str, object]:
    """JSON-like descriptions of cells of any number of nodes, double edges and joined nodes included."""
    operations = ["max_pool_3x3", "skip_connect", "sep_conv_3x3", "dil_conv_5x5", "sep_conv_7x7", "conv_7x1_1x7"]
    value: dict[str, object] = {}
    for kind in KINDS:
        nodes = range(2, 2 + draw(st.integers(1, 5)))
        value[kind] = [[n, draw(st.integers(0, n - 1)), draw(st.sampled_from(operations))] for n in nodes for _ in "ab"]
        value[f"{kind}_concat"] = draw(st.lists(st.sampled_from(nodes), min_size=1, unique=True))
    return value


def architectures() -> st.SearchStrategy[Architecture]:
    return st.integers(0, 2**31).map(lambda seed: SPACE.sample(torch.Generator().manual_seed(seed)))


def parameters(text: str, **settings: object) -> int:
    return sum(p.numel() for p in SPACE.network(SPACE.parse(text), **settings).parameters())


def test_there_are_ten_to_the_eighteenth_cells_of_darts() -> None:
    assert len(SPACE) == (1 * 3 * 6 * 10 * 49**4) ** 2 == 1076746950455072400


def test_the_cells_are_enumerated_without_repeats_and_belong_to_the_space() -> None:
    some = list(islice(SPACE, 500))
    assert len(set(some)) == 500
    assert all(arch in SPACE for arch in some)


@settings(max_examples=50, deadline=None)
@given(architectures())
def test_samples_belong_to_the_space_and_survive_both_texts(arch: Architecture) -> None:
    assert arch in SPACE
    assert SPACE.parse(SPACE.format(arch)) == arch
    assert SPACE.parse(SPACE.format(arch, style="json")) == arch


@settings(max_examples=100, deadline=None)
@given(texts())
def test_cells_beyond_the_space_survive_both_texts(value: dict[str, object]) -> None:
    arch = SPACE.parse(json.dumps(value))
    assert SPACE.parse(SPACE.format(arch)) == arch
    assert SPACE.parse(SPACE.format(arch, style="json")) == arch


@settings(max_examples=50, deadline=None)
@given(texts())
def test_the_order_of_a_nodes_entries_does_not_matter(value: dict[str, object]) -> None:
    turned = dict(value)
    for kind in KINDS:
        entries = list(value[kind])
        turned[kind] = [e for i in range(0, len(entries), 2) for e in reversed(entries[i : i + 2])]
        turned[f"{kind}_concat"] = list(reversed(value[f"{kind}_concat"]))
    assert SPACE.parse(json.dumps(turned)) == SPACE.parse(json.dumps(value))


def test_inputs_and_operations_are_drawn_uniformly() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = [SPACE.sample(generator) for _ in range(3000)]
    pairs = [tuple(s for s in range(5) if a[f"reduce {s}->5"] != "none") for a in drawn]
    for pair in combinations(range(5), 2):
        assert abs(pairs.count(pair) / 3000 - 0.1) < 0.03
    operations = [a["normal 0->2"] for a in drawn]
    for name in SPACE.decisions[0].options[1:]:
        assert abs(operations.count(name) / 3000 - 1 / 7) < 0.03


@pytest.mark.parametrize("none", [True, False])
@pytest.mark.parametrize("edges", [True, False])
def test_encoding_an_architecture_and_discretizing_gives_it_back(none: bool, edges: bool) -> None:
    space = load("darts", none=none)
    for seed in range(20):
        arch = space.sample(torch.Generator().manual_seed(seed))
        weights = space.encode(arch, edges=edges)
        assert {n: tuple(w.shape) for n, w in weights.items()} == {g.name: g.shape for g in space.groups(edges=edges)}
        assert space.derive(weights) == arch


def test_edge_weights_of_an_encoded_architecture_are_one_simplex_a_node() -> None:
    arch = SPACE.parse("DARTS_V2")
    for group in SPACE.groups(edges=True)[2:]:
        rows = group.split(SPACE.encode(arch, edges=True)[group.name])
        assert [len(r) for r in rows] == [2, 3, 4, 5]
        assert all(float(r.sum()) == 1.0 for r in rows)


def test_a_large_weight_of_none_does_not_keep_or_drop_an_edge() -> None:
    weights = {g.name: g.uniform() * 0.1 for g in SPACE.groups()}
    weights["normal"][0:2, 0] = 5.0
    weights["normal"][4, 7] = 0.5
    weights["normal"][3, 4] = 0.4
    weights["normal"][2, 0] = 9.0
    arch = SPACE.derive(weights)
    assert (arch["normal 0->3"], arch["normal 1->3"], arch["normal 2->3"]) == ("none", "sep_conv_3x3", "dil_conv_5x5")


def test_edges_are_ranked_by_the_product_of_operation_and_edge_weight() -> None:
    weights = {g.name: g.uniform() for g in SPACE.groups(edges=True)}
    weights["normal"][2] = torch.tensor([0.0, 0.9, 0, 0, 0.1, 0, 0, 0])  # 0->3, but its edge weighs little
    weights["normal_edges"][2:5] = torch.tensor([0.01, 0.5, 0.49])
    arch = SPACE.derive(weights)
    assert arch["normal 0->3"] == "none"
    assert arch["normal 1->3"] != "none"
    assert arch["normal 2->3"] != "none"


def test_a_node_with_three_inputs_is_not_in_the_space() -> None:
    arch = SPACE.parse("DARTS_V2").replace("normal 2->3", "skip_connect")
    assert arch not in SPACE
    with pytest.raises(RequestError, match="node 3 of the normal cell has 3 inputs"):
        SPACE.encode(arch)


@pytest.mark.parametrize(
    ("name", "count"),
    [("DARTS_V1", 3_169_414), ("DARTS_V2", 3_349_342), ("PC_DARTS_cifar10", 3_634_678)],
)
def test_parameters_are_those_that_the_published_code_counts(name: str, count: int) -> None:
    assert parameters(name) == count


def test_gaea_pc_darts_has_3_7_million_parameters_as_the_paper_says() -> None:
    assert round(parameters("GAEA_PC_DARTS_cifar10") / 1e6, 1) == 3.7


def test_the_auxiliary_head_of_darts_v2_adds_476426_parameters() -> None:
    assert parameters("DARTS_V2", auxiliary=True) == 3_349_342 + 476_426


@pytest.mark.parametrize("name", POPULAR)
@pytest.mark.parametrize("inputs", [(1, 28, 28), (2, 8, 8), (3, 7, 9)])
def test_every_published_cell_is_a_network_for_any_image(name: str, inputs: tuple[int, int, int]) -> None:
    net = SPACE.network(SPACE.parse(name), inputs, 7, channels=4, cells=3)
    assert net(torch.randn(2, *inputs)).shape == (2, 7)


def test_published_cells_outside_the_space_keep_double_edges_and_joined_nodes() -> None:
    arch = SPACE.parse("NASNet")
    assert arch["normal 0->3"] == "sep_conv_3x3+sep_conv_5x5"
    assert arch["reduce concat"] == "4,5,6"
    assert arch not in SPACE
    assert sum(SPACE.parse(name) in SPACE for name in POPULAR) == 7


def test_genotype_text_is_read_with_a_range_a_list_or_by_position() -> None:
    cell = "[('sep_conv_3x3', 1), ('skip_connect', 0)]"
    texts = [
        f"Genotype(normal={cell}, normal_concat=range(2, 3), reduce={cell}, reduce_concat=list(range(2, 3)))",
        f"Genotype(reduce={cell}, reduce_concat=[2], normal={cell}, normal_concat=[2])",
        f"Genotype({cell}, [2], {cell}, (2,))",
    ]
    assert len({SPACE.parse(t) for t in texts}) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DARTS_V3", "did you mean 'DARTS_V[12]'"),
        (
            "Genotype(normal=[('sep_conv_3x3', 1)], reduce=[])",
            "normal cell: it needs two entries for each node, it has 1",
        ),
        (
            "Genotype(normal=[('skip_connect', 0), ('sep_conv_3x4', 1)], reduce=[])",
            "normal cell, entry 2: unknown operation 'sep_conv_3x4'; did you mean 'sep_conv_3x3'",
        ),
        (
            "Genotype(normal=[('skip_connect', 0), ('skip_connect', 2)], reduce=[])",
            "normal cell, entry 2: the input of node 2 must be 0 to 1, got 2",
        ),
        ("Genotype(normal=[('skip_connect', 0), 7], reduce=[])", "normal cell, entry 2: expected an operation and its"),
        ("Genotype(normal=open('x'), reduce=[])", "normal: expected a list or a range"),
        ("Genotype(normal=[", "not a Genotype"),
        ('{"normal": [[2, 0, "skip_connect"], [3, 0, "skip_connect"]], "reduce": []}', "entry 2: .* got node 3"),
        (
            '{"normal": [[2, 0, "skip_connect"], [2, 1, "skip_connect"]], "normal_concat": [2, 2]}',
            "normal_concat, entry 2",
        ),
        ('{"normal": [[2, 0, "skip_connect"], [2, 1, "skip_connect"]]}', "the reduce cell is missing"),
        ('{"normal": ', "line 1"),
    ],
)
def test_a_wrong_text_says_where_it_is_wrong(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        SPACE.parse(text)


def test_auxiliary_logits_come_only_in_training() -> None:
    net = SPACE.network(SPACE.parse("SNAS"), classes=4, channels=4, cells=3, auxiliary=True)
    x = torch.randn(2, 3, 32, 32)
    assert [tuple(t.shape) for t in net(x)] == [(2, 4), (2, 4)]
    assert net.eval()(x).shape == (2, 4)


def test_small_images_have_no_room_for_the_auxiliary_head() -> None:
    arch = SPACE.parse("SNAS")
    with pytest.raises(RequestError, match=r"28x28 are too small .* at least 29 pixels"):
        SPACE.network(arch, (1, 28, 28), channels=4, cells=3, auxiliary=True)
    SPACE.network(arch, (1, 29, 29), channels=4, cells=3, auxiliary=True)(torch.randn(2, 1, 29, 29))


def test_drop_path_follows_its_generator_and_stops_in_evaluation() -> None:
    net = SPACE.network(SPACE.parse("DARTS_V2"), (3, 8, 8), channels=4, cells=3)
    x = torch.randn(4, 3, 8, 8)
    whole = net(x)
    net.drop_path = 0.5
    runs = []
    for seed in (1, 1, 2):
        net.generator = torch.Generator().manual_seed(seed)
        runs.append(net(x))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    assert not torch.equal(runs[0], whole)
    net.eval()
    assert torch.equal(net(x), net(x))
    with pytest.raises(RequestError, match="drop_path"):
        net.drop_path = 1.0


def test_drop_path_keeps_the_expected_value_of_a_path() -> None:
    net = SPACE.network(SPACE.parse("DARTS_V2"), (3, 8, 8), channels=4, cells=3, drop_path=0.3)
    net.generator = torch.Generator().manual_seed(0)
    drop = net.cells[0].drop
    out = drop(torch.ones(20000, 2, 1, 1))
    assert torch.equal(out[:, 0], out[:, 1])
    assert out.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert float(out.mean()) == pytest.approx(1, abs=0.02)
