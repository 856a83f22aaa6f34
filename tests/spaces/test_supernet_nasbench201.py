"""NAS-Bench-201's supernet."""

import pytest
import torch

from nasight.errors import RequestError
from nasight.spaces import load
from nasight.spaces._supernet import compiled
from nasight.spaces.nasbench201 import EDGES, NasBench201, edge_name
from nasight.spaces.nasbench201._supernet import MixedCell

SIZE = {"channels": 4, "cells": 2}
SHAPE = (2, 7, 6)


def random_weights(space, generator, edges, zeros):
    weights = {}
    for group in space.groups(edges=edges):
        w = torch.rand(group.shape, generator=generator, dtype=torch.float64)
        if zeros:
            w = w * (torch.rand(group.shape, generator=generator) < 0.5)
        weights[group.name] = w.requires_grad_()
    return weights


def outcome(supernet, path, x, weights, skip_zeros):
    """Logits and all gradients along one path."""
    supernet.path = path
    leaves = [x, *weights.values(), *supernet.parameters()]
    logits = supernet(x, weights, skip_zeros=skip_zeros)
    probe = torch.linspace(-1, 1, logits.numel(), dtype=torch.float64).view_as(logits)
    grads = torch.autograd.grad((logits * probe).sum(), leaves, allow_unused=True)
    zero = [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, grads, strict=True)]
    return [logits, *zero]


@pytest.mark.slow
@pytest.mark.parametrize("none", [True, False], ids=["none", "no none"])
@pytest.mark.parametrize("edges", [False, True], ids=["", "edges"])
@pytest.mark.parametrize("partial", [1, 2, 4])
@pytest.mark.parametrize(("zeros", "skip_zeros"), [(False, None), (True, False), (True, True)])
def test_the_fast_path_equals_the_plain_one_in_outputs_and_gradients(none, edges, partial, zeros, skip_zeros):
    torch.manual_seed(0)
    space = NasBench201(none=none)
    supernet = space.supernet(SHAPE, 4, edges=edges, partial=partial, **SIZE).double()
    x = torch.randn(3, *SHAPE, dtype=torch.float64, requires_grad=True)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        weights = random_weights(space, generator, edges, zeros)
        plain, fast = (outcome(supernet, path, x, weights, skip_zeros) for path in ("plain", "fast"))
        for a, b in zip(plain, fast, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("path", ["plain", "fast"])
@pytest.mark.parametrize("partial", [1, 2])
def test_skipping_zeros_does_not_change_what_is_computed(path, partial):
    torch.manual_seed(0)
    space = NasBench201()
    supernet = space.supernet(SHAPE, 4, path=path, edges=True, partial=partial, **SIZE).double()
    x = torch.randn(3, *SHAPE, dtype=torch.float64)
    for seed in range(5):
        weights = random_weights(space, torch.Generator().manual_seed(seed), edges=True, zeros=True)
        with torch.no_grad():
            torch.testing.assert_close(supernet(x, weights), supernet(x, weights, skip_zeros=False))


def test_a_weight_of_zero_has_a_gradient_unless_zeros_are_skipped():
    torch.manual_seed(0)
    space = NasBench201()
    supernet = space.supernet(SHAPE, 4, **SIZE)
    arch = space.parse(
        "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|" + "|".join(f"skip_connect~{i}" for i in range(3)) + "|"
    )
    for skip_zeros in (None, True):
        weights = {"operations": space.encode(arch)["operations"].requires_grad_()}
        supernet(torch.randn(3, *SHAPE), weights, skip_zeros=skip_zeros).sum().backward()
        assert (weights["operations"].grad[0, 1:3].abs().min() > 0) == (skip_zeros is None)


def copy_weights(supernet, network, arch):
    """From the supernet into a stand-alone network; the norms of the latter start at scale 1 and shift 0."""
    layers = list(network)
    for ours, theirs in zip(layers[:-1], supernet.layers, strict=True):
        if not hasattr(ours, "edges"):
            ours.load_state_dict(theirs.state_dict(), strict=False)
            continue
        for e, edge in enumerate(EDGES):
            name = arch[edge_name(*edge)]
            if name in theirs.kernels:
                ours.edges[f"{edge[0]}_{edge[1]}"][1].weight.copy_(theirs.kernels[name][e])
    layers[-1].load_state_dict(supernet.head.state_dict(), strict=False)


@pytest.mark.parametrize("path", ["plain", "fast"])
def test_at_ones_and_zeros_the_supernet_is_the_stand_alone_network(path):
    torch.manual_seed(0)
    space = NasBench201()
    supernet = space.supernet(SHAPE, 4, path=path, **SIZE).double()
    x = torch.randn(3, *SHAPE, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _ in range(12):
            arch = space.sample(generator)
            if space.usable(arch) is None:
                network = space.network(arch, SHAPE, 4, **SIZE).double()
                copy_weights(supernet, network, arch)
                weights = {name: w.double() for name, w in space.encode(arch).items()}
                torch.testing.assert_close(supernet(x, weights), network(x), rtol=1e-9, atol=1e-9)


def test_channels_that_cannot_be_cut_are_refused():
    with pytest.raises(RequestError, match="6 channels cannot be cut into 4 equal parts"):
        NasBench201().supernet(channels=6, partial=4)


def test_the_supernet_gives_the_same_logits_in_training_and_evaluation():
    supernet = NasBench201().supernet(SHAPE, 4, **SIZE)
    x, weights = torch.randn(3, *SHAPE), {"operations": NasBench201().groups()[0].uniform()}
    assert torch.equal(supernet.train()(x, weights), supernet.eval()(x, weights))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_a_compiled_cell_equals_the_plain_one_in_outputs_and_gradients_without_a_graph_break():
    torch.manual_seed(0)
    cell = MixedCell(("skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"), 2, 1).double()
    x = torch.randn(2, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(len(EDGES), 4, dtype=torch.float64, requires_grad=True)
    shares, active = torch.ones(len(EDGES), dtype=torch.float64), [frozenset(cell.operations)] * len(EDGES)
    torch._dynamo.utils.counters.clear()
    results = []
    for function in (MixedCell.plain, compiled(MixedCell.plain)):
        out = function(cell, x, weights, shares, active, {})
        results.append([out, *torch.autograd.grad(out.square().sum(), [x, weights, *cell.parameters()])])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
    counters = torch._dynamo.utils.counters
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_only_training_passes_over_all_operations_are_compiled():
    space = NasBench201()
    supernet = space.supernet(SHAPE, 4, path="compiled", **SIZE)
    whole = {"operations": torch.full((len(EDGES), 5), 0.2)}
    single = space.encode(space.sample(torch.Generator().manual_seed(0)))

    def chosen(weights, skip_zeros):
        return supernet._cell(MixedCell.plain, MixedCell.fast, weights, skip_zeros)

    assert chosen(whole, True) is compiled(MixedCell.plain)
    assert chosen(whole, False) is compiled(MixedCell.plain)
    assert chosen(single, True) is MixedCell.fast
    with torch.no_grad():
        assert chosen(whole, True) is MixedCell.fast


def test_compiling_a_network_without_cells_is_refused():
    with pytest.raises(RequestError, match="take 'fast'"):
        load("mlp").supernet((1, 4, 4), 2, path="compiled", width=4)


def test_compiling_without_a_compiler_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RequestError, match=r"C\+\+ compiler"):
        NasBench201().supernet(SHAPE, 4, path="compiled", **SIZE)
