"""Dropout behind the skip connections of a supernet (P-DARTS)."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.spaces import Dropout, Supernet, load
from nasight.spaces.darts._supernet_cell import EDGES as DARTS_EDGES
from nasight.spaces.darts._supernet_cell import STRIDED
from nasight.spaces.nasbench201 import EDGES
from nasight.spaces.nasbench201._supernet import MixedCell

torch.set_num_threads(1)
P = 0.4
SHAPES = {"nasbench201": (2, 7, 6), "darts": (3, 8, 8)}


def supernet(name: str, **settings: object) -> Supernet:
    torch.manual_seed(0)
    cells = 3 if name == "darts" else 1
    return load(name).supernet(SHAPES[name], 4, channels=4, cells=cells, **settings).double()


def images(name: str) -> Tensor:
    return torch.randn(3, *SHAPES[name], dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def weights_of(net: Supernet, *names: str) -> dict[str, Tensor]:
    """Weights between 0.5 and 1.5 for these operations, zeros for the others."""
    generator, found = torch.Generator().manual_seed(2), dict[str, Tensor]()
    for group in net.groups:
        kept = torch.tensor([option in names for option in group.options[0]])
        found[group.name] = kept * (0.5 + torch.rand(group.shape, dtype=torch.float64, generator=generator))
    return found


def dropout(seed: int = 0) -> Dropout:
    return Dropout(P, torch.Generator().manual_seed(seed))


def mask(generator: torch.Generator, like: Tensor) -> Tensor:
    """What one edge draws, number by number: pixel after pixel, and of each pixel the channels."""
    b, c, h, w = like.shape
    stays = torch.rand(b, h, w, c, dtype=like.dtype, generator=generator) < 1 - P
    return stays.permute(0, 3, 1, 2).to(like.dtype) / (1 - P)


@pytest.mark.parametrize("path", ["plain", "fast"])
def test_by_hand_each_number_of_a_skip_in_nasbench201_is_dropped_before_its_weight(path: str) -> None:
    net, x = supernet("nasbench201", path=path), images("nasbench201")
    weights = weights_of(net, "skip_connect", "avg_pool_3x3")
    skip, pool = (weights["operations"][:, net.operations.index(n)] for n in ("skip_connect", "avg_pool_3x3"))
    generator, h = torch.Generator().manual_seed(0), x
    for layer in net.layers:
        if not isinstance(layer, MixedCell):
            h = layer(h)
            continue
        masks, nodes = [mask(generator, h) for _ in EDGES], [h]
        for target in (1, 2, 3):
            edges = [(e, nodes[source]) for e, (source, end) in enumerate(EDGES) if end == target]
            pooled = [pool[e] * F.avg_pool2d(n, 3, 1, 1, count_include_pad=False) for e, n in edges]
            nodes.append(sum(pooled) + sum(skip[e] * (masks[e] * n) for e, n in edges))
        h = nodes[-1]
    torch.testing.assert_close(net(x, weights, skip_dropout=dropout()), net.head(h), rtol=1e-9, atol=1e-9)


def halved(cell: nn.Module, edge: int, x: Tensor) -> Tensor:
    """The skip connection of stride 2: two 1x1 convolutions on shifted grids, normalized."""
    even, odd = cell.skips[STRIDED.index(edge)][:, :, None, None].chunk(2)
    shifted = F.pad(F.relu(x)[:, :, 1:, 1:], (0, 1, 0, 1))
    out = torch.cat([F.conv2d(F.relu(x), even, stride=2), F.conv2d(shifted, odd, stride=2)], 1)
    return F.batch_norm(out, None, None, training=True)


@pytest.mark.parametrize("path", ["plain", "fast"])
def test_by_hand_in_darts_skips_of_stride_2_have_no_dropout(path: str) -> None:
    net, x = supernet("darts", path=path), images("darts")
    weights = weights_of(net, "skip_connect")
    generator = torch.Generator().manual_seed(0)
    before = last = net.stem(x)
    for cell in net.cells:
        skip = weights["reduce" if cell.reduce else "normal"][:, net.operations.index("skip_connect")]
        nodes = [cell.inputs[0](before), cell.inputs[1](last)]
        like = nodes[0][:, :, ::2, ::2] if cell.reduce else nodes[0]
        masks = {e: mask(generator, like) for e in range(14) if not (cell.reduce and e in STRIDED)}
        for target in (2, 3, 4, 5):
            entering = [(e, nodes[source]) for e, (source, end) in enumerate(DARTS_EDGES) if end == target]
            terms = [masks[e] * n if e in masks else halved(cell, e, n) for e, n in entering]
            nodes.append(sum(skip[e] * term for (e, _), term in zip(entering, terms, strict=True)))
        before, last = last, torch.cat(nodes[2:], 1)
    torch.testing.assert_close(net(x, weights, skip_dropout=dropout()), net.head(last), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["nasbench201", pytest.param("darts", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("partial", "edges"), [(1, False), (2, True)])
def test_both_paths_drop_the_same_numbers_in_logits_and_gradients(name: str, partial: int, edges: bool) -> None:
    net, x = supernet(name, partial=partial, edges=edges), images(name)
    generator = torch.Generator().manual_seed(3)
    weights = {g.name: torch.rand(g.shape, dtype=torch.float64, generator=generator) for g in net.groups}
    found = []
    for net.path in ("plain", "fast"):
        leaves = {n: w.clone().requires_grad_() for n, w in weights.items()}
        logits = net(x, leaves, skip_dropout=dropout())
        loss = F.cross_entropy(logits, torch.tensor([0, 1, 2]))
        found.append([logits, *torch.autograd.grad(loss, [*leaves.values(), *net.parameters()])])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)
    assert not torch.allclose(found[0][0], net(x, weights))


def test_the_mean_over_many_draws_is_the_cell_without_dropout() -> None:
    net = supernet("nasbench201")
    (cell, *_) = (layer for layer in net.layers if isinstance(layer, MixedCell))
    x = torch.ones(500, 4, 5, 5, dtype=torch.float64)
    weights = weights_of(net, "skip_connect")["operations"]
    active, shares = [frozenset({"skip_connect"})] * len(EDGES), torch.ones(len(EDGES))
    drawn = cell.fast(x, weights, shares, active, dropout().masks(range(len(EDGES)), x))
    whole = cell.fast(x, weights, shares, active, {})
    assert len(set(drawn.flatten().tolist())) > 10
    # 50,000 numbers; the masks of the edges are independent of each other.
    assert abs(drawn.mean() - whole.mean()) < 4 * drawn.std() / 50_000**0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_a_cell_with_masks_can_be_compiled_as_one_graph() -> None:
    net = supernet("nasbench201")
    cell, x = net.layers[1], torch.randn(3, 4, 5, 5, dtype=torch.float64)
    weights, shares = weights_of(net, *net.operations)["operations"].requires_grad_(), torch.ones(len(EDGES))
    active, masks = [frozenset(net.operations[1:])] * len(EDGES), dropout().masks(range(len(EDGES)), x)
    # With the compiler's own code for the graph left out: that takes minutes, and is tested without masks.
    found = []
    for function in (MixedCell.plain, torch.compile(MixedCell.plain, backend="aot_eager", fullgraph=True)):
        out = function(cell, x, weights, shares, active, masks)
        found.append([out, *torch.autograd.grad(out.square().sum(), [weights, *cell.parameters()])])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["nasbench201", "darts"])
def test_evaluation_has_no_dropout(name: str) -> None:
    net, x = supernet(name), images(name)
    weights, drop = weights_of(net, "skip_connect"), dropout()
    before = drop.generator.get_state()
    net.eval()
    assert torch.equal(net(x, weights, skip_dropout=drop), net(x, weights))
    net.train()
    assert torch.equal(drop.generator.get_state(), before)
    assert not torch.allclose(net(x, weights, skip_dropout=drop), net(x, weights))


def test_where_only_strided_edges_skip_nothing_is_drawn() -> None:
    net, x, drop = supernet("darts"), images("darts"), dropout()
    normal, reduce = weights_of(net, "max_pool_3x3")["normal"], weights_of(net, "skip_connect")["reduce"]
    reduce[[e for e in range(14) if e not in STRIDED]] = 0
    weights, before = {"normal": normal, "reduce": reduce}, drop.generator.get_state()
    assert torch.equal(net(x, weights, skip_dropout=drop), net(x, weights))
    assert torch.equal(drop.generator.get_state(), before)


def test_a_pass_leaves_the_global_generator_alone_and_repeats_itself() -> None:
    net, x = supernet("nasbench201"), images("nasbench201")
    weights, before = weights_of(net, "skip_connect"), torch.get_rng_state()
    logits = [net(x, weights, skip_dropout=dropout(seed)) for seed in (5, 5, 6)]
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])


def test_nasbench1shot1_has_no_skips_to_drop_and_a_supernet_that_cannot_drop_says_so() -> None:
    space = load("nasbench1shot1-1")
    net, x = space.supernet((3, 8, 8), 4, channels=4, cells=1), torch.randn(2, 3, 8, 8)
    weights = {g.name: g.uniform() for g in net.groups}
    assert torch.equal(net(x, weights, skip_dropout=dropout()), net(x, weights))
    net = load("mlp").supernet((3, 8, 8), 4, width=4)
    with pytest.raises(RequestError, match="no dropout behind skip connections"):
        net(x, {g.name: g.uniform() for g in net.groups}, skip_dropout=dropout())


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_a_probability_that_is_none_is_refused(p: float) -> None:
    with pytest.raises(RequestError, match="at least 0 and below 1"):
        Dropout(p, torch.Generator())
