"""What a space declares about itself, and that the rest of the library can rely on it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from nasight.errors import RequestError
from nasight.spaces import PRESETS, Choice, ModuleSpace, PlainSpace, Space, load, multiply_adds, names
from nasight.training import settings_for

OWN = ModuleSpace(lambda: nn.Sequential(Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}), nn.Linear(4, 2)))
SPACES = [*map(load, names()), load("nasbench201", none=False), OWN]


def size_of(space: Space) -> dict[str, int]:
    return dict(space.search_sizes.get("tiny", {}))


@pytest.mark.parametrize("space", SPACES, ids=lambda s: f"{s.name}-{len(s.decisions[0].options)}")
def test_the_reference_is_a_network(space: Space) -> None:
    assert space.usable(space.reference) is None
    inputs = (4,) if space is OWN else (3, 8, 8)
    network = space.network(space.reference, inputs, 3, **size_of(space)).eval()
    assert network(torch.zeros(2, *inputs)).shape == (2, 2 if space is OWN else 3)


def test_references_are_what_a_person_would_have_used() -> None:
    residual = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|skip_connect~2|"
    assert load("nasbench201").format(load("nasbench201").reference) == residual
    assert load("darts").reference == load("darts").parse("DARTS_V2")
    assert load("mlp").format(load("mlp").reference) == "relu,relu,relu/0,0"
    assert dict(OWN.reference.choices) == {"0": "relu"}
    one = load("nasbench1shot1-1")
    assert one.format(one.reference).startswith("conv3x3-bn-relu(0)|conv3x3-bn-relu(0+1)|conv3x3-bn-relu(0+2)")


def test_the_residual_cell_is_built_and_encoded_where_none_is_left_out_of_the_search() -> None:
    space = load("nasbench201", none=False)
    weights = space.encode(space.reference)["operations"]
    assert weights.shape == (6, 4)
    assert weights.sum() == 4
    supernet = space.supernet((3, 8, 8), 3, channels=4, cells=1).eval()
    whole = load("nasbench201").supernet((3, 8, 8), 3, channels=4, cells=1).eval()
    whole.load_state_dict(supernet.state_dict())
    x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    same = whole(x, load("nasbench201").encode(space.reference))
    assert torch.allclose(supernet(x, {"operations": weights}), same, atol=1e-6)


@pytest.mark.parametrize("name", names())
def test_a_space_has_sizes_for_every_preset_of_searching_and_a_size_for_scores(name: str) -> None:
    space = load(name)
    for preset in PRESETS:
        space.size(**space.search_sizes[preset])
    space.size(**space.score_size)
    space.size(**space.thin_size)


@pytest.mark.parametrize("name", names())
def test_settings_of_a_training_are_those_the_space_declares(name: str) -> None:
    space = load(name)
    for preset in PRESETS:
        if preset not in space.train_settings:
            assert space.train_size(preset) is None
            with pytest.raises(RequestError, match="has no preset"):
                settings_for(space, preset)
            continue
        found = settings_for(space, preset)
        assert found.size == space.train_size(preset)
        for key, value in space.train_settings[preset].items():
            assert key == "size" or getattr(found, key) == value


@pytest.mark.parametrize("space", SPACES[:-1], ids=lambda s: f"{s.name}-{len(s.decisions[0].options)}")
def test_its_options_make_it_again(space: Space) -> None:
    again = load(space.name, **space.options)
    assert again.decisions == space.decisions
    assert again.groups(edges=space.edge_weights) == space.groups(edges=space.edge_weights)


@pytest.mark.parametrize("space", SPACES[:-1], ids=lambda s: f"{s.name}-{len(s.decisions[0].options)}")
def test_counts_are_those_of_built_networks_and_none_is_below_the_smallest(space: Space) -> None:
    count = space.parameters((3, 8, 8), 3, **size_of(space))
    least, certain = count.smallest()
    assert certain
    generator = torch.Generator().manual_seed(1)
    for _ in range(6):
        arch = space.sample(generator)
        if space.usable(arch) is None:
            network = space.network(arch, (3, 8, 8), 3, **size_of(space))
            assert count(arch) == sum(p.numel() for p in network.parameters()) >= least


@pytest.mark.parametrize("space", SPACES, ids=lambda s: f"{s.name}-{len(s.decisions[0].options)}")
def test_multiply_adds_are_those_of_built_networks(space: Space) -> None:
    inputs = (4,) if space is OWN else (3, 9, 9)
    count, generator = space.multiply_adds(inputs, 3, **size_of(space)), torch.Generator().manual_seed(1)
    for arch in (space.reference, *(space.sample(generator) for _ in range(6))):
        if space.usable(arch) is None:
            network = space.network(arch, inputs, 3, **size_of(space))
            assert count(arch) == multiply_adds(network, inputs) > 0


def test_published_cells_of_other_spaces_are_counted_too() -> None:
    space, size = load("darts"), {"channels": 4, "cells": 3}
    for name in space.published:
        network = space.network(space.parse(name), (3, 8, 8), 3, **size)
        counted = space.multiply_adds((3, 8, 8), 3, **size)(space.parse(name))
        assert counted == multiply_adds(network, (3, 8, 8))


class ByValues(nn.Module):
    """A pass that needs values, which a network without memory has not."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.linear(x) * (1.0 if x.sum().item() > 1 else 2.0)
        return out


