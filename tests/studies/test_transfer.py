"""What was found on one data set, trained on another; what a publication trains otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nasight
from command import run as command
from nasight.studies import trainable


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> nasight.Run:
    out = tmp_path_factory.mktemp("transfer") / "run"
    return nasight.search(
        "darts", "gaea-pc-darts", "digits", preset="tiny", epochs=1, warmup=0, examples=100, threads=1, out=out
    )


@pytest.mark.slow
def test_a_find_is_trained_on_other_data_with_other_images_and_classes(
    found: nasight.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3, 12, 12)).astype("float32"), np.arange(60) % 3
    np.savez(tmp_path / "other.npz", x=x, y=y)
    flags = ("--preset", "tiny", "--epochs", "1", "--seeds", "1", "--out", str(tmp_path / "out"), "--json")
    assert command("train", str(found.path), "--data", str(tmp_path / "other.npz"), *flags) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["data"] == "other"
    assert told["architecture"] == found.result["architecture"]
    assert told["multiply_adds"] > 0


def test_pc_darts_and_its_gaea_twin_are_evaluated_with_batches_of_128(found: nasight.Run) -> None:
    assert dict(trainable(found.path, preset="paper").settings) == {"batch_size": 128}
    assert dict(trainable(found.path, preset="tiny").settings) == {}
