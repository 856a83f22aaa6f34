"""What `nasight find` says on the way."""

from __future__ import annotations

import math

import pytest

from nasight.cli import _find_progress
from nasight.cli._find_progress import FindProgress


def trained(architecture: str, accuracy: float | None) -> dict[str, object]:
    return {"architecture": architecture, "accuracy": accuracy, "metric": "accuracy"}


def test_the_best_so_far_are_those_of_this_rung_without_trainings_that_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_find_progress, "PAUSE", 0.0)
    tell = FindProgress(quiet=False)
    tell("stage", {"stage": "race", "left": math.inf})
    tell("training", trained("short", 99.0))
    leaders = {"leaders": [("short", 99.0)], "metric": "accuracy"}
    tell("rung", {"rung": 1, "running": 2, "training": "3 epochs", "left": 5_430.0, **leaders})
    for name, accuracy in (("a", 50.0), ("b", None), ("c", 70.0)):
        tell("training", trained(name, accuracy))
    assert (
        capsys.readouterr().err.splitlines()[-1] == "  4 trainings (1 h 30 min left), best so far: c 70.00 %; a 50.00 %"
    )


def test_lines_a_minute_apart_are_all_that_trainings_say_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell = FindProgress(quiet=False)
    tell("training", trained("a", 50.0))
    assert capsys.readouterr().err == ""


def test_events_that_nobody_shows_are_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    FindProgress(quiet=True)("answer", {})
    assert capsys.readouterr().err == ""
