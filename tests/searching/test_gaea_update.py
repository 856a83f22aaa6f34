"""How a search with a GAEA row moves its architecture, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from nasight.searching._engine import Engine


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
