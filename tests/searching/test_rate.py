"""The default rate of the architecture: how long it is held back, and what sets the rate then."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from statistics import fmean

import pytest
import torch

from nasight.searching import METHODS, resolve
from nasight.searching._engine import PROBES, Engine
from nasight.spaces import load

GAEA_LR, GAEA_STEPS, GAEA_SIZE = 0.1, 19_531, 0.29
"""GAEA-DARTS on NAS-Bench-201: its rate, the steps that this is for, and the size of a gradient there."""


@pytest.mark.parametrize(
    ("method", "warmup"),
    [
        ("gaea-darts", 8),  # half
        ("gaea-snas", 8),
        ("gaea-pc-darts", 4),  # its own share of 0.3, as its base
        ("pc-darts", 4),
        ("gaea-p-darts", 6),  # its own share of 0.4
        ("darts", 0),
        ("snas", 0),
    ],
)
def test_gaea_rows_without_a_warm_up_of_their_own_hold_the_architecture_for_half_of_the_epochs(
    method: str, warmup: int
) -> None:
    found = resolve(METHODS[method], load("nasbench201", none=False), data="digits", preset="small", epochs=16)
    assert found.warmup == warmup


def size_of_gradients(made: Engine, epoch: int) -> float:
    """The largest distance of an entry to its row's mean, over the first batches of an epoch."""
    largest = []
    for index in range(PROBES):
        loss = made.step(epoch, index, learns=True).loss("architecture", learn=True, record=False)
        (gradient,) = torch.autograd.grad(loss, list(made.params.values()))
        largest.append(float((gradient - gradient.mean(1, keepdim=True)).abs().max()))
    return fmean(largest)


def test_the_size_of_gradients_after_the_warm_up_sets_the_rate(engine: Callable[..., Engine]) -> None:
    made = engine("gaea-darts", objective="erm", epochs=4)
    steps = 4 * 5  # 160 of 200 rows in batches of 32
    assert made.settings.warmup == 2
    assert made.arch_lr == pytest.approx(GAEA_LR * sqrt(GAEA_STEPS / steps))
    at_the_start = size_of_gradients(made, 0)
    for epoch in range(2):
        made.set_epoch(epoch)
        for index in range(made.length):
            made.advance(epoch, index)
    made.set_epoch(2)
    measured = size_of_gradients(made, 2)
    assert measured != pytest.approx(at_the_start, rel=0.1)
    expected = GAEA_LR * sqrt(GAEA_STEPS / steps) * GAEA_SIZE / measured
    assert made.arch_lr == pytest.approx(expected, rel=1e-5)
    assert made.arch_optimizer is not None
    assert [group["lr"] for group in made.arch_optimizer.param_groups] == [made.arch_lr]
    # It is measured once: what follows keeps it.
    made.set_epoch(3)
    assert made.arch_lr == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("edition", "least"), [(5, GAEA_LR), (4, GAEA_LR / 10)])
def test_a_search_of_the_published_length_has_no_lower_rate_than_the_published_one(
    engine: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch, edition: int, least: float
) -> None:
    monkeypatch.setattr(Engine, "_gradient_size", lambda self, epoch: 10 * GAEA_SIZE)
    for steps, expected in ((GAEA_STEPS, least), (4 * GAEA_STEPS, least / 2), (GAEA_STEPS // 400, 20 * GAEA_LR / 10)):
        made = engine("gaea-darts", objective="erm", epochs=round(steps / 5), edition=edition)
        made.set_epoch(made.settings.warmup)
        assert made.arch_lr == pytest.approx(expected, rel=0.05)


def test_a_rate_that_is_given_is_not_measured_away(engine: Callable[..., Engine]) -> None:
    made = engine("gaea-darts", objective="erm", arch_lr=0.7)
    made.set_epoch(2)
    assert made.arch_lr == 0.7


def test_a_warm_up_does_not_raise_the_rate_but_in_the_first_edition(engine: Callable[..., Engine]) -> None:
    for edition, ratio in ((4, 1.0), (2, 1.0), (1, sqrt(2))):
        rates = [engine("darts", warmup=warmup, edition=edition).arch_lr for warmup in (0, 2)]
        assert rates[1] / rates[0] == pytest.approx(ratio)
