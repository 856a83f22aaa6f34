"""TE-NAS and KNAS as released: numbers of the authors' code on weights and examples that a formula gives."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from nasight.data import load as load_data
from nasight.gradients import coupled_norm, norms_as
from nasight.kernels import SCORES, score, te_nas_prune
from nasight.kernels import _scores as s
from nasight.kernels._initial import reinitialize
from nasight.kernels._te_nas import _worst
from nasight.kernels._te_nas_measures import condition_number, crops, linear_regions, weights_of
from nasight.spaces import load
from nasight.spaces.nasbench201 import EDGES, edge_name

CELL = "|nor_conv_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|avg_pool_3x3~0|nor_conv_3x3~1|nor_conv_1x1~2|"
KERNELS = {"nor_conv_1x1": 1, "nor_conv_3x3": 2}
# What get_ntk_n and Linear_Region_Collector of the released code (VITA-Group/TENAS, 9df78ff) give in float64 on the
# weights and examples below: for the cell above as a pruned supernet, for the supernet without `none`, and for that
# without nor_conv_3x3 on 1->2 and avg_pool_3x3 on 2->3.
RELEASED = {
    "cell": (4.656216992072327, 495),
    "supernet": (5.167811938931231, 494),
    "pruned": (3.681732773362202, 498),
}


def wave(shape: tuple[int, ...], phase: float) -> Tensor:
    steps = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
    return torch.sin(steps * steps * 0.37 + phase).reshape(shape)


def put(p: Tensor, phase: float) -> None:
    with torch.no_grad():
        p.copy_(wave(tuple(p.shape), phase) * (4 / p.shape[1:].numel()) ** 0.5)


def fill(layers: list[nn.Module], head: nn.Module) -> None:
    """A wave with a phase of its own for the stem, every edge and operation of every cell, and every reduction."""
    if isinstance(layers[0], nn.Sequential):
        put(layers.pop(0)[0].weight, 0)  # type: ignore[index]
    for place, layer in enumerate(layers):
        if hasattr(layer, "shortcut"):
            for shift, part in ((15, layer.body[0][1]), (16, layer.body[1][1]), (17, layer.shortcut[1])):  # type: ignore[index]
                put(part.weight, 1 + 20 * place + shift)
        for e, edge in enumerate(EDGES):
            if hasattr(layer, "kernels"):
                for name, o in KERNELS.items():
                    put(layer.kernels[name][e], 1 + 20 * place + 3 * e + o)  # type: ignore[index]
            elif hasattr(layer, "edges"):
                operation = layer.edges[edge_name(*edge).replace("->", "_")]  # type: ignore[index]
                if isinstance(operation, nn.Sequential):
                    o = 1 if operation[1].kernel_size == (1, 1) else 2
                    put(operation[1].weight, 1 + 20 * place + 3 * e + o)
    put(head[-1].weight, 200)  # type: ignore[index]
    nn.init.zeros_(head[-1].bias)  # type: ignore[index]


def masks(which: str) -> Tensor:
    space = load("nasbench201", none=False)
    if which == "cell":
        return space.encode(space.parse(CELL))["operations"].double()
    mask = torch.ones(6, 4, dtype=torch.float64)
    if which == "pruned":
        mask[2, 2] = mask[5, 3] = 0
    return mask


@pytest.mark.parametrize("which", RELEASED)
def test_condition_and_regions_of_supernets_are_those_of_the_released_code(which: str) -> None:
    space = load("nasbench201", none=False)
    supernet = space.pruning_supernet((3, 16, 16), 10, channels=3, cells=1).double()
    thin = space.pruning_supernet((1, 3, 3), 10, thin=True).double()
    for net in (supernet, thin):
        fill(list(net.layers), net.head)  # type: ignore[arg-type]
    mask = masks(which)
    shares = {"operations": mask / mask.sum(1, keepdim=True)}
    kappa = condition_number(partial(supernet, weights=shares), wave((12, 3, 16, 16), 7.0), weights_of(supernet))
    assert kappa == pytest.approx(RELEASED[which][0], rel=1e-6)
    assert linear_regions(partial(thin, weights=shares), wave((600, 1, 3, 3), 3.0)) == RELEASED[which][1]


def test_the_scores_of_a_cell_are_those_of_the_released_code_and_of_the_pruned_supernet() -> None:
    space = load("nasbench201")
    network = space.network(space.parse(CELL), (3, 16, 16), 10, channels=3, cells=1).double()
    thin = space.thin_network(space.parse(CELL), (1, 3, 3), 10).double()
    for net in (network, thin):
        parts = list(net.children())
        fill(parts[:-1], parts[-1])
    none = torch.zeros(0)
    assert s.condition(network, wave((12, 3, 16, 16), 7.0), none) == pytest.approx(RELEASED["cell"][0], rel=1e-6)
    assert s.regions(thin, wave((600, 1, 3, 3), 3.0), none) == RELEASED["cell"][1]


def test_the_rows_of_te_nas_have_the_published_initial_weights_batches_and_sizes() -> None:
    condition, regions = SCORES["condition"], SCORES["regions"]
    assert (condition.init, condition.batch, regions.init, regions.batch) == ("fan-out", 72, "fan-in", 3000)
    assert load("nasbench201").prune_size == {"channels": 3, "cells": 1}
    torch.manual_seed(0)
    wide = reinitialize(nn.Conv2d(64, 256, 3), "fan-out")
    assert float(wide.weight.detach().square().mean()) == pytest.approx(2 / (256 * 9), rel=0.05)  # type: ignore[union-attr]


def test_crops_are_nine_neighbors_of_one_color_of_an_image() -> None:
    images = torch.arange(5 * 2 * 6 * 6, dtype=torch.float32).view(5, 2, 6, 6)
    found = crops(images, 12, torch.Generator().manual_seed(0))
    assert found.shape == (12, 1, 3, 3)
    steps = torch.tensor([[0, 1, 2], [6, 7, 8], [12, 13, 14]])
    assert bool((found - found[:, :, :1, :1] == steps).all())
    assert len({int(crop[0, 0, 0]) // 72 for crop in found[:5]}) == 5


def test_the_worst_option_has_the_lowest_sum_of_dense_ranks_then_the_lower_kappa() -> None:
    gains = {("g", 0, 0): (0.5, 0.2), ("g", 0, 1): (0.1, 0.1), ("g", 1, 0): (0.5, 0.1), ("g", 1, 1): (0.0, 0.3)}
    assert set(_worst(gains)) == {("g", 0, 0), ("g", 1, 0)}


@pytest.mark.slow
def test_pruning_tries_every_removal_ends_at_a_cell_and_repeats() -> None:
    space, data = load("nasbench201", none=False), load_data("digits")
    told: list[tuple[int, int]] = []
    prune = partial(te_nas_prune, space, data.train_x[:3], size={"channels": 1, "cells": 1}, number=40, repeats=1)
    once = prune(progress=lambda done, total: told.append((done, total)))
    assert once in space
    assert told[-1] == (6 * (4 + 3 + 2), 6 * (4 + 3 + 2))
    assert prune() == once


def test_the_released_score_of_knas_follows_single_numbers_through_two_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 3), nn.Linear(3, 17)).double()
    x, y = torch.randn(6, 10, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2])
    expected = 0.0
    for p in (net[0].weight, net[3].weight):  # the second layer has 24 numbers, too few
        grads = [torch.autograd.grad(cross_entropy(net(x[i : i + 1]), y[i : i + 1]), p)[0].flatten() for i in range(6)]
        for place in range(50):
            first, second = ([float(g[place]) for g in half] for half in (grads[:3], grads[3:]))
            expected += (
                sum((a - sum(first) / 3) * (b - sum(second) / 3) for a, b in zip(first, second, strict=True)) / 36
            )
    assert s.knas_released(net, x, y) == pytest.approx(expected)


def test_scores_of_an_earlier_definition_are_computed_anew(tmp_path: Path) -> None:
    table = (torch.randn(60, 5).numpy(), (torch.arange(60) % 3).numpy())
    again = partial(score, "mlp", "condition,params", table, sample=2, size={"width": 16}, batch=8, workers=1)
    found = again(out=tmp_path / "s")
    place = tmp_path / "s" / "scores.jsonl"
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    for line in lines:
        line["scores"] = {"condition": 7.0, "params": 5.0}
        del line["versions"]
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    second = again(out=tmp_path / "s")
    assert second.values["condition"] == found.values["condition"]
    assert second.values["params"] == [5.0, 5.0]


def test_te_nas_scores_other_spaces_and_rows_that_are_no_images() -> None:
    table = (torch.randn(60, 5).numpy(), (torch.arange(60) % 3).numpy())
    found = score("mlp", "te-nas,knas-released", table, sample=2, size={"width": 16}, batch=8, workers=1)
    assert all(len(values) == 2 for values in found.values.values())
    with norms_as(nn.Identity(), coupled_norm):
        assert linear_regions(nn.Identity(), torch.zeros(2, 1)) is None
