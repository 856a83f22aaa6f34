import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from nasight import spaces
from nasight.data import load, prepare
from nasight.errors import RequestError, RunError
from nasight.runs import RunFolder
from nasight.training import load_trained, train

CELL = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"
SKIPS = "|skip_connect~0|+|none~0|skip_connect~1|+|none~0|none~1|skip_connect~2|"
QUICK = {"preset": "tiny", "epochs": 1, "size": {"channels": 4}}


@pytest.fixture(scope="module")
def stripes() -> tuple[np.ndarray, np.ndarray]:
    """Gray float images 28x28 with stripes along the rows (0) or the columns (1)."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    wave = np.sin(np.arange(28) + rng.uniform(0, 6, (200, 1)))
    x = np.where(y[:, None, None] == 0, wave[:, :, None], wave[:, None, :]) + 0.3 * rng.normal(size=(200, 28, 28))
    return x, y


@pytest.mark.slow
def test_a_cell_of_convolutions_learns_the_digits_in_a_few_epochs() -> None:
    result = train("nasbench201", CELL, "digits", preset="tiny", epochs=4)
    assert result.accuracy > 85
    assert result.accuracy == result.curve[-1].test_accuracy
    assert [row.epoch for row in result.curve] == [1, 2, 3, 4]


def test_two_classes_of_gray_float_images_without_a_test_part_are_judged_by_a_stratified_fifth(
    stripes: tuple[np.ndarray, np.ndarray],
) -> None:
    result = train("nasbench201", CELL, stripes, preset="tiny", epochs=3, size={"channels": 4})
    assert result.judged_by == "40 held-out training rows (20%)"
    assert result.accuracy > 90


def test_rows_held_out_are_never_learned_from(stripes: tuple[np.ndarray, np.ndarray]) -> None:
    from nasight.training._loop import Trainer
    from nasight.training._train import make_job

    _, y = stripes
    numbered = np.arange(len(y), dtype=np.float32)[:, None, None] * np.ones((28, 28), np.float32)
    trainer = Trainer(make_job("nasbench201", CELL, (numbered, y), "tiny", 0, {"validation": 0.25, "share": 0.5}))
    assert trainer.held_out is not None
    learned = set(trainer.loader.x[:, 0, 0, 0].int().tolist())
    assert not learned & set(trainer.held_out.tolist())
    assert (len(trainer.held_out), len(learned)) == (50, 75)


def test_the_rate_falls_along_the_cosine_of_torchs_scheduler() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5, eta_min=0.01)
    expected = []
    for _ in range(5):
        expected.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    result = train("mlp", "relu,relu,relu/0,0", "digits", preset="tiny", epochs=5, lr=0.1, lr_min=0.01)
    assert [row.lr for row in result.curve] == pytest.approx(expected)


def test_vectors_are_trained_on_too() -> None:
    digits = load("digits")
    flat = (digits.train_x.flatten(1), digits.train_y, digits.test_x.flatten(1), digits.test_y)  # type: ignore[union-attr]
    assert train("mlp", "relu,relu,relu/1,0", flat, preset="tiny", epochs=6).accuracy > 85


def test_the_weights_kept_in_the_folder_are_those_that_were_judged(tmp_path: Path) -> None:
    result = train("nasbench201", CELL, "digits", out=tmp_path / "run", **QUICK)
    network, data = load_trained(tmp_path / "run"), prepare(load("digits"))
    x, y = next(data.batches("test", size=10_000))
    with torch.no_grad():
        assert 100 * (network(x).argmax(1) == y).float().mean().item() == pytest.approx(result.accuracy, abs=1e-4)


def test_a_finished_training_is_read_and_not_repeated(tmp_path: Path) -> None:
    first = train("nasbench201", CELL, "digits", out=tmp_path / "run", **QUICK)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    assert train("nasbench201", CELL, "digits", out=tmp_path / "run", **QUICK) == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()} == before


def test_parameters_of_the_benchmarks_network_are_counted_as_published() -> None:
    images = (np.zeros((50, 32, 32, 3), np.uint8), np.arange(50) % 10)
    result = train("nasbench201", SKIPS, images, preset="paper", epochs=1, examples=10)
    assert result.parameters == 73_306


def test_darts_trains_with_drop_path_and_an_auxiliary_head_that_does_not_count_as_parameters() -> None:
    images = (np.random.default_rng(0).integers(0, 255, (30, 32, 32, 3), np.uint8), np.arange(30) % 3)
    space, size = spaces.load("darts"), {"channels": 2, "cells": 3}
    result = train(space, "DARTS_V2", images, preset="paper", epochs=2, batch_size=12, size=size, augment="shift,flip")
    plain = space.network(space.parse("DARTS_V2"), (3, 32, 32), 3, **size)
    assert result.parameters == sum(p.numel() for p in plain.parameters())
    assert result.curve[0].train_loss == pytest.approx(np.log(3), rel=0.5)


def test_settings_that_a_network_cannot_obey_are_refused() -> None:
    with pytest.raises(RequestError, match="'nasbench201' have no drop path"):
        train("nasbench201", CELL, "digits", drop_path=0.2, **QUICK)
    with pytest.raises(RequestError, match="cutout 2 needs images"):
        train("mlp", "relu,relu,relu/0,0", (np.eye(20), np.arange(20) % 2), preset="tiny", cutout=2)
    with pytest.raises(RequestError, match="5 of 1437 training rows are too few for 10 classes"):
        train("nasbench201", CELL, "digits", examples=5, **QUICK)


def test_a_loss_that_is_no_number_ends_the_training_with_a_sentence() -> None:
    with pytest.raises(RunError, match=r"loss became (nan|inf) in epoch 1, step \d+, with lr 1e\+20"):
        train("mlp", "relu,relu,relu/0,0", "digits", preset="tiny", lr=1e20, clip=None)


def test_the_callers_random_numbers_are_left_alone() -> None:
    before = torch.get_rng_state()
    train("mlp", "relu,relu,relu/0,0", "digits", preset="tiny", epochs=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_folder_of_another_training_is_refused(tmp_path: Path) -> None:
    train("nasbench201", CELL, "digits", out=tmp_path / "run", **QUICK)
    with pytest.raises(RequestError, match=r"holds a training with seed 0, not 1; choose another --out"):
        train("nasbench201", CELL, "digits", out=tmp_path / "run", seed=1, **QUICK)
    with pytest.raises(RequestError, match="holds a training with architecture"):
        train("nasbench201", SKIPS, "digits", out=tmp_path / "run", **QUICK)
    digits = load("digits")
    with pytest.raises(RequestError, match="holds a training on other data"):
        train("nasbench201", CELL, (digits.train_x, digits.train_y), out=tmp_path / "run", **QUICK)


def test_an_unfinished_training_of_another_torch_is_not_mixed_with_this_one(tmp_path: Path) -> None:
    train("nasbench201", CELL, "digits", out=tmp_path / "run", **QUICK)
    (tmp_path / "run" / "result.json").unlink()
    about = RunFolder(tmp_path / "run").about
    about["versions"]["torch"] = "1.0"
    (tmp_path / "run" / "run.json").write_text(json.dumps(about))
    with pytest.raises(RequestError, match=r"begun with torch 1\.0, not "):
        train("nasbench201", CELL, "digits", out=tmp_path / "run", **QUICK)


@pytest.mark.parametrize(("pixels", "size"), [(64, {"channels": 2}), (224, {"channels": 8, "stem": 3})])
def test_darts_networks_of_few_channels_take_steps_with_the_channels_last_in_memory(
    pixels: int, size: dict[str, int]
) -> None:
    """As 1x1 convolutions of stride 2, their reductions wrote beyond their memory, which ended the process."""
    from nasight.training._loop import Trainer
    from nasight.training._train import make_job

    images = (np.random.default_rng(0).integers(0, 255, (22, pixels, pixels, 3), np.uint8), np.arange(22) % 2)
    settings = {"epochs": 1, "batch_size": 8, "size": {"cells": 3, **size}}
    trainer = Trainer(make_job("darts", "DARTS_V2", images, "tiny", 0, settings, "cpu"))
    weights = [p for p in trainer.network.parameters() if p.dim() == 4]
    assert all(p.is_contiguous(memory_format=torch.channels_last) for p in weights)
    assert np.isfinite(trainer.run_epoch(lambda: None).train_loss)


@pytest.mark.parametrize("name", ["nasbench201", "darts", "nasbench1shot1-1", "plain"])
def test_channels_last_in_memory_change_nothing_but_the_order_of_sums(name: str) -> None:
    space = spaces.PlainSpace() if name == "plain" else spaces.load(name)
    assert space.channels_last
    arch = space.reference
    size = {"channels": 4} if name == "plain" else {"channels": 4, "cells": 3}
    first = space.network(arch, (3, 8, 8), 4, **size).double()
    last = copy.deepcopy(first).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.randn(6, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    outputs = []
    for network in (first, last):
        outputs.append(network(x))
        outputs[-1].square().sum().backward()
    assert torch.allclose(*outputs, atol=1e-12)
    for a, b in zip(first.parameters(), last.parameters(), strict=True):
        assert a.grad is not None
        assert b.grad is not None
        assert torch.allclose(a.grad, b.grad, atol=1e-9)
        assert a.dim() != 4 or b.grad.is_contiguous(memory_format=torch.channels_last)
