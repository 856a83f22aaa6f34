"""A training whose loss is no number: one sentence, and the state before it to go on from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

import nasight
from command import run as run_command
from nasight.own import OwnParts
from nasight.training import Diverged, resume_train

SMALL = {"preset": "tiny", "epochs": 3, "examples": 60, "batch_size": 16, "threads": 1, "size": {"width": 4}}
WORDS = (
    "train", "--space", "mlp", "--arch", "relu,relu,relu/0,0", "--data", "digits", "--preset", "tiny", "--epochs", "3",
    "--examples", "60", "--batch-size", "16", "--width", "4", "--seeds", "1", "--workers", "1", "--threads", "1",
)  # fmt: skip


class BrokenAfter:
    """A loss that is NaN from its so-manieth call on, as one that diverges is."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, logits: Tensor, y: Tensor) -> Tensor:
        self.left -= 1
        loss = torch.nn.functional.cross_entropy(logits, y)
        return loss if self.left >= 0 else loss * torch.nan


def test_a_loss_that_is_no_number_is_one_sentence_with_the_command_that_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "it"
    with pytest.raises(Diverged) as told:
        nasight.train("mlp", "relu,relu,relu/0,0", "digits", out=out, loss=BrokenAfter(7), **SMALL)  # type: ignore[arg-type]
    assert "became nan in epoch 2" in str(told.value)
    assert f"resume with a lower learning rate: nasight train --resume {out} --lr" in str(told.value)
    kept = torch.load(out / "checkpoint-0001-000000.pt", weights_only=True)
    assert all(bool(torch.isfinite(value).all()) for value in kept["network"].values())

    own = OwnParts(loss=BrokenAfter(10**6))
    found = resume_train(out, lr=0.001, own=own)
    about = json.loads((tmp_path / "it-lr-0.001" / "run.json").read_text())
    assert (len(found.curve), about["changes"]) == (3, [{"epoch": 1, "step": 0, "lr": [0.05, 0.001]}])
    assert found.curve[0].train_loss == kept["rows"][0]["train_loss"]
    assert found.curve[1].lr < 0.001
    assert not (out / "result.json").exists(), "what diverged stays as it was"
    assert resume_train(out, lr=0.001, own=own).accuracy == found.accuracy, "the same call reads it"


def test_the_command_says_it_in_one_line_without_a_warning_and_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "t"
    assert run_command(*WORDS, "--lr", "1e36", "--out", str(out)) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "Warning" in line or "became" in line]
    assert len(lines) == 1
    assert "train with a smaller lr" in lines[0], "there was no checkpoint yet"
    seed = next(out.glob("*/seed-0"))
    assert run_command("train", "--resume", str(seed), "--lr", "0.01") == 2
    assert "has no checkpoint yet" in capsys.readouterr().err
    assert run_command("train", "--resume", str(seed), "--lr", "0.01", "--epochs", "4") == 2
    assert "--epochs cannot change with --resume" in capsys.readouterr().err


def test_a_loss_of_ones_own_must_be_the_one_that_a_training_was_begun_with(tmp_path: Path) -> None:
    out = tmp_path / "it"
    with pytest.raises(Diverged):
        nasight.train("mlp", "relu,relu,relu/0,0", "digits", out=out, loss=BrokenAfter(7), **SMALL)  # type: ignore[arg-type]
    about = json.loads((out / "run.json").read_text())
    assert set(about["own_sources"]) == {"loss"}
    about["own_sources"]["loss"] = "0" * 64
    (out / "run.json").write_text(json.dumps(about))
    with pytest.raises(nasight.RequestError, match=r"is not the code that .* was begun with: the checksum of its file"):
        resume_train(out, own=OwnParts(loss=BrokenAfter(10**6)))
    with pytest.raises(nasight.RequestError, match=r"was begun with loss=.*BrokenAfter: give it again"):
        resume_train(out)
    with pytest.raises(nasight.RequestError, match="is not the code"):
        nasight.train("mlp", "relu,relu,relu/0,0", "digits", out=out, loss=BrokenAfter(7), **SMALL)  # type: ignore[arg-type]
