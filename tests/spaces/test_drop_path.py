"""Whole edges of DARTS's supernet are dropped, image by image (SNAS)."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nasight.errors import RequestError
from nasight.spaces import Dropout, Supernet, load
from nasight.spaces.darts._supernet_cell import EDGES, STRIDED

torch.set_num_threads(1)
P = 0.3


def supernet(**settings: object) -> Supernet:
    torch.manual_seed(0)
    return load("darts").supernet((3, 8, 8), 4, channels=4, cells=3, **settings).double()


def images(number: int = 3) -> Tensor:
    return torch.randn(number, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def weights_of(net: Supernet) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(2)
    return {g.name: torch.rand(g.shape, dtype=torch.float64, generator=generator) for g in net.groups}


def drop(seed: int = 0) -> Dropout:
    return Dropout(P, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("path", ["plain", "fast"])
def test_by_hand_every_edge_of_every_cell_is_kept_or_dropped_for_each_image(path: str) -> None:
    net, x = supernet(path=path), images()
    names = ("skip_connect", "max_pool_3x3")
    weights = weights_of(net)
    for group in net.groups:
        weights[group.name] *= torch.tensor([option in names for option in group.options[0]])
    generator = torch.Generator().manual_seed(0)
    before = last = net.stem(x)
    for cell in net.cells:
        skip, pool = (weights["reduce" if cell.reduce else "normal"][:, net.operations.index(n)] for n in names)
        # 1 / 0.7 where an edge stays, for 14 edges and 3 images.
        kept = (torch.rand(14, 3, 1, 1, 1, dtype=torch.float64, generator=generator) < 0.7).double() / 0.7
        nodes = [cell.inputs[0](before), cell.inputs[1](last)]
        for target in (2, 3, 4, 5):
            node = 0
            for e, (source, end) in enumerate(EDGES):
                if end == target:
                    stride = 2 if cell.reduce and e in STRIDED else 1
                    given = pool[e] * F.batch_norm(F.max_pool2d(nodes[source], 3, stride, 1), None, None, training=True)
                    given = given + skip[e] * (nodes[source] if stride == 1 else halved(cell, e, nodes[source]))
                    node = node + kept[e] * given
            nodes.append(node)
        before, last = last, torch.cat(nodes[2:], 1)
    torch.testing.assert_close(net(x, weights, drop_path=drop()), net.head(last), rtol=1e-9, atol=1e-9)


def halved(cell: torch.nn.Module, edge: int, x: Tensor) -> Tensor:
    """The skip connection of stride 2: two 1x1 convolutions on shifted grids, normalized."""
    even, odd = cell.skips[STRIDED.index(edge)][:, :, None, None].chunk(2)
    shifted = F.pad(F.relu(x)[:, :, 1:, 1:], (0, 1, 0, 1))
    out = torch.cat([F.conv2d(F.relu(x), even, stride=2), F.conv2d(shifted, odd, stride=2)], 1)
    return F.batch_norm(out, None, None, training=True)


@pytest.mark.parametrize(("partial", "edges"), [(1, False), (2, True)])
def test_both_paths_drop_the_same_edges_in_logits_and_gradients(partial: int, edges: bool) -> None:
    net, x = supernet(partial=partial, edges=edges), images()
    weights, found = weights_of(net), []
    for net.path in ("plain", "fast"):
        leaves = {n: w.clone().requires_grad_() for n, w in weights.items()}
        logits = net(x, leaves, drop_path=drop())
        loss = F.cross_entropy(logits, torch.tensor([0, 1, 2]))
        found.append([logits, *torch.autograd.grad(loss, [*leaves.values(), *net.parameters()])])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)
    assert not torch.allclose(found[0][0], net(x, weights))


def test_three_edges_in_ten_are_dropped_and_the_mean_stays() -> None:
    paths = torch.stack([*drop().paths(14, torch.empty(5000, 2, 1, 1, dtype=torch.float64)).values()])
    assert paths.shape == (14, 5000, 1, 1, 1)
    assert set(paths.flatten().tolist()) == {0.0, 1 / 0.7}
    # 70,000 draws: four standard errors.
    assert float((paths == 0).double().mean()) == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / 70_000) ** 0.5)


def test_evaluation_drops_nothing_and_draws_nothing() -> None:
    net, x, dropped = supernet(), images(), drop()
    weights, before = weights_of(net), dropped.generator.get_state()
    net.eval()
    assert torch.equal(net(x, weights, drop_path=dropped), net(x, weights))
    assert torch.equal(dropped.generator.get_state(), before)


def test_other_spaces_and_two_dropouts_at_once_are_refused_in_a_sentence() -> None:
    net, x = supernet(), images()
    with pytest.raises(RequestError, match="not both"):
        net(x, weights_of(net), drop_path=drop(), skip_dropout=drop())
    net = load("nasbench201").supernet((3, 8, 8), 4, channels=4, cells=1)
    with pytest.raises(RequestError, match="does not drop whole edges"):
        net(x.float(), {g.name: g.uniform() for g in net.groups}, drop_path=drop())