def test_a_network_that_needs_values_is_counted_with_memory() -> None:
    class Own(PlainSpace):
        def network(self, *args: Any, **size: Any) -> nn.Module:
            return ByValues()

    assert Own().multiply_adds((4,), 3)(Own().reference) == 12


@pytest.mark.parametrize(
    "model",
    [nn.TransformerEncoderLayer(4, 1, 8), nn.LSTM(4, 4), nn.ConvTranspose1d(2, 2, 3), nn.Linear(5, 2)],
    ids=lambda model: type(model).__name__,
)
def test_of_a_model_with_other_products_or_other_inputs_nothing_is_told(model: nn.Module) -> None:
    space = ModuleSpace(nn.Sequential(Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}), model))
    assert space.multiply_adds((2, 4), 3)(space.reference) is None


@pytest.mark.parametrize("name", names())
def test_alternatives_differ_in_one_decision_and_hold_the_choice(name: str) -> None:
    space = load(name, none=False) if name == "nasbench201" else load(name)
    arch = space.sample(torch.Generator().manual_seed(2))
    weights = {group.name: group.uniform() for group in space.groups(edges=False)}
    for each in space.alternatives(arch, weights):
        assert each.architectures[each.options.index(each.choice)] == arch
        assert all(other in space for other in each.architectures)


@pytest.mark.parametrize("space", SPACES, ids=lambda s: f"{s.name}-{len(s.decisions[0].options)}")
def test_neighbors_are_all_architectures_that_differ_in_one_decision(space: Space) -> None:
    arch = space.sample(torch.Generator().manual_seed(2))
    near = list(space.neighbors(arch))
    assert len(set(near)) == len(near) > 0
    for other in near:
        assert other in space
        assert sum(a != b for a, b in zip(arch.choices, other.choices, strict=True)) == 1
        assert arch in space.neighbors(other)
    # The DARTS space has 7 operations on each of its 16 kept edges, and no change of edges is one decision.
    one_away = 16 * 6 if space.family == "darts" else sum(len(d.options) - 1 for d in space.decisions)
    assert len(near) == one_away


@pytest.mark.parametrize("name", ["nasbench201", "darts"])
def test_cells_lead_back_to_the_architecture(name: str) -> None:
    space, generator = load(name), torch.Generator().manual_seed(3)
    for _ in range(20):
        arch = space.sample(generator)
        if space.usable(arch) is None:
            assert space.from_cells(space.cells(arch)) == arch
            assert space.read_cells(space.format(arch)) == space.cells(arch)


def test_a_space_without_cells_or_source_says_so() -> None:
    assert OWN.cells(OWN.reference) == {}
    with pytest.raises(RequestError, match="not made of cells"):
        OWN.from_cells({})
    with pytest.raises(RequestError, match="cannot be written as source"):
        OWN.source(OWN.reference, (4,), 2, {})


def test_a_group_is_joined_from_its_rows() -> None:
    for space in SPACES:
        for group in space.groups(edges=space.edge_weights):
            weights = torch.rand(group.shape)
            assert torch.equal(group.join(group.split(weights)), weights)
