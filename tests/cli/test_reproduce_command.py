"""`nasight reproduce` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command import run
from nasight.studies import CLAIMS


def test_the_list_has_every_claim_with_its_rule_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce", "--list") == 0
    shown = capsys.readouterr().out
    for name, claim in CLAIMS.items():
        assert f"{name} ({claim.paper}): {claim.sentence}" in shown
        assert claim.rule.text in shown
    assert run("reproduce", "--list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["claims"]
    assert [row["name"] for row in listed] == list(CLAIMS)


def test_a_claim_has_figure_rule_verdict_and_scale_and_the_ending_is_0_whatever_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("reproduce", "cells-width-depth", "eigen-bounds-printed", "--seeds", "1", "--workers", "1") == 0
    shown = capsys.readouterr().out
    assert "  verdict   holds\n" in shown
    assert "  verdict   does not hold\n" in shown
    assert "with another width or depth: 0, 5 cases, no chance\n" in shown
    assert "  rule      holds if no case violates it" in shown
    assert "  scale     the constant of the paper's Theta(N/d) is taken as 1" in shown
    assert "holds: 1, does not hold: 1; data digits, measurements in runs/reproduce-digits" in shown
    assert (tmp_path / "runs/reproduce-digits/result.json").is_file()


def test_json_is_one_object_and_few_seeds_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["features-correlation", "--seeds", "2", "--seed", "5", "--workers", "1", "--out", str(tmp_path / "r")]
    assert run("reproduce", *words, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["claims"]
    assert found["seeds"] == [5, 6]
    assert found["interval"][0] < found["figure"] < found["interval"][1]
    assert run("reproduce", *words) == 0
    told = capsys.readouterr()
    assert "note      with 2 of the 8 seeds" in told.out
    assert "finished" not in told.err


def test_wrong_requests_are_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        ((), "name one or more claims, or all"),
        (("cell-variants",), "did you mean 'cells-variants'?"),
        (("cells-variants", "--seeds", "0"), "from 1 to 10,000, got 0"),
        (("cells-variants", "--data", "no-such-data"), "no-such-data"),
    ):
        assert run("reproduce", *words) == 2
        told = capsys.readouterr()
        assert says in told.err
        assert told.err.count("\n") == 1
        assert told.out == ""


@pytest.mark.slow
def test_a_killed_command_given_again_ends_as_if_it_had_not_been_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "eigen-bounds", "--seeds", "3", "--workers", "1", "--json", "--out"]
    begin = [sys.executable, "-m", "nasight", *words, str(tmp_path / "killed")]
    history = tmp_path / "killed" / "history.jsonl"
    process = subprocess.Popen(begin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not history.exists() or not history.read_bytes().count(b"\n"):
        assert process.poll() is None, "killed before it ends"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed" / "result.json").exists()
    kept = history.read_bytes()
    again = subprocess.run(begin, capture_output=True, check=True)
    assert run(*words, str(tmp_path / "whole")) == 0
    assert timeless(again.stdout) == timeless(capsys.readouterr().out)
    assert history.read_bytes().startswith(kept)
    assert history.read_bytes().count(b"\n") == 3


def timeless(shown: str | bytes) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in json.loads(shown)["claims"]]
