"""`nasight cell` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from command import run

FAST = ["--epochs", "1", "--channels", "2", "--cells", "2", "--examples", "60", "--test-examples", "40", "--seeds", "1"]


def test_json_has_width_and_depth_of_both_cells_and_the_drawing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("cell", "DARTS_V2", "--json", "--out", str(tmp_path)) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["normal"]["width"], found["normal"]["depth"]) == (3.5, 3)
    assert (found["reduce"]["width"], found["reduce"]["depth"]) == (2.5, 3)
    assert found["normal"]["standing"]["cells"] == 180
    assert found["parameters"] == 3_349_342
    assert found["svg"] == str(tmp_path / "DARTS_V2.svg")
    ElementTree.fromstring(Path(found["svg"]).read_text())


def test_a_drawing_is_written_where_it_is_asked_for_and_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("cell", "SNAS") == 0
    assert "width 4c, depth 2" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert run("cell", "SNAS", "--out", "drawn") == 0
    assert (tmp_path / "drawn" / "SNAS.svg").is_file()


def test_a_cell_published_on_imagenet_has_its_network_for_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cell", "PC_DARTS_imagenet", "--json") == 0
    found = json.loads(capsys.readouterr().out)["transferred"]
    assert (found["data"], found["parameters"], found["multiply_adds"]) == ("ImageNet", 5_342_464, 581_627_328)
    assert found["network"] == {"channels": 48, "cells": 14, "stem": 3, "inputs": [3, 224, 224], "classes": 1000}
    assert run("cell", "PC_DARTS_imagenet") == 0
    shown = capsys.readouterr().out
    assert "  ImageNet     5,342,464 parameters, 582 M multiply-adds with 48 channels and 14 cells, 224 x 224" in shown
    assert run("cell", "SNAS", "--json") == 0  # published with another number of channels there
    assert json.loads(capsys.readouterr().out)["transferred"] is None


def test_a_nasbench201_cell_has_one_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|"
    assert run("cell", text, "--json", "--out", str(tmp_path / "n.svg")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cell"]["width"], found["cell"]["depth"]) == (1, 3)
    assert found["architecture"] == text
    assert (tmp_path / "n.svg").is_file()


def test_the_widest_cell_keeps_the_operations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cell", "DARTS_V2", "--widest", "--json", "--out", str(tmp_path)) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["normal"]["width"], found["normal"]["depth"]) == (4, 2)
    assert found["name"] == "DARTS_V2 widest"


def test_the_cell_of_a_search_run_is_read_from_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--data", "digits", "--preset", "tiny", "--examples", "60", "--channels", "2", "--epochs", "1"]
    assert run("search", *small, "--threads", "1", "--out", str(tmp_path / "a"), "--json") == 0
    architecture = json.loads(capsys.readouterr().out)["architecture"]
    assert run("cell", str(tmp_path / "a"), "--json", "--out", str(tmp_path)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["architecture"] == architecture
    assert found["name"] == "a"


@pytest.mark.slow
def test_variants_are_trained_alike_and_a_second_call_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["cell", "DARTS_V2", "--variants", "2", "--widest", *FAST, "--workers", "1", "--out", str(tmp_path / "v")]
    assert run(*asked, "--json") == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    names = [row["name"] for row in found["cells"]]
    assert names == ["DARTS_V2", "DARTS_V2 widest", "DARTS_V2 connections 1", "DARTS_V2 connections 2"]
    assert "4 of 4 trainings finished" in shown.err
    assert run(*asked, "--json") == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == found
    assert "finished" not in again.err
    for picture in (found["svg"], found["curves"]):
        ElementTree.fromstring(Path(picture).read_text())


@pytest.mark.slow
def test_adapted_cells_are_trained_beside_their_originals_and_random_connections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [*FAST[:-1], "2", "--workers", "1", "--variants", "1", "--out", str(tmp_path / "a")]
    assert run("cell", "--adapted", "NASNet,SNAS", *small, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in found["adapted"]] == ["NASNet", "SNAS"]
    assert [(row["name"], row["index"]) for row in found["accuracies"]] == [
        ("NASNet", 0),
        ("NASNet", 1),
        ("SNAS", 0),
        ("SNAS", 1),
    ]
    assert len(found["trainings"]) == 12
    ElementTree.fromstring(Path(found["accuracies_svg"]).read_text())
    assert run("cell", "--adapted", "NASNet,SNAS", *small) == 0
    shown = capsys.readouterr()
    assert "finished" not in shown.err
    assert "95 % interval" in shown.out


@pytest.mark.slow
def test_a_landscape_is_mapped_around_a_network_that_is_trained_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [*FAST, "--landscape", "--points", "3", "--workers", "1", "--out", str(tmp_path / "l"), "--json"]
    cell = "|nor_conv_1x1~0|+|none~0|skip_connect~1|+|skip_connect~0|none~1|none~2|"
    assert run("cell", cell, *small) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["landscape"]["examples"] == 40
    assert all(Path(picture).is_file() for picture in found["pictures"])
    checkpoint = (tmp_path / "l" / "checkpoint-trained.pt").stat().st_mtime_ns
    assert run("cell", cell, *small) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert (tmp_path / "l" / "checkpoint-trained.pt").stat().st_mtime_ns == checkpoint


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["DARTS_V3"], "did you mean 'DARTS_V2'"),
        (["DARTS_V2", "--variants", "99999"], "not 99999"),
        (["DARTS_V2", "--variants", "2", "--kind", "x"], "connections or operations, got 'x'"),
        (["DARTS_V2", "--variants", "2", "--lr", "fast"], "--lr must be numbers joined by commas, got 'fast'"),
        (["DARTS_V2", "--variants", "2", "--landscape"], "one of --variants and --landscape"),
        ([], "give one cell, or several with --adapted"),
        (["SNAS", "--adapted", "all"], "give one cell, or several with --adapted"),
        (["--adapted", "SNAS,,ENAS"], "joined by commas, or all, got 'SNAS,,ENAS'"),
        (["--adapted", "SNAS", "--kind", "operations"], "--adapted trains cells, their widest forms"),
        (["--adapted", "SNAS", "--regularize"], "8x8 are too small for the auxiliary head"),
        (["DARTS_V2", "--variants", "2", "--seeds", "0"], "--seeds must be at least 1, got 0"),
    ],
)
def test_a_wrong_request_ends_with_2_and_one_sentence(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("cell", *arguments) == 2
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.out == ""
    assert shown.err.count("\n") == 1
