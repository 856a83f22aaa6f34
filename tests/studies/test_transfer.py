"""What was found on one data set, trained on another; what a publication trains otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nasight
from command import run as command
from nasight.runs import RunFolder
from nasight.studies import trainable
from nasight.studies._deepen import trainings
from nasight.studies._export import training_of


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of other images than the digits, in three classes."""
    x = np.random.default_rng(0).normal(size=(60, 3, 12, 12)).astype("float32")
    path = tmp_path_factory.mktemp("data") / "other.npz"
    np.savez(path, x=x, y=np.arange(60) % 3)
    return str(path)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> nasight.Run:
    out = tmp_path_factory.mktemp("transfer") / "run"
    return nasight.search(
        "darts", "gaea-pc-darts", "digits", preset="tiny", epochs=1, warmup=0, examples=100, threads=1, out=out
    )


@pytest.mark.slow
def test_a_find_is_trained_on_other_data_with_other_images_and_classes(
    found: nasight.Run, other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--preset", "tiny", "--epochs", "1", "--seeds", "1", "--out", str(tmp_path / "out"), "--json")
    assert command("train", str(found.path), "--data", other, *flags) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["data"] == "other"
    assert told["architecture"] == found.result["architecture"]
    assert told["multiply_adds"] > 0


def test_pc_darts_and_its_gaea_twin_are_evaluated_with_batches_of_128(found: nasight.Run) -> None:
    assert dict(trainable(found.path, preset="paper").settings) == {"batch_size": 128}
    assert dict(trainable(found.path, preset="tiny").settings) == {}


@pytest.mark.slow
def test_trainings_on_the_data_of_the_search_and_on_other_data_lie_beside_each_other(
    found: nasight.Run, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ("--preset", "tiny", "--epochs", "1", "--examples", "60", "--seeds", "1", "--threads", "1", "--json")
    text = str(found.result["architecture"])

    def train(*more: str) -> tuple[str, int]:
        assert command("train", str(found.path), *short, *more) == 0
        out = json.loads(capsys.readouterr().out)["out"]
        return out, (Path(out) / "seed-0" / "result.json").stat().st_mtime_ns

    elsewhere = train("--data", other)
    # What was trained on other data says nothing of the search, but it can be exported and asked.
    assert trainings(found) == []
    transferred = training_of(found.path, text)
    assert transferred is not None
    assert transferred.path.parent == Path(elsewhere[0])
    own = train()
    assert (Path(own[0]).parent, Path(elsewhere[0]).parent.parent) == (found.path / "train",) * 2
    assert Path(elsewhere[0]).parent.name.startswith("other-")
    # The same commands again read what is finished.
    assert (train(), train("--data", other), train("--data", "digits")) == (own, elsewhere, own)
    assert trainings(found) == [Path(own[0]) / "seed-0"]
    first = training_of(found.path, text)
    assert first is not None
    assert first.path == Path(own[0]) / "seed-0"
    assert RunFolder(transferred.path).about["data"]["name"] == "other"
