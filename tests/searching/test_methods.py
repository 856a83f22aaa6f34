from dataclasses import fields

import pytest

from nasight.errors import RequestError
from nasight.geometry import Simplex, Softmax
from nasight.searching import resolve
from nasight.searching.methods import METHODS, method_row
from nasight.spaces import load

SPACES = ("nasbench201", "darts", "nasbench1shot1-1")
GAEA = [name for name in METHODS if name.startswith("gaea-")]


@pytest.mark.parametrize("name", GAEA)
def test_a_gaea_row_differs_from_its_base_in_geometry_and_in_which_objective_comes_first(name: str) -> None:
    row, base = method_row(name), method_row(name.removeprefix("gaea-"))
    different = {f.name for f in fields(row) if getattr(row, f.name) != getattr(base, f.name)}
    assert different - {"objectives"} == {"name", "geometry", "paper"}
    assert set(row.objectives) == set(base.objectives)
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
    assert method_row("pc-darts").geometry.default_lr(4_900) == pytest.approx(6e-4)


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


@pytest.mark.parametrize(
    ("method", "space", "objective"),
    [
        *((name, space, "bilevel") for name in ("darts", "pc-darts", "gdas", "proxyless") for space in SPACES),
        ("p-darts", "darts", "bilevel"),
        ("p-darts", "nasbench201", "bilevel"),
        ("snas", "darts", "erm-joint"),  # SNAS's released code takes one batch and one backward pass
        ("gaea-darts", "nasbench201", "erm"),
        ("gaea-pc-darts", "nasbench201", "erm"),
        ("gaea-gdas", "nasbench201", "bilevel"),
        ("gaea-darts", "darts", "bilevel"),
        ("gaea-pc-darts", "darts", "bilevel"),
        ("gaea-pc-darts", "nasbench1shot1-1", "bilevel"),
        ("gaea-darts", "mlp", "erm"),
    ],
)
def test_the_default_objective_is_the_published_one(method: str, space: str, objective: str) -> None:
    for preset in ("tiny", "small", "medium", "paper"):
        found = resolve(method_row(method), load(space), data="digits", preset=preset, epochs=20)
        assert found.objective == objective
    asked = resolve(method_row(method), load(space), data="digits", preset="paper", epochs=20, objective="erm")
    assert asked.objective == "erm"


def test_the_name_by_which_alternating_steps_went_before_still_means_them() -> None:
    assert method_row("gaea-darts").objective("erm-alternating").name == "erm"
