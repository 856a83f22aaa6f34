import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasight.errors import RequestError
from nasight.training import EpochRow, train, train_seeds

CELL = "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|none~1|none~2|"
CALL: dict[str, Any] = {"preset": "tiny", "epochs": 2, "size": {"channels": 4}, "examples": 600}
MODEL = """
from torch import nn
from nasight.spaces.module import Choice

def model():
    act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), act, nn.Linear(32, 10))
"""


@pytest.mark.slow
def test_seeds_trained_in_processes_are_those_trained_alone_and_the_folder_sums_them_up(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def progress(seed: int, row: EpochRow) -> None:
        told.append((seed, row.epoch))

    summary = train_seeds(
        "nasbench201", CELL, "digits", seeds=[0, 1], out=tmp_path, threads=1, progress=progress, **CALL
    )
    alone = [train("nasbench201", CELL, "digits", seed=seed, threads=1, **CALL) for seed in (0, 1)]
    assert summary.accuracy == tuple(result.accuracy for result in alone)
    assert sorted(told) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert summary.spread == pytest.approx(np.std(summary.accuracy, ddof=1))
    (written,) = tmp_path.glob("*/summary.json")
    assert json.loads(written.read_text())["mean"] == summary.mean == pytest.approx(np.mean(summary.accuracy))
    assert {path.name for path in written.parent.iterdir()} == {"seed-0", "seed-1", "summary.json"}


def test_one_more_seed_joins_the_finished_ones_which_are_not_trained_again(tmp_path: Path) -> None:
    call = {**CALL, "epochs": 1, "workers": 1, "out": tmp_path}
    train_seeds("nasbench201", CELL, "digits", seeds=[0], **call)
    (checkpoint,) = tmp_path.glob("*/seed-0/checkpoint-*.pt")
    before = checkpoint.stat().st_mtime_ns
    summary = train_seeds("nasbench201", CELL, "digits", seeds=[0, 2], **call)
    assert checkpoint.stat().st_mtime_ns == before
    assert summary.seeds == (0, 2)
    one = train_seeds("nasbench201", CELL, "digits", seeds=[2], **call)
    assert (one.seeds, one.spread) == ((2,), None)
    (written,) = tmp_path.glob("*/summary.json")
    assert json.loads(written.read_text())["seeds"] == [0, 2]


def test_threads_as_executor_give_the_same_as_one_seed_after_the_other() -> None:
    call: dict[str, Any] = {"seeds": [0, 1], "preset": "tiny", "epochs": 1, "threads": 1}
    here = train_seeds("mlp", "relu,relu,relu/0,0", "digits", workers=1, **call)
    with ThreadPoolExecutor(2) as executor:
        there = train_seeds("mlp", "relu,relu,relu/0,0", "digits", executor=executor, **call)
    assert there.accuracy == here.accuracy
    assert [r.loss for r in there.results] == [r.loss for r in here.results]


@pytest.mark.slow
def test_a_space_from_a_file_is_trained_in_other_processes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODEL)
    summary = train_seeds(
        f"{tmp_path}/mine.py:model", "2=tanh", "digits", seeds=[0, 1], workers=2, preset="tiny", epochs=3
    )
    assert summary.mean > 80
    assert summary.accuracy[0] != summary.accuracy[1]


def test_seeds_of_different_trainings_are_not_put_beside_each_other(tmp_path: Path) -> None:
    call = {"preset": "tiny", "workers": 1, "out": tmp_path, "epochs": 1}
    train_seeds("mlp", "relu,relu,relu/0,0", "digits", seeds=[0], **call)
    with pytest.raises(RequestError, match="holds a training with architecture"):
        train_seeds("mlp", "relu,relu,tanh/0,0", "digits", seeds=[1], **call)


@pytest.mark.parametrize("seeds", [[], [1, 1], [0, -1], [0.5]])
def test_wrong_seeds_are_refused(seeds: list[int]) -> None:
    with pytest.raises(RequestError, match="seed"):
        train_seeds("mlp", "relu,relu,relu/0,0", "digits", seeds=seeds, preset="tiny")
