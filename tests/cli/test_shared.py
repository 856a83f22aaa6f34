"""What several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from command import run


def interrupt(*_: Any, **__: Any) -> NoReturn:
    raise KeyboardInterrupt


def test_an_interrupted_command_says_how_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "a")
    monkeypatch.setattr("nasight.studies.reproduce", interrupt)
    assert run("reproduce", "gaea-entropy", "--out", out) == 130
    assert f"stopped; the same command resumes what is in {out}\n" in capsys.readouterr().err
    monkeypatch.setattr("nasight.kernels.score", interrupt)
    assert run("score", "--data", "digits", "--out", out) == 130
    assert f"stopped; resume with: nasight score --resume {out}\n" in capsys.readouterr().err


def test_an_interrupted_command_that_keeps_nothing_promises_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nasight.kernels.score", interrupt)
    assert run("score", "--data", "digits") == 130
    assert "stopped" not in capsys.readouterr().err
