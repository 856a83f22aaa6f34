"""`--preset imagenet`: the searches of PC-DARTS and its GAEA twin on an eighth of ImageNet, number by number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nasight
from command import run as command
from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.searching import METHODS, Progress, Run, resolve
from nasight.searching._engine import Engine
from nasight.searching._settings import SearchSettings, read_settings
from nasight.searching._streams import Streams, _cut
from nasight.spaces import load
from nasight.studies import command_of

SPACE = load("darts")
COUNTS = (400, 400, 200)
SMALL: dict[str, Any] = {"size": {"channels": 4, "cells": 3}, "threads": 1}


def settings(method: str = "gaea-pc-darts", **given: Any) -> SearchSettings:
    return resolve(METHODS[method], SPACE, data="images", preset="imagenet", **given)


def images(pixels: int = 2) -> Dataset:
    """1,000 rows of three classes; the first pixel tells the row."""
    x = torch.arange(1000.0)[:, None, None, None].expand(1000, 3, pixels, pixels)
    y = torch.repeat_interleave(torch.arange(3), torch.tensor(COUNTS))
    return load_data((x.contiguous().numpy(), y.numpy()))


def small_engine(**given: Any) -> Engine:
    return Engine(settings(**{**SMALL, **given}), SPACE, images(pixels=16), METHODS["gaea-pc-darts"])


@pytest.mark.parametrize(("method", "rate"), [("pc-darts", 6e-3), ("gaea-pc-darts", 0.1)])
def test_both_methods_have_the_released_settings(method: str, rate: float) -> None:
    found = settings(method)
    assert (found.epochs, found.schedule_epochs, found.warmup, found.lr_warmup) == (50, 50, 35, 5)
    assert (found.share, found.arch_share, found.examples, found.validation) == (0.125, 0.2, None, 0.0)
    assert (found.batch_size, found.lr, found.lr_min, found.momentum, found.nesterov) == (1024, 0.5, 0.0, 0.9, False)
    assert (found.weight_decay, found.clip, found.arch_lr, found.arch_clip) == (3e-4, 5.0, rate, 5.0)
    assert found.size == {"channels": 16, "cells": 8, "stem": 3}
    assert (found.partial, found.objective) == (2, "bilevel")
    geometry: Any = METHODS["pc-darts"].geometry
    assert (geometry.rule, geometry.betas, geometry.weight_decay) == ("adam", (0.5, 0.999), 1e-3)


def test_of_1000_images_100_are_for_the_weights_and_25_for_the_architecture_every_class_in_proportion() -> None:
    streams = Streams(settings(augment=False), images(), halves=True)
    weights, architecture = (streams.loaders[name] for name in ("weights", "architecture"))
    assert torch.bincount(weights.y).tolist() == [40, 40, 20]
    assert torch.bincount(architecture.y).tolist() == [10, 10, 5]
    rows = [set(loader.x[:, 0, 0, 0].tolist()) for loader in (weights, architecture)]
    assert (len(rows[0]), len(rows[1]), rows[0] & rows[1]) == (100, 25, set())
    # Nothing is held out: figures are of the rows of the architecture.
    assert sum(len(y) for _, y in streams.validation) == 25


def test_a_share_of_one_half_cuts_as_before() -> None:
    assert [_cut(rows, 0.5) for rows in (4, 5, 6, 7)] == [[2, 2], [3, 2], [3, 3], [4, 3]]
    assert all(_cut(rows, 0.5) == [(rows + 1) // 2, rows // 2] for rows in range(2000))
    # ImageNet: 1,281,167 images.
    assert _cut(round(0.125 * 1_281_167), 0.2) == [128_117, 32_029]


def test_the_shorter_part_is_gone_through_again_in_another_order() -> None:
    made = small_engine(batch_size=5, augment=False, examples=125)
    loaders = made.loaders
    assert (made.steps, loaders["architecture"].steps) == (20, 5)

    def seen(step: int) -> list[float]:
        x, _ = made.step(0, step, learns=True)._batch("architecture")
        return [round(value, 4) for value in x[:, 0, 0, 0].tolist()]

    passes = [[row for step in range(first, first + 5) for row in seen(step)] for first in (0, 5, 10, 15)]
    assert all(sorted(found) == sorted(passes[0]) and len(set(found)) == 25 for found in passes)
    assert len({tuple(found) for found in passes}) == 4
    x, _ = made.step(3, 7, learns=True)._batch("weights")
    assert torch.equal(x, loaders["weights"].batch(3, 7)[0])


def test_with_halves_every_epoch_begins_at_the_first_batch_as_before(engine: Callable[..., Engine]) -> None:
    made = engine("darts", "mlp", size={})
    loader = made.loaders["architecture"]
    for step in range(made.steps):
        x, _ = made.step(2, step, learns=True)._batch("architecture")
        assert torch.equal(x, loader.batch(2, step % loader.steps)[0])


def test_the_rate_rises_for_5_epochs_and_follows_the_cosine_of_50_from_then_on() -> None:
    made = small_engine()
    rates = []
    for epoch in (0, 1, 2, 3, 4, 5, 25, 49):
        made.set_epoch(epoch)
        rates.append(made.weight_lr)
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.487764, 0.25, 0.000493], abs=1e-6)


def test_the_architecture_moves_from_epoch_35_on() -> None:
    made = small_engine()
    assert [made.learns(epoch) for epoch in (0, 34, 35, 49)] == [False, False, True, True]
    assert made.arch_lr == 0.1


def test_one_half_of_the_channels_goes_through_operations() -> None:
    sizes = settings().size
    supernet = SPACE.supernet((3, 64, 64), 10, edges=True, partial=2, **sizes)
    first, reduction = supernet.cells[0], supernet.cells[2]
    assert (first.active, reduction.active, supernet.cells[7].active) == (8, 16, 32)
    assert first.pointwise["sep_conv_3x3"].shape == (2, 14, 8, 8)
    assert first.depthwise["dil_conv_5x5"].shape == (1, 14, 8, 1, 5, 5)
    assert reduction.skips.shape == (8, 16, 16)
    made = small_engine()
    assert [cell.active for cell in made.supernet.cells] == [2, 4, 8]
    assert [cell.partial for cell in made.supernet.cells] == [2, 2, 2]


def test_the_stem_of_the_supernet_has_48_channels_and_gives_a_fourth_and_an_eighth_of_the_image() -> None:
    supernet = SPACE.supernet((3, 64, 64), 10, edges=True, partial=2, **settings().size)
    shapes = [tuple(p.shape) for p in supernet.stem.parameters() if p.dim() == 4]
    assert shapes == [(24, 3, 3, 3), (48, 24, 3, 3), (48, 48, 3, 3)]
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    before, last = supernet.stem(x)
    assert (before.shape, last.shape) == ((2, 48, 16, 16), (2, 48, 8, 8))
    # Both inputs of the first cell have 16 channels and 8 pixels per side.
    inputs = supernet.cells[0].inputs
    assert inputs[0](before).shape == inputs[1](last).shape == (2, 16, 8, 8)
    assert [supernet.head[-1].in_features, supernet.head[-1].out_features] == [4 * 64, 10]
    weights = {group.name: group.uniform() for group in supernet.groups}
    assert supernet(x, weights).shape == (2, 10)


def test_a_gradient_of_the_architecture_of_norm_10_becomes_one_of_norm_5() -> None:
    made = small_engine()
    step = made.step(35, 0, learns=True)
    numbers = sum(p.numel() for p in step.theta)
    for size, wanted in ((10.0, 5.0), (4.0, 4.0)):
        step.move_architecture([torch.full_like(p, size / numbers**0.5) for p in step.theta])
        norm = torch.cat([p.grad.flatten() for p in step.theta]).norm()
        assert float(norm) == pytest.approx(wanted, abs=1e-4)


def test_without_a_bound_the_gradient_of_the_architecture_stays(engine: Callable[..., Engine]) -> None:
    made = engine("darts", "mlp", size={})
    step = made.step(0, 0, learns=True)
    step.move_architecture([torch.full_like(p, 100.0) for p in step.theta])
    assert all(torch.equal(p.grad, torch.full_like(p, 100.0)) for p in step.theta)


def test_other_epochs_have_both_warm_ups_in_proportion_and_examples_replace_the_share() -> None:
    found = settings(epochs=10, examples=500)
    assert (found.schedule_epochs, found.warmup, found.lr_warmup) == (10, 7, 1)
    assert (found.examples, found.share) == (500, None)
    assert settings(epochs=50) == settings()
    assert settings(epochs=10, warmup=2, lr_warmup=3).model_dump(include={"warmup", "lr_warmup"}) == {
        "warmup": 2,
        "lr_warmup": 3,
    }
    # Images that were chosen before: all of them, four fifths for the weights.
    assert settings(share=1.0).share == 1.0


def test_pairs_without_such_a_search_are_refused_in_one_sentence() -> None:
    for method, space in (("darts", "darts"), ("gaea-darts", "nasbench201"), ("pc-darts", "nasbench1shot1-1")):
        with pytest.raises(RequestError, match=f"preset 'imagenet' .* not with '{method}' on '{space}'") as caught:
            resolve(METHODS[method], load(space), data="images", preset="imagenet")
        assert "\n" not in str(caught.value)


def test_a_run_that_was_begun_before_these_settings_means_what_it_meant() -> None:
    new = ("arch_share", "lr_warmup", "partial", "arch_clip", "weights_first", "candidate_rows")
    kept = resolve(METHODS["gaea-pc-darts"], SPACE, data="images", preset="small").model_dump()
    found = read_settings({key: value for key, value in kept.items() if key not in new})
    assert found.model_dump() == kept
    assert [kept[key] for key in new] == [0.5, 0, None, None, False, None]


def test_the_protocols_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("search", "--list", "--preset", "imagenet") == 0
    shown = capsys.readouterr().out
    assert "gaea-pc-darts on darts: 16 channels, 8 cells, 3 stem" in shown
    assert "arch_share 0.2" in shown
    assert command("search", "--list", "--preset", "imagenet", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["published"]
    assert [row["method"] for row in rows] == ["pc-darts", "gaea-pc-darts"]


class Stop(Progress):
    """Leaves in the middle of the second epoch, as a machine that goes down does."""

    def step(self, epoch: int, step: int) -> None:
        if (epoch, step) == (1, 1):
            raise ZeroDivisionError


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 random images of 64 x 64 pixels, four classes."""
    chance, path = np.random.default_rng(0), tmp_path_factory.mktemp("data") / "images.npz"
    x = chance.integers(0, 256, (240, 3, 64, 64), dtype=np.uint8)
    np.savez(path, x=x, y=np.arange(240) % 4)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pc-darts", "gaea-pc-darts"])
