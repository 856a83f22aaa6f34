"""A search without training, from Python and by command."""

from __future__ import annotations

from pathlib import Path

import pytest

import nasight
from command import run as command
from nasight.errors import RequestError

SETTINGS = {"preset": "tiny", "candidates": 6, "top": 2, "epochs": 1, "examples": 100, "threads": 1}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> nasight.Run:
    out = tmp_path_factory.mktemp("train-free") / "run"
    return nasight.search("nasbench201", "naswot", "digits", out=out, **SETTINGS)


@pytest.mark.slow
def test_it_works_from_python_as_by_command(found: nasight.Run, tmp_path: Path) -> None:
    assert found.train_free
    assert found.finished
    assert found.architecture in found.space
    flags = ("--preset", "tiny", "--candidates", "6", "--top", "2", "--epochs", "1", "--examples", "100")
    place = tmp_path / "command"
    assert command("search", "--method", "naswot", *flags, "--threads", "1", "--out", str(place)) == 0
    again = nasight.Run(place)
    assert again.result["architecture"] == found.result["architecture"]
    assert again.result["accuracy"] == found.result["accuracy"]


def test_resuming_a_finished_one_reads_it(found: nasight.Run) -> None:
    assert nasight.resume(found.path).result == found.result


def test_explain_says_that_there_are_no_weights_to_judge(
    found: nasight.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RequestError, match="it has no architecture weights to judge"):
        nasight.explain(found)
    assert command("explain", str(found.path)) == 2
    message = capsys.readouterr().err
    assert "no architecture weights to judge" in message
    assert "damaged" not in message


def test_what_needs_a_supernet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="trains no supernet and has no setting 'arch_lr'"):
        nasight.search("mlp", "eigen", "digits", out=tmp_path / "a", arch_lr=0.1)
    with pytest.raises(RequestError, match="has no objective, got 'erm'"):
        nasight.search("mlp", "eigen", "digits", out=tmp_path / "a", objective="erm")
    with pytest.raises(RequestError, match="a search without training has no epochs"):
        nasight.search("mlp", "eigen", "digits", out=tmp_path / "a", track="tensorboard")
    assert not (tmp_path / "a").exists()
