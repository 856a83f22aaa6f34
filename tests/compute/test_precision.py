"""Mixed precision on the CPU: products in bfloat16, everything that is kept in float32."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from waits import SIZES, chosen, engine, step, values

from nasight.compute import autocast
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.studies import find
from nasight.training import Trainer, train
from nasight.training._train import make_job

ARCH = "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|none~2|"
CPU = torch.device("cpu")


@pytest.mark.parametrize("space", SIZES)
@pytest.mark.parametrize("path", ["fast", "plain"])
def test_both_paths_of_a_supernet_in_bf16_are_near_those_in_32_bits(space: str, path: str) -> None:
    found, _, _ = chosen(space)
    torch.manual_seed(0)
    supernet = found.supernet((1, 8, 8), 10, path=path, **SIZES[space])
    weights = {group.name: group.uniform().requires_grad_() for group in found.groups()}
    x = torch.randn(8, 1, 8, 8)
    exact = supernet(x, weights)
    with autocast(CPU, "bf16"):
        rounded = supernet(x, weights)
    far = (rounded.detach().float() - exact.detach()).norm() / exact.detach().norm()
    assert 0 < float(far) < 0.1
    rounded.float().square().sum().backward()
    for tensor in (*weights.values(), *supernet.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.dtype == tensor.dtype == torch.float32
        assert bool(tensor.grad.isfinite().all())


@pytest.mark.parametrize("space", SIZES)
@pytest.mark.parametrize("method", ["gaea-darts", "gdas"])
def test_a_step_in_bf16_goes_the_way_of_the_one_in_32_bits_and_keeps_all_in_float32(space: str, method: str) -> None:
    start = values(engine(space, method, "erm", "cpu"))
    exact, rounded = engine(space, method, "erm", "cpu"), engine(space, method, "erm", "cpu", precision="bf16")
    step(exact)
    step(rounded)
    ends = values(exact), values(rounded)
    start = {name: value for name, value in start.items() if name.split(".")[-1] != "num_batches_tracked"}
    assert all(ends[1][name].dtype == torch.float32 for name in start)
    ways = [torch.cat([(end[name] - start[name]).flatten() for name in start]) for end in ends]
    assert not torch.equal(*ways)
    assert float(torch.cosine_similarity(ways[0], ways[1], dim=0)) > 0.5


@pytest.mark.slow
def test_a_training_in_bf16_learns_as_one_in_32_bits_and_its_statistics_are_float32() -> None:
    how: dict[str, Any] = {"preset": "tiny", "epochs": 3, "device": "cpu", "augment": False}
    exact = train("nasbench201", ARCH, "digits", **how)
    rounded = train("nasbench201", ARCH, "digits", precision="bf16", **how)
    assert exact.accuracy > 80
    assert rounded.accuracy == pytest.approx(exact.accuracy, abs=6)
    assert rounded.curve[-1].train_loss != exact.curve[-1].train_loss
    settings = {"precision": "bf16", "examples": 64}
    trainer = Trainer(make_job("nasbench201", ARCH, "digits", "tiny", 0, settings, "cpu"))
    trainer.take_step()
    assert {value.dtype for value in trainer.network.state_dict().values()} == {torch.float32, torch.int64}


def test_what_cannot_be_in_16_bits_is_refused_in_a_sentence() -> None:
    with pytest.raises(RequestError, match="precision 16 is for GPUs; on the CPU take bf16 or 32"):
        engine("mlp", "darts", "bilevel", "cpu", precision="16")
    with pytest.raises(RequestError, match="'darts-2nd' takes differences of gradients, which need precision 32"):
        engine("mlp", "darts-2nd", "bilevel", "cpu", precision="bf16")
    with pytest.raises(RequestError, match="precision must be one of 32, bf16, 16, got 'half'"):
        engine("mlp", "darts", "bilevel", "cpu", precision="half")


@pytest.mark.slow
def test_a_find_in_bf16_trains_and_searches_in_it(tmp_path: Path) -> None:
    digits = load_data("digits")
    rows = (digits.train_x[:300].numpy(), digits.train_y[:300].numpy())
    answer = find(rows, out=tmp_path, space="mlp", trainings=21, epochs=1, workers=1, precision="bf16")
    kept = [*tmp_path.glob("searches/*/run.json"), *tmp_path.glob("trainings/*/run.json")]
    assert len(kept) > 4
    assert {json.loads(path.read_text())["settings"]["precision"] for path in kept} == {"bf16"}
    assert answer.accuracy > 30


def test_a_find_refuses_a_precision_that_its_device_or_method_has_not(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="precision 16 is for GPUs"):
        find("digits", budget="1m", out=tmp_path / "a", device="cpu", precision="16")
    with pytest.raises(RequestError, match="'darts-2nd' takes differences of gradients, which need precision 32"):
        find("digits", budget="1m", out=tmp_path / "a", device="cpu", precision="bf16", method="darts-2nd")
