"""NAS-Bench-1Shot1's supernet."""

import pytest
import torch

from nasight.spaces.nasbench1shot1 import NasBench1Shot1

SIZE = {"channels": 4, "cells": 2}


def random_weights(space, generator, zeros):
    """Rows on the simplex; with `zeros`, some of their entries are exactly zero, now and then a whole row."""
    weights = {}
    for group in space.groups():
        rows = []
        for size in group.sizes:
            row = torch.rand(size, generator=generator, dtype=torch.float64)
            if zeros:
                row = row * (torch.rand(size, generator=generator) < 0.5)
            rows.append(row / row.sum().clamp_min(1e-9))
        weights[group.name] = torch.cat(rows).reshape(group.shape).requires_grad_()
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
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(("zeros", "skip_zeros"), [(False, None), (True, False), (True, True)])
@pytest.mark.parametrize("partial", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_fast_path_equals_the_plain_one_in_outputs_and_gradients(number, zeros, skip_zeros, partial, seed):
    torch.manual_seed(seed)
    space = NasBench1Shot1(number)
    supernet = space.supernet((2, 7, 6), 4, partial=partial, **SIZE).double()
    x = torch.randn(3, 2, 7, 6, dtype=torch.float64, requires_grad=True)
    weights = random_weights(space, torch.Generator().manual_seed(seed), zeros)
    plain, fast = (outcome(supernet, path, x, weights, skip_zeros) for path in ("plain", "fast"))
    for a, b in zip(plain, fast, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("path", ["plain", "fast"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_skipping_zeros_does_not_change_what_is_computed(number, path):
    torch.manual_seed(0)
    space = NasBench1Shot1(number)
    supernet = space.supernet((2, 7, 6), 4, path=path, **SIZE).double()
    x = torch.randn(3, 2, 7, 6, dtype=torch.float64)
    for seed in range(5):
        weights = random_weights(space, torch.Generator().manual_seed(seed), zeros=True)
        with torch.no_grad():
            torch.testing.assert_close(supernet(x, weights), supernet(x, weights, skip_zeros=False))


def copy_weights(space, supernet, network):
    """From the supernet into a stand-alone network, whose cells hold only the channels and nodes they need."""
    network[0].load_state_dict(supernet.layers[0].state_dict(), strict=False)
    c = supernet.layers[0][0].out_channels
    kept = torch.arange(c)
    for ours, layer in zip(list(network)[1:-1], list(supernet.layers)[1:], strict=True):
        if not hasattr(ours, "blocks"):
            continue
        c = layer.channels
        for node, block in ours.projections.items():
            place = int(node) - 1
            block[0].weight.copy_(layer.project[place * c : place * c + c, kept])
        if ours.past is not None:
            ours.past[0].weight.copy_(layer.project[space.nodes * c :, kept])
        for node, operation in ours.operations.items():
            if hasattr(operation, "stride"):
                continue
            kernel = layer.wide if operation[0].kernel_size == (3, 3) else layer.narrow
            operation[0].weight.copy_(kernel[int(node) - 1])
        kept = torch.cat([torch.arange((n - 1) * c, n * c) for n in ours.blocks])
    network[-1][-1].weight.copy_(supernet.head[-1].weight[:, kept])
    network[-1][-1].bias.copy_(supernet.head[-1].bias)


@pytest.mark.parametrize("path", ["plain", "fast"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_at_an_encoding_the_supernet_is_the_stand_alone_network(number, path):
    torch.manual_seed(number)
    space = NasBench1Shot1(number)
    supernet = space.supernet((2, 7, 6), 4, path=path, **SIZE).double()
    x = torch.randn(3, 2, 7, 6, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _ in range(10):
            arch = space.sample(generator)
            network = space.network(arch, (2, 7, 6), 4, **SIZE).double()
            copy_weights(space, supernet, network)
            # Weights are 1, 1/2 or 1/3, here in full precision.
            weights = {name: (w.double() * 6).round() / 6 for name, w in space.encode(arch).items()}
            torch.testing.assert_close(supernet(x, weights), network(x), rtol=1e-9, atol=1e-9)
