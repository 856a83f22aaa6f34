"""NAS-Bench-1Shot1's supernet."""

from itertools import pairwise

import pytest
import torch

from nasight.spaces import load
from nasight.spaces.nasbench1shot1 import NasBench1Shot1
from nasight.spaces.nasbench1shot1._supernet import MixedCell, NormRelu, Plan

SIZE = {"channels": 4, "cells": 2}
RELEASED = {
    (1, 1): [[0.05350964, 0.28082879], [2.10504861, 1.67589756], [0.67777721, 0.3981588]],
    (1, 4): [[2.06010078, 1.77038456], [2.49804083, 1.11717003], [-1.72180614, -0.53266945]],
    (2, 1): [[0.70908938, -1.66683729], [-0.0576144, 0.21275458], [2.18486048, 3.80896785]],
    (2, 4): [[0.42578033, 0.37089229], [2.42010104, -2.21891948], [-0.00954591, 4.20291233]],
    (3, 1): [[-1.00301661, 0.01159738], [-0.89486984, -2.45356487], [-1.00044352, 1.52762176]],
    (3, 4): [[-1.64815719, -0.12171018], [-0.8471818, -0.44669012], [-0.40299099, -0.34594543]],
}
"""(space, K) -> logits that the code of automl/nasbench-1shot1@cb0f0ec gave for 3 images of 6 x 5 pixels in double
precision, in training mode, with 4 channels and 6 cells and with the numbers of `Waves` for everything else: DARTS's
network for K = 1, PC-DARTS's for K = 4."""


def random_weights(space, generator, zeros, *, ties=True):
    """Rows on the simplex; with `zeros`, some of their entries are exactly zero, now and then a whole row.

    Without `ties` the 3x3 convolution of a node and the cell's input are never left out. Else pixels can be equal up
    to rounding before a max pool, and which of them gets the gradient is then up to rounding too.
    """
    weights = {}
    for group in space.groups():
        rows = []
        for size in group.sizes:
            row = torch.rand(size, generator=generator, dtype=torch.float64)
            if zeros:
                kept = torch.rand(size, generator=generator) < 0.5
                if not ties:
                    kept[1 if group.name == "operations" else 0] = True
                row = row * kept
            rows.append(row / row.sum().clamp_min(1e-9))
        weights[group.name] = torch.cat(rows).reshape(group.shape).requires_grad_()
    return weights


