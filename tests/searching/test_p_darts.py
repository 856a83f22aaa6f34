import itertools
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from nasight.errors import RequestError
from nasight.searching import Run, search
from nasight.searching._engine import Engine
from nasight.searching._selection import FewSkips
from nasight.searching._stages import spans
from nasight.searching.methods import check_fit, method_row
from nasight.spaces.nasbench201 import NasBench201

# What chenxin061/pdarts@b880e87, train_search.py:152-158, sets in the 25 epochs of the stage with --dropout_rate 0.7.
RELEASED = [
    0.672, 0.644, 0.616, 0.588, 0.56, 0.532, 0.504, 0.476, 0.448, 0.42,
    0.7, 0.573112, 0.469224, 0.384168, 0.31453, 0.257516, 0.210836, 0.172618, 0.141328, 0.115709,
    0.094735, 0.077562, 0.063503, 0.051992, 0.042567,
]  # fmt: skip


def test_75_epochs_are_three_stages_of_25_with_10_of_warm_up_each() -> None:
    assert [(s.first, s.epochs, s.warmup) for s in spans(3, 75, 30)] == [(0, 25, 10), (25, 25, 10), (50, 25, 10)]


@pytest.mark.parametrize("name", ["p-darts", "gaea-p-darts"])
def test_stages_are_5_11_and_17_cells_with_8_5_and_3_operations(engine: Callable[..., Engine], name: str) -> None:
    made = engine(name, "darts", epochs=3, size={"channels": 4, "cells": 5}, warmup=0, arch_lr=0.1)
    for epoch, (cells, operations) in enumerate([(5, 8), (11, 5), (17, 3)]):
        before = made.weights()["normal"].detach()
        made.set_epoch(epoch)
        assert len(made.supernet.cells) == cells
        alive = made.weights()["normal"].detach() > 0
        assert torch.equal(alive.sum(1), torch.full((14,), operations))
        # What is left are the strongest of the stage before.
        weakest_kept = before.masked_fill(~alive, 2.0).amin(1)
        assert bool((weakest_kept >= before.masked_fill(alive, -1.0).amax(1)).all())
        with torch.no_grad():
            theta, (group, *_) = next(iter(made.params.values())), made.theta_groups
            theta.mul_(torch.linspace(0.5, 1.5, theta.numel()).view_as(theta))
            if name.startswith("gaea"):
                theta.copy_(torch.cat([row / row.sum() for row in group.split(theta)]).view_as(theta))


@pytest.mark.slow
def test_an_operation_that_was_dropped_gets_no_gradient_and_never_returns(engine: Callable[..., Engine]) -> None:
    made = engine("gaea-p-darts", epochs=4, warmup=0)
    dropped = torch.zeros(6, 4, dtype=torch.bool)
    for epoch in range(4):
        made.set_epoch(epoch)
        for step in range(made.steps):
            made.objective.step(made.step(epoch, step, learns=True))
        gone = made.weights()["operations"] == 0
        assert bool((gone | ~dropped).all())
        dropped = gone
    assert torch.equal(dropped.sum(1), torch.full((6,), 2))


def rate(made: Engine, epoch: int) -> float:
    found = made.skip_dropout(epoch, generator=made.generator("t"))
    return 0.0 if found is None else found.p


@pytest.mark.parametrize("name", ["p-darts", "gaea-p-darts"])
def test_the_dropout_of_every_epoch_is_the_released_one(engine: Callable[..., Engine], name: str) -> None:
    made = engine(name, epochs=75, warmup=30, arch_lr=0.1)
    for stage, start in enumerate([0.0, 0.4, 0.7]):
        made.set_epoch(25 * stage)
        rates = [rate(made, 25 * stage + epoch) for epoch in range(25)]
        assert rates == pytest.approx([start / 0.7 * p for p in RELEASED], abs=1e-6)