def test_a_search_runs_and_a_stopped_one_gives_the_same(method: str, pictures: Path, tmp_path: Path) -> None:
    # An eighth of the images: 24 for the weights, 6 for the architecture, which it sees again in every step.
    given: dict[str, Any] = {"epochs": 2, "batch_size": 8, "lr": 0.05, "checkpoint_seconds": 0.0, **SMALL}

    def search(out: Path, progress: Progress | None = None) -> Run:
        data = str(pictures)
        return nasight.search("darts", method, data, preset="imagenet", out=out, progress=progress, **given)

    whole = search(tmp_path / "whole")
    assert whole.settings.size == {"channels": 4, "cells": 3, "stem": 3}
    assert [row["lr"] for row in whole.history] == pytest.approx([0.05, 0.025])
    assert [row["arch_lr"] for row in whole.history] == [0.0, whole.settings.arch_lr]
    with pytest.raises(ZeroDivisionError):
        search(tmp_path / "stopped", Stop())
    again = nasight.resume(tmp_path / "stopped")
    assert again.result["weights"] == whole.result["weights"]
    assert again.result["architecture"] == whole.result["architecture"]
    kept, same = (run.supernet().state_dict() for run in (whole, again))
    assert all(torch.equal(kept[name], same[name]) for name in kept)
    # The supernet that is read back is the one of K = 2.
    assert {cell.partial for cell in whole.supernet().cells} == {2}


@pytest.mark.slow
def test_the_command_searches_images_and_names_itself_again(pictures: Path, tmp_path: Path) -> None:
    words = f"search --space darts --method gaea-pc-darts --preset imagenet --data {pictures} --epochs 1 --examples 30"
    more = "--channels 4 --cells 3 --batch-size 12 --lr 0.05 --arch-clip 1 --partial 1 --arch-share 0.25 --threads 1"
    assert command(*words.split(), *more.split(), "--out", str(tmp_path / "a")) == 0
    found = Run(tmp_path / "a")
    s = found.settings
    assert (s.partial, s.arch_clip, s.arch_share, s.examples, s.share) == (1, 1.0, 0.25, 30, None)
    again = command_of(found)
    assert "--arch-clip 1.0 --examples 30 --arch-share 0.25 --partial 1 " in again
    assert "--preset imagenet --epochs 1 --batch-size 12 --lr 0.05 " in again
    assert "--share" not in again
