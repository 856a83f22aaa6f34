"""A training that was killed goes on to the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nasight.data import load
from nasight.errors import RequestError
from nasight.runs import RunFolder
from nasight.spaces import load as load_space
from nasight.training import EpochRow, Job, Trainer, TrainingResult, run_job, settings_for, train

CELL = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"
CALL: dict[str, Any] = {
    "preset": "tiny",
    "epochs": 3,
    "seed": 3,
    "size": {"channels": 4},
    "examples": 600,
    "threads": 1,
}
SCRIPT = """
import json, sys
from nasight.training import train
train("nasbench201", sys.argv[1], "digits", out=sys.argv[2], **json.loads(sys.argv[3]))
"""


def without_times(result: TrainingResult) -> list[tuple[float | None, ...]]:
    return [(r.epoch, r.train_loss, r.train_accuracy, r.test_loss, r.test_accuracy, r.lr) for r in result.curve]


def same_weights(one: Path, two: Path) -> bool:
    a, b = RunFolder(one).load(), RunFolder(two).load()
    assert a is not None
    assert b is not None
    assert a["network"].keys() == b["network"].keys()
    return all(torch.equal(a["network"][key], b["network"][key]) for key in a["network"])


@pytest.mark.slow
def test_a_training_killed_in_the_middle_of_an_epoch_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = train("nasbench201", CELL, "digits", out=tmp_path / "whole", **CALL)
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, CELL, str(killed), json.dumps({**CALL, "checkpoint_seconds": 0.0})],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    try:
        wait_for_step(killed, process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    state = json.loads((killed / "state.json").read_text())
    assert not (killed / "result.json").exists()
    assert state["mark"] > "0001-000003"
    resumed = train("nasbench201", CELL, "digits", out=killed, **CALL)
    assert without_times(resumed) == without_times(whole)
    assert same_weights(tmp_path / "whole", killed)
    strip = [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(killed).history]
    assert strip == [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(tmp_path / "whole").history]


def wait_for_step(folder: Path, process: "subprocess.Popen[bytes]") -> None:
    """Until the second epoch has taken some steps."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit and process.poll() is None:
        try:
            if json.loads((folder / "state.json").read_text())["mark"] > "0001-000003":
                return
        except FileNotFoundError:
            pass
        time.sleep(0.005)
    pytest.fail("the training did not reach its second epoch")


class Stop(Exception):
    pass


def stop_after(epoch: int) -> Any:
    def progress(row: EpochRow) -> None:
        if row.epoch == epoch:
            raise Stop

    return progress


def test_drop_path_and_cutout_are_the_same_after_a_restart(tmp_path: Path) -> None:
    images = (np.random.default_rng(0).integers(0, 255, (24, 12, 12, 3), np.uint8), np.arange(24) % 3)
    call: dict[str, Any] = {"preset": "tiny", "epochs": 3, "batch_size": 8, "size": {"channels": 2, "cells": 3}}
    call |= {"drop_path": 0.6, "cutout": 4}
    whole = train("darts", "DARTS_V2", images, out=tmp_path / "whole", **call)
    with pytest.raises(Stop):
        train("darts", "DARTS_V2", images, out=tmp_path / "cut", progress=stop_after(2), **call)
    resumed = train("darts", "DARTS_V2", images, out=tmp_path / "cut", **call)
    assert without_times(resumed) == without_times(whole)
    assert same_weights(tmp_path / "whole", tmp_path / "cut")
    undropped = train("darts", "DARTS_V2", images, **{**call, "drop_path": 0.0})
    assert without_times(undropped) != without_times(whole)


def test_random_crops_and_colors_are_the_same_after_a_restart(tmp_path: Path) -> None:
    images = (np.random.default_rng(0).integers(0, 255, (24, 12, 12, 3), np.uint8), np.arange(24) % 3)
    call: dict[str, Any] = {"preset": "tiny", "epochs": 3, "batch_size": 8, "size": {"channels": 2, "cells": 3}}
    call |= {"augment": "crop,flip,jitter"}
    whole = train("darts", "DARTS_V2", images, out=tmp_path / "whole", **call)
    with pytest.raises(Stop):
        train("darts", "DARTS_V2", images, out=tmp_path / "cut", progress=stop_after(2), **call)
    resumed = train("darts", "DARTS_V2", images, out=tmp_path / "cut", **call)
    assert without_times(resumed) == without_times(whole)
    assert same_weights(tmp_path / "whole", tmp_path / "cut")
    assert RunFolder(tmp_path / "cut").about["data"]["augmentation"] == "crop=0.08,flip,jitter=0.4"
    for words in ("crop,flip", "flip,jitter"):
        other = train("darts", "DARTS_V2", images, **{**call, "augment": words})
        assert without_times(other) != without_times(whole)


def test_a_training_that_is_judged_once_meets_its_test_part_once_and_goes_on_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = list[int]()
    judged = Trainer._judged
    monkeypatch.setattr(Trainer, "_judged", lambda self, batch: met.append(self.epoch) or judged(self, batch))
    call = {key: value for key, value in CALL.items() if key not in ("seed", "threads", "preset")}
    settings = settings_for("nasbench201", "tiny", **call)
    space = load_space("nasbench201")
    job = Job(space, space.parse(CELL), load("digits"), settings, 3)
    usual = run_job(job, tmp_path / "usual", threads=1)
    assert met == [0, 1, 2]
    met.clear()
    rights = list[torch.Tensor]()
    once = run_job(
        job, tmp_path / "once", threads=1, judged_once=True, ended=lambda trainer: rights.append(trainer.right())
    )
    assert met == [2]
    assert same_weights(tmp_path / "usual", tmp_path / "once")
    assert [row.test_accuracy for row in once.curve] == [None, None, usual.accuracy]
    assert [row.train_loss for row in once.curve] == [row.train_loss for row in usual.curve]
    assert once.figures == usual.figures
    assert 100 * float(rights[0].float().mean()) == pytest.approx(once.accuracy)
    with pytest.raises(Stop):
        run_job(job, tmp_path / "cut", threads=1, judged_once=True, checkpoint_seconds=0.0, progress=stop_after(2))
    resumed = run_job(job, tmp_path / "cut", threads=1)
    assert without_times(resumed) == without_times(once)
    assert same_weights(tmp_path / "cut", tmp_path / "once")


def test_training_with_and_without_a_folder_is_the_same(tmp_path: Path) -> None:
    call = {**CALL, "epochs": 1}
    kept = train("nasbench201", CELL, "digits", out=tmp_path / "run", **call)
    assert without_times(kept) == without_times(train("nasbench201", CELL, "digits", **call))


def test_a_kill_before_the_folder_was_ready_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.123.new").write_text('{"form')
    assert train("nasbench201", CELL, "digits", out=tmp_path / "run", **{**CALL, "epochs": 1}).epochs == 1


def test_two_processes_do_not_write_one_training(tmp_path: Path) -> None:
    with pytest.raises(Stop):
        train("nasbench201", CELL, "digits", out=tmp_path / "run", progress=stop_after(1), **CALL)
    with RunFolder(tmp_path / "run").writing(), pytest.raises(RequestError, match="another process is writing"):
        train("nasbench201", CELL, "digits", out=tmp_path / "run", **CALL)