def test_shorter_stages_begin_and_end_with_the_same_dropout(engine: Callable[..., Engine]) -> None:
    made = engine("p-darts", epochs=15, warmup=6)  # stages of 5 epochs, 2 of them warm-up
    made.set_epoch(10)
    rates = [rate(made, epoch) for epoch in range(10, 15)]
    assert rates == pytest.approx([0.7 * 4 / 5, 0.7 * 3 / 5, 0.7, 0.7 * math.exp(-1.4), 0.7 * math.exp(-2.8)])


@pytest.mark.parametrize("name", ["p-darts", "gaea-p-darts"])
def test_a_step_drops_the_numbers_of_its_seed_epoch_stream_and_place(engine: Callable[..., Engine], name: str) -> None:
    made = engine(name, epochs=9, warmup=3, arch_lr=0.1)
    made.enter(2, {"operations": [[0, 2]] * 6})  # a skip and a 3x3 convolution
    step, losses = made.step(7, 0, learns=True), {}
    for seed, stream in itertools.product((0, 1), ("weights", "architecture")):
        made.settings = made.settings.model_copy(update={"seed": seed})
        x, y = made.loaders[stream].batch(7, 0)
        weights = made.relaxed(7, generator=made.generator("t"), learn=True)
        drop = made.skip_dropout(7, generator=made.generator("skip dropout", stream, 7, 0))
        by_hand = F.cross_entropy(made.supernet(x, weights, skip_zeros=True, skip_dropout=drop), y)
        losses[seed, stream] = step.loss(stream, learn=True, record=False)
        assert torch.equal(losses[seed, stream], by_hand)
    assert losses[0, "weights"] != losses[1, "weights"]


def test_a_space_that_cannot_drop_is_refused_in_a_sentence() -> None:
    class Undroppable(NasBench201):
        skip_dropout = False

    with pytest.raises(RequestError, match=r"drops numbers behind skip connections.*not on space 'nasbench201'"):
        check_fit(method_row("p-darts"), Undroppable())
    check_fit(method_row("darts"), Undroppable())


def test_at_most_two_skips_are_kept_and_the_weakest_go_first(engine: Callable[..., Engine]) -> None:
    made = engine("p-darts")
    with torch.no_grad():
        next(iter(made.params.values())).copy_(
            torch.tensor([[1.0, 0.5, 0.0, 0.0]]).repeat(6, 1) * torch.arange(1.0, 7.0)[:, None]
        )
    plain = made.space.derive(made.weights())
    assert [o for _, o in plain.choices] == ["skip_connect"] * 6
    arch = next(FewSkips(2).propose(made, 1, torch.Generator()))
    assert [o for _, o in arch.choices] == ["nor_conv_1x1"] * 4 + ["skip_connect"] * 2


def test_in_darts_the_limit_is_that_of_the_normal_cell(engine: Callable[..., Engine]) -> None:
    made = engine("p-darts", "darts")
    skip = made.space.operations.index("skip_connect")
    with torch.no_grad():
        for theta in list(made.params.values()):
            theta.zero_()
            theta[:, skip] = torch.linspace(3, 4, 14)
    arch = next(FewSkips(2).propose(made, 1, torch.Generator()))
    kept = {
        kind: sum(o == "skip_connect" for n, o in arch.choices if n.startswith(kind)) for kind in ("normal", "reduce")
    }
    assert kept == {"normal": 2, "reduce": 8}


def test_a_space_without_cells_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="'p-darts' adds cells from stage to stage, and space 'mlp' has no cells"):
        search("mlp", "p-darts", "digits", preset="tiny", out=tmp_path / "r", threads=1)


@pytest.mark.slow
def test_the_saved_supernet_is_that_of_the_last_stage(tiny: Callable[..., Run]) -> None:
    run = tiny(method="p-darts", epochs=3)
    cells = [len(layer.kernels) for layer in run.supernet().layers if hasattr(layer, "kernels")]
    assert len(cells) == 3 * round(17 / 5)
    assert len(method_row("p-darts").schedule.stages) == 3
