"""`nasight score` and the search methods without training, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import run
from nasight.searching import Run

FAST = ["--data", "digits", "--channels", "2", "--cells", "1", "--workers", "1"]


def test_json_holds_a_number_for_every_architecture_and_metric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "s")
    assert run("score", *FAST, "--metric", "eigen,knas,te-nas", "--sample", "5", "--out", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["scores"]) == 5
    for row in found["scores"]:
        assert row["architecture"].count("|") == 9
        assert all(isinstance(row[metric], float) for metric in ("eigen", "knas", "te-nas"))
    assert found["directions"] == {"eigen": "high", "knas": "high", "te-nas": "low"}
    assert run("score", "--resume", out, "--workers", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out) == found


def test_the_text_ranks_cells_and_correlates_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", *FAST, "--metric", "eigen,params", "--sample", "5", "--top", "2") == 0
    shown = capsys.readouterr()
    assert "5 architectures of nasbench201" in shown.out
    assert shown.out.count("|+|") == 2 * 2 * 2  # two joints in each of two cells for each of two metrics
    assert "Spearman" in shown.out
    assert "5 of 5 forms scored" in shown.err


def test_a_metric_from_a_file_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def size(network, x, y):\n    return sum(p.numel() for p in network.parameters())\n")
    assert run("score", *FAST, "--metric", f"params,{file}:size", "--sample", "4", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert all(row["params"] == row[f"{file}:size"] for row in found["scores"])
    assert run("score", *FAST, "--metric", f"{file}:none", "--sample", "4") == 2
    assert "defines no function 'none'" in capsys.readouterr().err


def test_the_table_of_scores_says_direction_batch_mode_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", "--list", "--json") == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["scores"]}
    assert {"eigen", "knas", "naswot", "te-nas", "nasi", "params", "flops"} <= set(rows)
    assert rows["naswot"]["batch"] == 128
    assert set(rows["eigen"]) >= {"better", "batch", "batch_norm", "cost"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--metric", "eigne"], "there is no score 'eigne'"),
        (["--sample", "0"], "at least 1 architecture, got 0"),
        (["--sample", "3", "--all"], "one of --sample, --all and --arch"),
        (["--space", "darts", "--all"], "too many for all"),
        (["--batch", "1", "--sample", "2"], "at least 2 examples, got 1"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_exit_code_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("score", "--data", "digits", "--workers", "1", *arguments) == 2
    assert sentence in capsys.readouterr().err


def test_eigen_nas_is_a_search_whose_run_can_be_read_resumed_and_retrained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "e")
    fast = ["--data", "digits", "--preset", "tiny", "--channels", "2", "--cells", "1", "--threads", "1"]
    options = ["--method", "eigen", "--candidates", "4", "--top", "2", "--epochs", "1", "--examples", "100"]
    assert run("search", *fast, *options, "--out", out, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) >= {"run", "space", "method", "architecture", "accuracy", "entropy", "seconds"}
    assert result["entropy"] is None
    assert result["accuracy"] == max(c["accuracy"] for c in result["candidates"])
    assert len(result["candidates"]) == 2
    found = Run(out)
    assert found.space.format(found.architecture) == result["architecture"]
    (tmp_path / "e" / "result.json").unlink()
    assert run("search", "--resume", out, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: v for k, v in result.items() if k != "seconds"}
    assert run("search", *fast, "--method", "darts", "--top", "3", "--out", str(tmp_path / "d")) == 2
    assert "top is for methods without training" in capsys.readouterr().err
    assert run("search", *fast, "--method", "eigen", "--warmup", "3", "--out", str(tmp_path / "d")) == 2
    assert "has no setting 'warmup'" in capsys.readouterr().err
