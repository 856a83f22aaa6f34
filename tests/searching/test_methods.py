from dataclasses import fields

import pytest

from nasight.errors import RequestError
from nasight.geometry import Simplex, Softmax
from nasight.searching.methods import METHODS, method_row

GAEA = [name for name in METHODS if name.startswith("gaea-")]


@pytest.mark.parametrize("name", GAEA)
def test_a_gaea_row_differs_from_its_base_in_the_geometry_column_alone(name: str) -> None:
    row, base = method_row(name), method_row(name.removeprefix("gaea-"))
    different = {f.name for f in fields(row) if getattr(row, f.name) != getattr(base, f.name)}
    assert different == {"name", "geometry", "paper"}
    assert isinstance(row.geometry, Simplex)
    assert isinstance(base.geometry, Softmax)


def test_every_row_that_keeps_softmax_logits_has_a_gaea_twin() -> None:
    softmax = {name for name, row in METHODS.items() if isinstance(row.geometry, Softmax)} - {"darts-2nd"}
    assert {f"gaea-{name}" for name in softmax} == set(GAEA)


def test_every_method_of_the_issue_is_a_row() -> None:
    assert set(METHODS) >= {
        "darts",
        "darts-2nd",
        "gaea-darts",
        "pc-darts",
        "gaea-pc-darts",
        "gdas",
        "gaea-gdas",
        "rs-ws",
        "snas",
        "gaea-snas",
        "xnas",
        "enas",
        "asng",
        "proxyless",
        "gaea-proxyless",
        "p-darts",
        "gaea-p-darts",
        "setn",
        "gaea-setn",
    }


def test_published_rates_hold_at_the_published_number_of_steps() -> None:
    assert method_row("gaea-darts").geometry.default_lr(19_531) == pytest.approx(0.1)
    assert method_row("darts").geometry.default_lr(19_550) == pytest.approx(3e-4)
    assert method_row("pc-darts").geometry.default_lr(3_430) == pytest.approx(6e-4)


def test_a_gradient_twice_as_large_halves_the_default_rate_of_gaea_and_not_of_adam() -> None:
    gaea, darts = method_row("gaea-darts").geometry, method_row("darts").geometry
    assert gaea.default_lr(100, 0.2) == pytest.approx(2 * gaea.default_lr(100, 0.4))
    assert darts.default_lr(100, 0.2) == darts.default_lr(100, 0.4)


def test_a_misspelt_method_is_answered_with_the_nearest() -> None:
    with pytest.raises(RequestError, match=r"'gaea-dart'.*did you mean 'gaea-darts'"):
        method_row("gaea-dart")


def test_an_objective_that_a_row_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(RequestError, match="'rs-ws' has no objective 'bilevel', only weights"):
        method_row("rs-ws").objective("bilevel")
