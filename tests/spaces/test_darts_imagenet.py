"""ImageNet's form of the DARTS network: published parameter counts and multiply-adds, its heads, its schedule."""

from __future__ import annotations

from itertools import count
from math import prod

import pytest
import torch

from nasight.anatomy import read_cells
from nasight.errors import RequestError
from nasight.export import ExportDesign, fitted, module_from, python_source, same_outputs
from nasight.spaces import load, multiply_adds
from nasight.training import TrainSettings, settings_for

SPACE = load("darts")
IMAGENET = {"channels": 48, "cells": 14, "stem": 3}


@pytest.mark.parametrize(
    ("name", "millions", "counted", "published"),
    [
        ("DARTS_V2", 4.7, 529.9, 574),  # Liu et al. 2019: 4.7 M, 574 M
        ("PC_DARTS_cifar10", 5.3, 571.1, 586),  # Xu et al. 2020: 5.3 M, 586 M
        ("PC_DARTS_imagenet", 5.3, 581.6, 597),  # 5.3 M, 597 M
        ("GAEA_PC_DARTS_imagenet", 5.6, 624.0, None),  # Li et al. 2021: 5.6 M; products are not given
    ],
)
def test_published_cells_have_the_published_parameters_and_nearly_the_products(
    name: str, millions: float, counted: float, published: int | None
) -> None:
    design = read_cells(name)
    assert round(design.parameters(classes=1000, **IMAGENET) / 1e6, 1) == millions
    products = design.multiply_adds(classes=1000, **IMAGENET) / 1e6
    assert products == pytest.approx(counted, abs=0.1)
    if published is not None:  # papers do not say what they count besides convolutions and linear layers
        assert 1 <= published / products <= 1.09


def test_the_cells_see_an_eighth_of_the_image_and_the_stem_has_two_outputs() -> None:
    network = SPACE.network(SPACE.reference, (3, 64, 64), 7, channels=8, cells=3, stem=3)
    two, three = network.stem(torch.zeros(2, 3, 64, 64))
    assert (two.shape, three.shape) == ((2, 8, 16, 16), (2, 8, 8, 8))
    assert network(torch.zeros(2, 3, 64, 64)).shape == (2, 7)


def test_the_auxiliary_head_for_large_images_has_one_norm_and_needs_seven_pixels() -> None:
    network = SPACE.network(SPACE.reference, (3, 224, 224), 5, auxiliary=True, channels=4, cells=5, stem=3)
    norms = [m for m in network.auxiliary.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert len(norms) == 1
    out, beside = network.train()(torch.zeros(2, 3, 224, 224))
    assert out.shape == beside.shape == (2, 5)
    with pytest.raises(RequestError, match="needs 7x7 pixels after 5 reductions"):
        SPACE.network(SPACE.reference, (3, 128, 128), 5, auxiliary=True, channels=4, cells=5, stem=3)


def test_the_supernet_at_ones_and_zeros_is_the_network_of_this_form() -> None:
    supernet = SPACE.supernet((3, 32, 32), 4, channels=4, cells=3, stem=3)
    x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    weights = SPACE.encode(SPACE.sample(torch.Generator().manual_seed(1)))
    fast = supernet(x, weights)
    supernet.path = "plain"
    torch.testing.assert_close(supernet(x, weights), fast, atol=1e-4, rtol=1e-3)
    assert fast.shape == (4, 4)


def test_the_supernet_of_a_search_has_the_parameters_of_the_released_one() -> None:
    supernet = SPACE.supernet((3, 224, 224), 1000, edges=True, partial=2, channels=16, cells=8, stem=3)
    # Network(16, 1000, 8, ...) of yuhuixu1993/PC-DARTS@b74702f, model_search_imagenet.py.
    assert sum(p.numel() for p in supernet.parameters()) == 956_512


@pytest.mark.parametrize("path", ["plain", "fast"])
def test_its_logits_are_those_of_the_released_network(path: str) -> None:
    supernet = SPACE.supernet((3, 64, 64), 3, path=path, edges=True, partial=2, channels=4, cells=3, stem=3).double()
    given = count(1)

    def wave(*shape: int) -> torch.Tensor:
        """Numbers that another program can repeat: tensor t holds sin(k^2 + t) at place k, with t = 1, 2, ..."""
        k = torch.arange(prod(shape), dtype=torch.float64)
        return torch.sin(k * k + next(given)).reshape(shape)

    with torch.no_grad():
        for parameter in supernet.parameters():
            parameter.copy_(wave(*parameter.shape))
        weights = {
            group.name: torch.cat([wave(size).softmax(0) for size in group.sizes]).reshape(group.shape)
            for group in supernet.groups
        }
        logits = supernet(wave(2, 3, 64, 64), weights)
    # The released network with the same kernels, architecture weights and images.
    released = [[1.882179985, 2.988639288, 0.948523657], [1.023999836, 0.623167417, 0.875718124]]
    torch.testing.assert_close(logits, torch.tensor(released, dtype=torch.float64), rtol=0, atol=1e-8)


def test_a_stem_of_another_number_is_refused_and_zero_is_the_form_for_small_images() -> None:
    with pytest.raises(RequestError, match=r"size 'stem' is 0 \(small images\) or 3"):
        SPACE.network(SPACE.reference, (3, 32, 32), 4, channels=4, cells=3, stem=2)
    assert SPACE.size(stem=0) == SPACE.size()


def test_its_source_computes_the_same() -> None:
    design = ExportDesign(SPACE, SPACE.reference, (3, 32, 32), 6, {"channels": 4, "cells": 4, "stem": 3})
    mine, plain = design.network(), module_from(python_source(design))
    plain.load_state_dict(fitted(mine.state_dict(), plain))
    assert same_outputs(mine, plain, (3, 32, 32)) <= 1e-5


def test_the_published_schedules_of_an_imagenet_training() -> None:
    mine = settings_for(SPACE, "imagenet")
    assert (mine.epochs, mine.batch_size, mine.lr, mine.weight_decay, mine.label_smoothing) == (
        250,
        1024,
        0.5,
        3e-5,
        0.1,
    )
    assert [mine.rate(e) for e in range(5)] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert mine.rate(100) == pytest.approx(0.5 * (245 - 100) / 245)
    assert mine.rate(244) == pytest.approx(0.5 / 245)
    assert mine.rate(245) == pytest.approx(0.5 * 5 / (245 * 5))
    assert mine.rate(249) == pytest.approx(0.5 / (245 * 5))
    darts = settings_for(SPACE, "imagenet-darts")
    assert (darts.batch_size, darts.rate(0)) == (128, 0.1)
    assert darts.rate(10) == pytest.approx(0.1 * 0.97**10)


def test_settings_that_came_later_are_kept_only_where_they_matter() -> None:
    assert "schedule" not in settings_for(SPACE, "small").kept()
    assert TrainSettings(schedule="linear").kept()["schedule"] == "linear"


def test_products_are_counted_as_papers_do() -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1, groups=1), torch.nn.ReLU())
    assert multiply_adds(network, (3, 10, 10)) == 8 * 100 * 27
    depthwise = torch.nn.Conv2d(6, 6, 5, groups=6, bias=False)
    assert multiply_adds(depthwise, (6, 9, 9)) == 6 * 25 * 25
    assert network.training
