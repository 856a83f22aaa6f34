"""`nasight find` as typed."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from command import run
from nasight.data import load


@pytest.fixture
def rows(tmp_path: Path) -> str:
    data = load("digits")
    np.savez(tmp_path / "few.npz", x=data.train_x[:300].numpy(), y=data.train_y[:300].numpy())
    return str(tmp_path / "few.npz")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a find needs a budget: a time such as --budget 30m, or --trainings 60"),
        (["--budget", "soon"], "a budget is a time such as 90s"),
        (["--budget", "+5m"], "a budget with \\+ is for a find that is there"),
        (["--budget", "5m", "--trainings", "60"], "of time or of trainings, not both"),
        (["--trainings", "5"], "5 trainings are too few"),
        (["--budget", "5m", "--space", "nowhere"], "nowhere"),
        (["--budget", "5m", "--target", "huge"], "no preset 'huge'"),
        (["--budget", "5m", "--method", "best"], "best"),
        (["--budget", "5m", "--max-params", "many"], "many"),
        (["--budget", "5m", "--max-params", "3"], "was found within 3 parameters \\(the smallest network has [1-9]"),
        (["--resume", "nothing"], "is not a run"),
        (["--resume", "nothing", "--space", "darts"], "--space cannot change with --resume"),
        (["--resume", "nothing", "--seed", "0"], "--seed cannot change with --resume"),
        (["--resume", "nothing", "--data", "digits"], "--data cannot change with --resume"),
        (["--resume", "nothing", "--epochs", "3"], "--epochs cannot change with --resume"),
        (["--resume", "nothing", "--plan-only"], "--plan-only cannot change with --resume"),
        (["--budget", "5m", "--baseline", "none.py:net"], "there is no file 'none.py'"),
        (["--budget", "5m", "--plan-only", "--baseline", "none.py:net"], "there is no file 'none.py'"),
    ],
)
def test_a_wrong_request_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    place = [] if "--resume" in arguments else ["--out", str(tmp_path / "r")]
    assert run("find", "--workers", "1", *arguments, *place) == 2
    shown = capsys.readouterr()
    assert re.search(said, shown.err)
    assert shown.out == ""
    assert "Traceback" not in shown.err


def test_a_plan_is_made_for_the_column_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i % 7},{i % 2},{i % 3}" for i in range(120)]
    (tmp_path / "t.csv").write_text("\n".join(["a,two,three", *lines]))
    given = ("--data", str(tmp_path / "t.csv"), "--budget", "5m", "--plan-only", "--workers", "1")
    assert run("find", *given, "--label", "four") == 2
    assert "no column 'four'" in capsys.readouterr().err
    assert run("find", *given, "--label", "two", "--json") == 0
    assert json.loads(capsys.readouterr().out)["plan"]["epochs"] > 0


def test_a_plan_alone_says_too_how_much_of_the_budget_is_not_planned(
    rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("find", "--data", rows, "--plan-only", "--workers", "1", "--budget", "100h") == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "not planned" in line)
    use = "more candidates and more seeds where that helps; else it is not used"
    assert re.fullmatch(rf"  not planned +\d d( \d+ h)?   {use}", line)


@pytest.mark.slow
def test_json_is_one_object_and_a_finished_find_is_read_again(
    rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "r")
    given = ["--data", rows, "--trainings", "26", "--epochs", "1", "--workers", "1"]
    assert run("find", *given, "--out", out, "--json") == 0
    first = capsys.readouterr()
    result = json.loads(first.out)
    # Without a clock the plan has no seconds, but places and epochs.
    race, ends = (re.search(rf"  {part} +(.+)", first.err) for part in ("race", "answer"))
    assert race is not None
    assert re.fullmatch(r"\d+ x 1 epoch", race[1])
    assert ends is not None
    assert ends[1] == "winner and baseline, 3 seeds each, of 1 epoch"
    assert result["run"] == out
    assert run("find", "--resume", out, "--json") == 0
    assert json.loads(capsys.readouterr().out) == result
    assert run("find", "--resume", out) == 0
    shown = capsys.readouterr().out
    assert result["sentence"] in shown
    assert f"nasight predict {out}" in shown
    assert re.search(r"^  model/ +seed 1 of 3: [\d.]+ %\n +balanced accuracy", shown, re.MULTILINE)
    assert "(the last each: 1 epoch, " in shown
    assert run("explain", out) == 2
    assert f"not a 'search' run; one of its searches is {out}/searches/0-0" in capsys.readouterr().err
    assert run("find", "--resume", out, "--budget", "20m") == 2
    assert f"a find in {out} already: to give it more time, write --budget +20m" in capsys.readouterr().err
    assert run("train", out, "--max-params", "3") == 2
    assert re.search(r"within these limits: the smallest has [\d,]+ parameters", capsys.readouterr().err)
    assert len(re.findall(r" [\d,]+ parameters, [\d.]+ [kM] multiply-adds$", shown, re.MULTILINE)) == 2
    counted = json.loads((Path(out) / "result.json").read_text())
    for side in (counted, counted["baseline"]):
        del side["multiply_adds"]
    for point in counted["front"]:
        del point["multiply_adds"]
    (Path(out) / "result.json").write_text(json.dumps(counted))  # as versions before wrote it
    assert run("find", "--resume", out) == 0
    shown = capsys.readouterr().out
    assert len(re.findall(r" [\d,]+ parameters$", shown, re.MULTILINE)) == 2
    assert run("find", *given, "--out", out) == 2
    assert "already holds a run" in capsys.readouterr().err


@pytest.mark.slow
def test_a_budget_that_is_too_small_says_what_the_least_is_and_leaves_nothing(
    rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made" / "too" / "r"
    (tmp_path / "made").mkdir()
    assert run("find", "--data", rows, "--budget", "1s", "--workers", "1", "--out", str(out)) == 2
    assert "the least is about" in capsys.readouterr().err
    # Nor the folder around it, which was made for it; one that was there stays.
    assert list((tmp_path / "made").iterdir()) == []


def test_no_workers_are_refused_on_the_command_line_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("find", "--data", "digits", "--budget", "1m", "--workers", "0", "--out", str(tmp_path / "a")) == 2
    assert "at least 1 worker, got 0" in capsys.readouterr().err