def uneven_norms(module):
    """The module, its norms at other scales and shifts than 1 and 0."""
    with torch.no_grad():
        for norm in (m for m in module.modules() if isinstance(m, NormRelu)):
            norm.scale.normal_(1, 0.5)
            norm.shift.normal_(0, 0.5)
    return module


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
    supernet = uneven_norms(space.supernet((2, 7, 6), 4, partial=partial, **SIZE)).double()
    x = torch.randn(3, 2, 7, 6, dtype=torch.float64, requires_grad=True)
    weights = random_weights(space, torch.Generator().manual_seed(seed), zeros, ties=skip_zeros is not False)
    plain, fast = (outcome(supernet, path, x, weights, skip_zeros) for path in ("plain", "fast"))
    for a, b in zip(plain, fast, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("path", ["plain", "fast"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_skipping_zeros_does_not_change_what_is_computed(number, path):
    torch.manual_seed(0)
    space = NasBench1Shot1(number)
    supernet = uneven_norms(space.supernet((2, 7, 6), 4, path=path, **SIZE)).double()
    x = torch.randn(3, 2, 7, 6, dtype=torch.float64)
    for seed in range(5):
        weights = random_weights(space, torch.Generator().manual_seed(seed), zeros=True)
        with torch.no_grad():
            torch.testing.assert_close(supernet(x, weights), supernet(x, weights, skip_zeros=False))


@pytest.mark.parametrize("path", ["plain", "fast"])
@pytest.mark.parametrize(("number", "partial"), RELEASED)
def test_logits_are_those_of_the_released_network(number, partial, path):
    space = NasBench1Shot1(number)
    supernet = space.supernet((3, 6, 5), 2, partial=partial, path=path, channels=4, cells=2).double()
    wave = Waves()
    with torch.no_grad():
        wave.fill(supernet.layers[0][0].weight, supernet.layers[0][1].weight, supernet.layers[0][1].bias)
        for cell in (layer for layer in supernet.layers if isinstance(layer, MixedCell)):
            ends = [*range(0, (cell.nodes + 1) * cell.channels, cell.channels), len(cell.project)]
            for at in (slice(*pair) for pair in pairwise(ends)):
                wave.fill(cell.project[at], cell.project_norm.scale[at], cell.project_norm.shift[at])
            for n in range(cell.nodes):
                wave.fill(cell.wide[n], cell.wide_norm.scale[n], cell.wide_norm.shift[n])
                wave.fill(cell.narrow[n], cell.narrow_norm.scale[n], cell.narrow_norm.shift[n])
        narrowing, linear = supernet.head[1], supernet.head[-1][-1]
        for tensor in (narrowing.weight, linear.weight, linear.bias):
            tensor.copy_(wave(tensor.shape))
        operations, inputs = space.groups()
        weights = {
            "operations": wave(operations.shape).softmax(1),
            "inputs": torch.cat([wave((size,)).softmax(0) for size in inputs.sizes]),
        }
        logits = supernet(wave((3, 3, 6, 5)), weights)
    torch.testing.assert_close(logits, torch.tensor(RELEASED[number, partial], dtype=torch.float64), rtol=0, atol=1e-7)


class Waves:
    """Numbers that another program can repeat: tensor t holds sin(k^2 + t) at place k, with t = 1, 2, ..."""

    def __init__(self):
        self.given = 0

    def __call__(self, shape):
        self.given += 1
        k = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
        return torch.sin(k * k + self.given).reshape(shape)

    def fill(self, kernel, scale, shift):
        kernel.copy_(self(kernel.shape))
        scale.copy_(1 + self(scale.shape) / 2)
        shift.copy_(self(shift.shape) / 2)


def constant_cell(nodes, shifts):
    """A cell of one channel whose projections are constant images: `shifts`, for each node and for the output."""
    cell = MixedCell(nodes, 2, 1, 1).double()
    with torch.no_grad():
        cell.project_norm.scale.zero_()
        cell.project_norm.shift.copy_(torch.tensor(shifts))
    return cell


@pytest.mark.parametrize("path", ["plain", "fast"])
def test_node_2_sums_its_inputs_in_space_1_and_weighs_them_in_the_others(path):
    nodes = {}
    pools = torch.tensor([[1.0, 0.0, 0.0]] * 4, dtype=torch.float64)
    for number in (1, 2):
        space = NasBench1Shot1(number)
        supernet = space.supernet((2, 4, 4), 3, path=path, channels=1, cells=1).double()
        cell = constant_cell(4, [1.0, 10.0, 100.0, 1000.0, 0.5, 0.5, 0.5, 0.5])
        supernet.layers = torch.nn.ModuleList([cell])
        supernet.head = torch.nn.Identity()
        uniform = torch.cat([torch.full((size,), 1 / size) for size in space.groups()[1].sizes]).double()
        with torch.no_grad():
            out = supernet(torch.randn(3, 2, 4, 4, dtype=torch.float64), {"operations": pools, "inputs": uniform})
        nodes[number] = (5 * out[0, :, 2, 1] - 0.5).tolist()
    # Nodes 3 and 4 take means of the projection and what is before them: (100 + 1 + 11) / 3 and so on.
    two = 10 + 1
    three = (100 + 1 + two) / 3
    assert nodes[1] == pytest.approx([1, two, three, (1000 + 1 + two + three) / 4])
    two = (10 + 1) / 2
    three = (100 + 1 + two) / 3
    assert nodes[2] == pytest.approx([1, two, three, (1000 + 1 + two + three) / 4])


@pytest.mark.parametrize("path", ["plain", "fast"])
def test_with_sums_every_chosen_input_of_an_architecture_has_weight_one(path):
    """Pools at every node, the cell's input arrives as 1, 10, 100, 1000 and, for the output, 0.5."""
    text = "maxpool3x3(0)|maxpool3x3(1)|maxpool3x3(0+2)|maxpool3x3(0+3)|out(0+2+4)"
    found = {}
    for sums in (False, True):
        space = NasBench1Shot1(2, sums=sums)
        arch = space.parse(text)
        supernet = space.supernet((2, 4, 4), 3, path=path, channels=1, cells=1).double()
        supernet.layers = torch.nn.ModuleList([constant_cell(4, [1.0, 10.0, 100.0, 1000.0, 0.5, 0.5, 0.5, 0.5])])
        supernet.head = torch.nn.Identity()
        weights = {name: value.double() for name, value in space.encode(arch).items()}
        with torch.no_grad():
            out = supernet(torch.randn(3, 2, 4, 4, dtype=torch.float64), weights)
        found[sums] = out[0, :, 2, 1].tolist()
        assert space.derive(weights) == arch
    # Node 2 passes 1 on, node 3 is 100 + 1, node 4 is 1000 + 101; nodes 1 and 3 are not joined.
    assert found[True] == pytest.approx([0.5, 1.5, 0.5, 1101.5])
    assert found[False] == pytest.approx([v / 3 for v in (0.5, 1.5, 0.5, (1000 + 101 / 2) / 2 + 0.5)])
    assert load("nasbench1shot1-2", sums=True).options == {"sums": True}
    assert load("nasbench1shot1-2").options == {}


def test_before_the_pool_a_1x1_convolution_narrows_what_the_cells_gave_and_a_norm_without_scale_follows():
    supernet = NasBench1Shot1(1).supernet((1, 4, 4), 2, channels=1, cells=1).double()
    narrowing, norm, linear = supernet.head[1], supernet.head[2], supernet.head[-1][-1]
    assert narrowing.weight.shape == (4, 16, 1, 1)
    assert not list(norm.parameters())
    with torch.no_grad():
        narrowing.weight.fill_(1.0)
        linear.weight.copy_(torch.tensor([[1.0, 1, 1, 1], [0, 0, 0, 5]]))
        linear.bias.copy_(torch.tensor([0.0, 7.0]))
        # Two images of 2 pixels: behind the ReLU and summed over channels they are 0, 16 and 48, 80.
        x = torch.tensor([[-7.0, 1.0], [3.0, 5.0]], dtype=torch.float64)[:, None, None].repeat(1, 16, 1, 1)
        logits = supernet.head(x)
    # Less their mean 36 they are -36, -20 and 12, 44, whose mean square is 944; the pool leaves -28 and 28.
    z = 28 / (944 + 1e-5) ** 0.5
    assert logits.tolist() == [pytest.approx([-4 * z, 7 - 5 * z]), pytest.approx([4 * z, 7 + 5 * z])]


@pytest.mark.parametrize(("size", "second", "third"), [(32, 17, 9), (8, 5, 3), (2, 2, 2), (1, 1, 1)])
def test_pools_between_stacks_are_padded_as_in_the_release(size, second, third):
    supernet = NasBench1Shot1(1).supernet((1, size, size), 2, channels=1, cells=1)
    seen = []
    for layer in supernet.layers:
        if isinstance(layer, torch.nn.MaxPool2d):
            layer.register_forward_hook(lambda _, __, out: seen.append(out.shape[-1]))
    supernet(torch.randn(2, 1, size, size), {g.name: g.uniform() for g in supernet.groups})
    assert seen == [second, third]


def copy_weights(space, cell, network_cell, kept):
    """From a supernet's cell into a stand-alone one, which holds only the channels and nodes it needs.

    `kept` are the channels that enter it; the channels that leave it are returned.
    """
    c = cell.channels

    def copy(block, kernel, norm, at):
        block[0].weight.copy_(kernel)
        block[1].weight.copy_(norm.scale[at])
        block[1].bias.copy_(norm.shift[at])

    for node, block in network_cell.projections.items():
        at = slice((int(node) - 1) * c, int(node) * c)
        copy(block, cell.project[at, kept], cell.project_norm, at)
    if network_cell.past is not None:
        at = slice(space.nodes * c, None)
        copy(network_cell.past, cell.project[at, kept], cell.project_norm, at)
    for node, operation in network_cell.operations.items():
        if not hasattr(operation, "stride"):
            wide = operation[0].kernel_size == (3, 3)
            kernel, norm = (cell.wide, cell.wide_norm) if wide else (cell.narrow, cell.narrow_norm)
            copy(operation, kernel[int(node) - 1], norm, int(node) - 1)
    return torch.cat([torch.arange((n - 1) * c, n * c) for n in network_cell.blocks])


@pytest.mark.parametrize("path", [MixedCell.plain, MixedCell.fast])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_at_an_encoding_with_means_a_cell_is_that_of_the_stand_alone_network(number, path):
    torch.manual_seed(number)
    space = NasBench1Shot1(number)
    supernet = uneven_norms(space.supernet((2, 7, 6), 4, **SIZE)).double()
    cell = next(layer for layer in supernet.layers if isinstance(layer, MixedCell))
    x = torch.randn(3, 4, 7, 6, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _ in range(10):
            arch = space.sample(generator)
            alone = space.network(arch, (2, 7, 6), 4, **SIZE).double()[1]
            leaving = copy_weights(space, cell, alone, torch.arange(4))
            operations = space.encode(arch)["operations"].double()
            inputs = [torch.zeros(i + 1, dtype=torch.float64) for i in range(space.nodes + 1)]
            for row, read in zip(inputs, space.inputs_of(arch), strict=True):
                row[list(read)] = 1 / len(read)
            plan = Plan.of(operations, inputs, skip_zeros=True)
            found = path(cell, x, operations, inputs, plan)
            torch.testing.assert_close(found[:, leaving], alone(x), rtol=1e-9, atol=1e-9)


def test_a_batch_of_one_image_gives_the_bias_alone():
    supernet = NasBench1Shot1(2).supernet((1, 6, 6), 3, channels=2, cells=1).double()
    weights = {g.name: g.uniform().double() for g in supernet.groups}
    with torch.no_grad():
        one = supernet(torch.randn(1, 1, 6, 6, dtype=torch.float64), weights)
    torch.testing.assert_close(one[0], supernet.head[-1][-1].bias)
