"""How a search with a GAEA row moves its architecture, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from nasight.data import load as load_data
from nasight.searching import METHODS, resolve
from nasight.searching._engine import Engine
from nasight.spaces import load


def moved(made: Engine, name: str, row: list[float], grad: list[float]) -> list[float]:
    """The first row of a group after one step from these weights, with this gradient and the rate 0.1."""
    assert made.arch_optimizer is not None
    for parameter in made.params.values():
        parameter.grad = torch.zeros_like(parameter)
    parameter = made.params[name]
    assert parameter.grad is not None
    with torch.no_grad():
        parameter.view(-1)[: len(row)] = torch.tensor(row)
        parameter.grad.view(-1)[: len(row)] = torch.tensor(grad)
    for group in made.arch_optimizer.param_groups:
        group["lr"] = 0.1
    made.move_architecture()
    return [float(value) for value in parameter.detach().view(-1)[: len(row)]]


@pytest.mark.parametrize(
    ("edition", "least"),
    [
        # 0.5 exp(0.2) + 0.3 + 0.19999 + 1e-5 = 1.110701: a product under 1e-5 is lifted, and divided with its row.
        (6, 1e-5 / 1.1107014),
        # Divided first, lifted to 1e-5, divided again.
        (5, 1e-5),
    ],
)
def test_products_are_lifted_before_they_are_divided_but_in_searches_of_an_earlier_edition(
    engine: Callable[..., Engine], edition: int, least: float
) -> None:
    made = engine("gaea-darts", edition=edition)
    first, *_, last = moved(made, "operations", [0.5, 0.3, 0.19999, 1e-5], [-2.0, 0.0, 0.0, 3.0])
    assert first == pytest.approx(0.549834, rel=1e-5)
    assert last == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize(("edition", "total"), [(6, 1.00000326), (5, 1.0)])
def test_gaea_gdas_lifts_after_it_divides_and_does_not_divide_again(
    engine: Callable[..., Engine], edition: int, total: float
) -> None:
    """Divided by their sum, the product of 1e-5 is 6.74e-6 (with the entropy term of 0.01), which becomes 1e-5."""
    made = engine("gaea-gdas", edition=edition)
    row = moved(made, "operations", [0.5, 0.3, 0.19999, 1e-5], [-2.0, 0.0, 0.0, 3.0])
    assert sum(row) == pytest.approx(total, abs=2e-7)
    assert row[-1] == pytest.approx(1e-5 / (1.00000326 if edition < 6 else 1), rel=1e-6)
    # What a search shows, and draws from, is divided by its sum.
    assert float(made.weights()["operations"].detach()[0].sum()) == pytest.approx(1.0, abs=2e-7)


@pytest.mark.parametrize(
    ("preset", "least"),
    [
        # 1e-5 exp(-0.3) / (0.99999 exp(0.2) + 7.408e-6)
        ("paper", 6.06533e-6),
        ("medium", 6.06533e-6),
        ("imagenet", 6.06533e-6),
        # Lifted: 1e-5 / (0.99999 exp(0.2) + 1e-5)
        ("tiny", 8.18732e-6),
    ],
)
def test_edges_of_gaea_pc_darts_are_not_lifted_in_the_darts_space_where_it_is_as_published(
    preset: str, least: float
) -> None:
    space, row = load("darts"), METHODS["gaea-pc-darts"]
    size = {"channels": 4, "cells": 3, **({"stem": 3} if preset == "imagenet" else {})}
    more = {"share": 1.0} if preset == "imagenet" else {"examples": 200}
    found = resolve(row, space, data="digits", preset=preset, size=size, batch_size=32, threads=1, **more)
    made = Engine(found, space, load_data("digits"), row)
    given = ([0.99999, 1e-5], [-2.0, 3.0])
    assert moved(made, "normal_edges", *given)[1] == pytest.approx(least, rel=1e-5)
    # Operations are.
    eight = [(0.99999, -2.0), (1e-5, 3.0), *[(0.0, 0.0)] * 6]
    after = moved(made, "normal", [w for w, _ in eight], [g for _, g in eight])
    assert after[1:] == pytest.approx([1e-5 / 1.2214605] * (len(after) - 1), rel=1e-5)


def test_gaea_pc_darts_lifts_edges_too_on_nasbench1shot1() -> None:
    found = resolve(METHODS["gaea-pc-darts"], load("nasbench1shot1-1"), data="cifar-10", preset="paper")
    assert found.edge_floor is None
