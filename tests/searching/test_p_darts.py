from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nasight.errors import RequestError
from nasight.searching import Run, search
from nasight.searching._engine import Engine
from nasight.searching._relaxations import SkipDropout, StepContext
from nasight.searching._selection import FewSkips
from nasight.searching._stages import spans
from nasight.searching.methods import method_row
from nasight.spaces import load


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


def test_dropout_leaves_out_skips_alone_and_keeps_their_mean() -> None:
    space = load("nasbench201", none=False)
    at = StepContext(space, space.groups(), 0.0, torch.Generator().manual_seed(0), dropout=0.4)
    theta = torch.full((6, 4), 0.25)
    drawn = torch.stack([SkipDropout().weights({"operations": theta}, {}, at)["operations"] for _ in range(2000)])
    assert torch.equal(drawn[:, :, 1:], torch.full((2000, 6, 3), 0.25))
    skips = drawn[:, :, 0]
    assert {round(v, 4) for v in skips.flatten().tolist()} == {0.0, round(0.25 / 0.6, 4)}
    assert abs(float(skips.mean()) - 0.25) < 0.006  # three standard errors of 12,000 draws


def test_dropout_fades_and_evaluation_has_none(engine: Callable[..., Engine]) -> None:
    made = engine("p-darts", epochs=9, warmup=0)
    made.set_epoch(6)
    assert made.stage == 2

    def dropped(epoch: int) -> int:
        draws = [made.relaxed(epoch, generator=made.generator("t", i), learn=False)["operations"] for i in range(200)]
        alive = made.weights()["operations"][:, 0] > 0
        return sum(int((d[alive, 0] == 0).sum()) for d in draws)

    assert dropped(6) > 4 * dropped(8) > 0
    made.supernet.eval()
    assert dropped(6) == 0


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
