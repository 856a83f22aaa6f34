"""A network that was trained on a table: what its columns became is kept with it, with nasight and without."""

from __future__ import annotations

import runpy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nasight
from command import run
from nasight.errors import RequestError
from nasight.studies import load_model, write_model

ROWS = 120
CHANCE = np.random.default_rng(3)
WIDTH = CHANCE.normal(100, 20, ROWS)
FRAME = pd.DataFrame(
    {
        "width": np.where(np.arange(ROWS) % 9 == 0, np.nan, WIDTH),
        "town": [None if i % 11 == 0 else ("Bern", "Chur", "Wil")[i % 3] for i in range(ROWS)],
        "plot": [f"p{i % 80}" if i > 40 else "p0" for i in range(ROWS)],
        "new": [bool(i % 2) for i in range(ROWS)],
        "day": [datetime(2020, 1, 1) + timedelta(days=i, microseconds=250_000) for i in range(ROWS)],
        "price": WIDTH * 3 + 5,
    }
)
ODD = FRAME.assign(town="Oslo", width=np.where(np.arange(ROWS) % 2, np.nan, 1e9))
"""Texts that were never seen, and numbers far from all that were."""


def kinds() -> dict[str, Any]:
    return {
        "numbers": FRAME["price"],
        "classes": pd.Series(np.where(FRAME["price"] > 300, "dear", "cheap")),
        "labels": pd.DataFrame({"dear": FRAME["price"] > 300, "far": FRAME["town"] == "Chur"}),
    }


def written(folder: Path, frame: pd.DataFrame, kind: str) -> Path:
    path = folder / f"new.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind.startswith("jsonl"):
        frame.assign(day=frame["day"].map(lambda day: (day - datetime.min).total_seconds())).to_json(
            path, orient="records", lines=True, double_precision=15
        )
    else:
        seconds = frame["day"].map(lambda day: (day - datetime.min).total_seconds())
        frame.assign(day=seconds).to_csv(path, index=False, sep="\t" if "tsv" in kind else ",")
    return path


def check_same(found: str, expected: str) -> None:
    """Equal lines, but for the last digit of numbers."""
    rows, wanted = ([line.split(",") for line in text.splitlines()] for text in (found, expected))
    assert len(rows) == len(wanted) == ROWS + 1
    assert rows[0] == wanted[0]
    for row, want in zip(rows[1:], wanted[1:], strict=True):
        for cell, other in zip(row, want, strict=True):
            assert cell == other or float(cell) == pytest.approx(float(other), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "classes", "labels"])
def test_the_folder_alone_prints_what_the_command_prints(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = kinds()[kind]
    table = FRAME.drop(columns="price")
    table = pd.concat([table, labels if kind == "labels" else labels.rename("label")], axis=1)
    label = "dear,far" if kind == "labels" else "label"
    how: dict[str, Any] = {"preset": "tiny", "epochs": 2, "threads": 1}
    nasight.train("mlp", "relu,relu,relu/0,0", table, label=label, out=tmp_path / "run", **how)
    write_model(tmp_path / "model", load_model(tmp_path / "run"))
    alone = runpy.run_path(str(tmp_path / "model" / "predict.py"))
    for kind_of_file in ("csv", "tsv.gz", "jsonl", "parquet") if kind == "numbers" else ("csv",):
        for number, frame in enumerate((FRAME, ODD)):
            (tmp_path / f"{kind_of_file}-{number}").mkdir()
            file = str(written(tmp_path / f"{kind_of_file}-{number}", frame.drop(columns="price"), kind_of_file))
            capsys.readouterr()
            assert run("predict", str(tmp_path / "run"), file) == 0
            expected = capsys.readouterr().out
            alone["main"]([file])
            check_same(capsys.readouterr().out, expected)
    with pytest.raises(ValueError, match="lacks the column 'town'"):
        alone["load"](tmp_path / "model").rows(written(tmp_path, FRAME.drop(columns="town"), "csv"))


def test_a_trained_folder_predicts_when_its_table_is_gone(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "houses.csv", index=False)
    words = ["--arch", "relu,relu,relu/0,0", "--preset", "tiny", "--epochs", "8", "--seeds", "1", "--threads", "1"]
    assert (
        run("train", "--space", "mlp", "--data", str(tmp_path / "houses.csv"), *words, "--out", str(tmp_path / "t"))
        == 0
    )
    (tmp_path / "houses.csv").rename(tmp_path / "new.csv")
    assert run("predict", str(tmp_path / "t"), str(tmp_path / "new.csv"), "--csv", str(tmp_path / "found.csv")) == 0
    found = pd.read_csv(tmp_path / "found.csv")
    known = FRAME["width"].notna().to_numpy()
    assert np.corrcoef(found["price"][known], FRAME["price"][known])[0, 1] > 0.8


def test_damaged_inputs_of_a_training_are_named(tmp_path: Path) -> None:
    how: dict[str, Any] = {"preset": "tiny", "epochs": 1, "threads": 1}
    nasight.train("mlp", "relu,relu,relu/0,0", FRAME, out=tmp_path / "run", **how)
    (tmp_path / "run" / "inputs.json").write_text('{"task": {"kind": "numbers"}}')
    with pytest.raises(RequestError, match="cannot become a model"):
        load_model(tmp_path / "run")
    assert load_model(tmp_path / "run", data=FRAME).kind == "numbers"
