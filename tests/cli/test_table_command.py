"""`nasight table` as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from command import run
from nasight.cli._shared import seconds
from nasight.cli._table import app
from nasight.errors import RequestError
from nasight.runs import RunFolder

CELL = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"

ABOUT = {"settings": {}, "data": {"name": "digits", "fingerprint": "0", "inputs": [1, 8, 8], "classes": ["0", "1"]}}


@pytest.fixture
def folder(data_folder: Path) -> str:
    if not (data_folder / "nasbench201.csv.gz").is_file():
        pytest.skip("nasbench201.csv.gz is not in the data folder")
    return str(data_folder)


def invoke(*arguments: str) -> Any:
    result = CliRunner().invoke(app, arguments)
    if result.exception:
        raise result.exception
    return result


def test_a_query_gives_the_published_best_cell_of_cifar_100(folder: str) -> None:
    row = json.loads(invoke("query", CELL, "--folder", folder, "--json").stdout)
    assert row["ranks"] == {"c10": 3, "c100": 1, "in16": 26}
    assert round(row["datasets"]["c100"]["test200"], 2) == 73.51
    assert (row["of"], row["same"]) == (15_625, [])
    lines = invoke("query", CELL, "--folder", folder).stdout
    assert re.search(r"c100 +73\.51 +1 ", lines)
    assert "no other cell computes the same expression" in lines
    assert row["multiply_adds"] == 184_730_240
    assert "  multiplies   185 M (multiply-adds per image of 32 x 32)\n" in lines


def test_cells_of_the_same_expression_have_their_own_size(folder: str) -> None:
    lines = invoke("query", CELL.replace("nor_conv_3x3~2", "none~2"), "--folder", folder).stdout
    assert re.search(r"^    \|.*\|  0\.802 million, 114 M multiply-adds$", lines, re.MULTILINE)


def test_a_wrong_cell_says_what_is_wrong_with_it(folder: str) -> None:
    with pytest.raises(RequestError, match="unknown operation 'conv'"):
        invoke("query", CELL.replace("nor_conv_3x3~2", "conv~2"), "--folder", folder)


@pytest.mark.slow
def test_a_race_prints_a_table_and_writes_json_and_a_page_that_needs_no_network(folder: str, tmp_path: Path) -> None:
    runs = []
    for seed in (0, 1):
        run = RunFolder.create(
            tmp_path / f"run-{seed}",
            kind="search",
            about={
                "settings": {},
                "data": {"name": "digits", "fingerprint": "0", "inputs": [1, 8, 8], "classes": ["0", "1"]},
            },
        )
        result = {"space": "nasbench201", "method": "darts", "objective": "erm", "data": "digits", "seconds": 3.0}
        rest = {"run": "r", "seed": seed, "epochs": 1, "accuracy": 1.0, "entropy": 1.0}
        run.write_result({**result, **rest, "architecture": CELL})
        runs.append(str(run.path))
    out = tmp_path / "race"
    options = ["--methods", "rs,hyperband", "--trials", "12", "--processes", "1", "--budget", "1h", "--folder", folder]
    shown = invoke("race", *options, "--out", str(out), "--runs", *runs).stdout
    assert re.search(r"^rs +12 +9\d\.\d\d ± ", shown, re.MULTILINE)
    assert re.search(r"^darts \(erm\), digits +2 +\d\d\.\d\d ± 0\.00 +73\.51 ± 0\.00 ", shown, re.MULTILINE)
    assert re.search(r"^optimum +94\.37 +73\.51 +47\.31", shown, re.MULTILINE)
    written = json.loads((out / "race.json").read_text())
    assert [s["name"] for s in written["standings"]] == ["rs", "hyperband", "darts (erm), digits"]
    page = (out / "race.html").read_text()
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)
    assert "Plotly.newPlot" in page
    again = json.loads(invoke("race", *options, "--out", str(out), "--runs", str(tmp_path / "run-*"), "--json").stdout)
    assert again == written


def test_a_pattern_that_matches_no_run_is_refused(folder: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no run"):
        invoke("race", "--methods", "none", "--folder", folder, "--runs", str(tmp_path / "none-*"))


def test_folders_without_their_flag_are_refused(folder: str) -> None:
    with pytest.raises(RequestError, match="unexpected 'runs/a'; runs follow --runs"):
        invoke("race", "runs/a", "--folder", folder)


@pytest.mark.parametrize(
    ("text", "value"),
    [("20000s", 20_000), ("20000", 20_000), ("200m", 12_000), ("200 min", 12_000), ("1.5h", 5_400), ("1h30min", 5_400)],
)
def test_a_budget_is_read_with_its_units_and_a_number_alone_is_seconds(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "-5s", "ten", "5 parsecs", "5 mins", "1h30"])
def test_a_budget_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=f"such as 90s, 30m, 8h or 1h30m, got '{text}'"):
        seconds(text)


def test_a_budget_on_top_of_another_is_refused() -> None:
    with pytest.raises(RequestError, match="leave out the \\+"):
        seconds("+20m")


def test_a_simulated_cluster_prints_a_table_and_draws_a_figure(folder: str, tmp_path: Path) -> None:
    options = ["--methods", "find,rs", "--workers", "1,20", "--trials", "2", "--folder", folder]
    shown = invoke("race", *options, "--out", str(tmp_path / "a")).stdout
    assert re.search(r"^ +find +20 +[\d,.]+ ", shown, re.MULTILINE)
    written = json.loads((tmp_path / "a" / "cluster.json").read_text())
    assert [(s["method"], s["workers"]) for s in written["standings"]] == [
        ("find", 1), ("rs", 1), ("find", 20), ("rs", 20),
    ]  # fmt: skip
    assert "median seconds" in (tmp_path / "a" / "cluster.svg").read_text()
    assert json.loads(invoke("race", *options, "--json").stdout) == written


def test_find_without_workers_and_workers_that_are_no_numbers_are_refused(folder: str) -> None:
    with pytest.raises(RequestError, match="add --workers"):
        invoke("race", "--methods", "find", "--folder", folder)
    with pytest.raises(RequestError, match="whole numbers of at least 1"):
        invoke("race", "--methods", "find", "--folder", folder, "--workers", "1,x")


def test_a_simulated_cluster_races_find_and_every_search_that_many_workers_can_run_by_default(folder: str) -> None:
    found = json.loads(invoke("race", "--workers", "10", "--trials", "1", "--folder", folder, "--json").stdout)
    assert [s["method"] for s in found["standings"]] == ["find", "rs", "rea", "hyperband", "bohb"]


@pytest.mark.parametrize("option", [("--cluster", "local:2"), ("--processes", "2")])
def test_real_machines_are_refused_beside_simulated_workers(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("table", "race", "--workers", "10", *option) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"nasight: {option[0]} cannot stand beside --workers")
    assert said.count("\n") == 1


def test_a_simulated_cluster_without_a_method_is_refused(folder: str) -> None:
    with pytest.raises(RequestError, match="at least 1 method; there are find, rs, rea, hyperband, bohb"):
        invoke("race", "--methods", "none", "--workers", "10", "--folder", folder)
