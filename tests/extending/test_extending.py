"""Everything that can be added from outside, added from outside: no file of the library knows of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch

import nasight
from command import run as command
from nasight.data import FORMATS
from nasight.data import load as load_data
from nasight.export import same_outputs
from nasight.kernels import SCORES
from nasight.report import SECTIONS
from nasight.searching import METHODS
from nasight.spaces import SPACES, load
from nasight.tables import TABLES

PLUGINS = Path(__file__).parent / "plugins"
MOST_LINES = 60
ENTRY_POINTS = """
[nasight.spaces]
pooled = outside_space:Pooled

[nasight.methods]
sharpened = outside_method:METHOD

[nasight.scores]
activity = outside_score:SCORE

[nasight.tables]
pooled-table = outside_table:load

[nasight.data]
pgmset = outside_data:FORMAT

[nasight.sections]
lead = outside_section:SECTION
"""
REGISTRIES = {
    "pooled": SPACES,
    "sharpened": METHODS,
    "activity": SCORES,
    "pooled-table": TABLES,
    "pgmset": FORMATS,
    "lead": SECTIONS,
}
SEARCH = ("search", "--space", "pooled", "--preset", "tiny", "--epochs", "2", "--threads", "1")


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All of them, registered in this process and forgotten afterwards."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    nasight.register(import_module("outside_space").Pooled)
    nasight.register(import_module("outside_method").METHOD)
    nasight.register(import_module("outside_score").SCORE)
    nasight.register(import_module("outside_table").load())
    nasight.register(import_module("outside_data").FORMAT)
    nasight.register(import_module("outside_section").SECTION)
    yield
    for name, registry in REGISTRIES.items():
        registry.remove(name)


@pytest.fixture
def images(tmp_path: Path) -> str:
    """Bright and dark images in the format from outside."""
    generator = torch.Generator().manual_seed(0)
    lines = []
    for i in range(160):
        pixels = torch.rand(36, generator=generator) + (i % 2)
        lines.append(" ".join([str(i % 2), "6", *(f"{value:.3f}" for value in pixels.tolist())]))
    (tmp_path / "images.pgmset").write_text("\n".join(lines))
    return str(tmp_path / "images.pgmset")


@pytest.fixture
def found(added: None, images: str, tmp_path: Path) -> str:
    """A search in the space, with the method, on the data from outside."""
    place = str(tmp_path / "run")
    assert command(*SEARCH, "--method", "sharpened", "--data", images, "--out", place) == 0
    return place


@pytest.mark.parametrize("file", sorted(PLUGINS.glob("*.py")), ids=lambda path: path.stem)
def test_what_comes_from_outside_fits_on_a_screen(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= MOST_LINES


def test_a_space_a_method_and_data_from_outside_are_searched(found: str) -> None:
    run = nasight.Run(found)
    assert run.settings.method == "sharpened"
    assert run.settings.objective == "two-to-one"
    assert run.architecture in load("pooled")
    assert {name: tuple(weights.shape) for name, weights in run.weights.items()} == {"choices": (4,)}


def test_every_mixture_of_the_table_searches_the_space_from_outside(added: None, images: str, tmp_path: Path) -> None:
    for name in ("darts", "gaea-darts", "gdas", "rs-ws", "enas", "asng", "snas", "proxyless", "setn"):
        place = tmp_path / name
        assert command(*SEARCH, "--method", name, "--data", images, "--out", str(place)) == 0
        assert nasight.Run(place).architecture in load("pooled")


@pytest.mark.slow
def test_what_was_found_is_trained_in_other_processes_too(found: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("train", found, "--preset", "tiny", "--epochs", "1", "--seeds", "2", "--workers", "2", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["accuracy"]) == 2


def test_it_is_explained_on_a_page_with_the_section_from_outside(
    found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert command("explain", found) == 0
    assert "decisions safe" in capsys.readouterr().out
    page = (Path(found) / "report.html").read_text()
    assert "The arg max has not changed for" in page
    assert 'href="#lead"' in page
    assert 'aria-label="Epochs in which the arg max changed"' in page


def test_it_is_scored_by_the_score_from_outside(
    added: None, images: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "scores")
    flags = ("--metric", "activity,params", "--data", images, "--all", "--workers", "2", "--out", out, "--json")
    assert command("score", "--space", "pooled", *flags) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    assert len(rows) == 4
    # A convolution with its norm and ReLU (3 x 8 x 36 numbers), a pool and its flat form (2 x 8), two classes.
    assert {row["activity"] for row in rows} == {3 * 8 * 36 + 2 * 8 + 2}


def test_its_cell_is_drawn_with_width_and_depth(found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert command("cell", found, "--out", str(tmp_path / "cell.svg"), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["cell"]["width"], told["cell"]["depth"]) == (1.0, 2)
    assert "<svg" in (tmp_path / "cell.svg").read_text()


def test_it_is_exported_as_source_and_as_a_graph(found: str, tmp_path: Path) -> None:
    files = ("--python", str(tmp_path / "net.py"), "--torch-export", str(tmp_path / "net.pt2"))
    assert command("export", found, *files) == 0
    names: dict[str, object] = {"__name__": "exported"}
    exec((tmp_path / "net.py").read_text(), names)
    network = names["Network"]()  # type: ignore[operator]
    run = nasight.Run(found)
    plain = run.space.network(run.architecture, run.data.inputs, 2)
    network.load_state_dict(plain.state_dict())
    assert same_outputs(plain, network, run.data.inputs) == 0


def test_the_table_from_outside_is_queried_and_raced_on(added: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("table", "query", "kernel=wide, pool=mean", "--table", "pooled-table", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["datasets"]["c10"]["test200"] == 93.0
    assert told["ranks"]["c10"] == 1
    flags = ("--methods", "rs,rea", "--budget", "2000s", "--trials", "4", "--workers", "1", "--json")
    assert command("table", "race", "--table", "pooled-table", *flags) == 0
    assert "rs" in capsys.readouterr().out


def test_the_format_from_outside_is_named_where_no_format_reads_a_file(added: None, tmp_path: Path) -> None:
    (tmp_path / "x.unknown").write_text("?")
    with pytest.raises(nasight.RequestError, match="pgmset"):
        load_data(str(tmp_path / "x.unknown"))


@pytest.mark.slow
def test_a_package_adds_all_of_them_by_entry_points(images: str, tmp_path: Path) -> None:
    about = tmp_path / "site" / "outside-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    path = os.pathsep.join([str(PLUGINS), str(tmp_path / "site")])
    script = (
        "import nasight, sys\n"
        "from nasight import spaces, searching, kernels, tables, data, report\n"
        "assert 'pooled' in spaces.names() and 'sharpened' in searching.METHODS and 'activity' in kernels.SCORES\n"
        "assert 'pooled-table' in tables.TABLES and 'pgmset' in data.FORMATS and 'lead' in report.SECTIONS\n"
        f"run = nasight.search('pooled', 'sharpened', {images!r}, preset='tiny', epochs=1, out='run')\n"
        "print(run.space.format(run.architecture))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kernel=")


def test_a_broken_package_is_named_when_its_name_is_asked_for_and_stops_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[nasight.methods]\nwrong = no_such_module:METHOD\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(METHODS, "_looked", False)
    with pytest.raises(nasight.RequestError, match="method 'wrong' of the package 'broken' cannot be loaded"):
        METHODS["wrong"]
    assert "darts" in list(METHODS)
    assert "wrong" not in METHODS
    METHODS._broken.clear()


@pytest.mark.parametrize("thing", [3, "space", None, torch.nn.Identity])
def test_what_is_none_of_these_is_refused(thing: object) -> None:
    with pytest.raises(nasight.RequestError, match="register takes a Space, a Method"):
        nasight.register(thing)


def test_a_name_that_is_taken_is_refused(added: None) -> None:
    with pytest.raises(nasight.RequestError, match="there is a method 'sharpened' already"):
        nasight.register(import_module("outside_method").METHOD)


def test_a_space_that_is_registered_ready_made_is_found_again_by_its_runs(tmp_path: Path) -> None:
    ready = load("nasbench201")
    nasight.register(ready, "ready-made")
    try:
        settings = {"preset": "tiny", "epochs": 1, "examples": 100, "size": {"channels": 4, "cells": 1}, "threads": 1}
        nasight.search("ready-made", "darts", "digits", out=tmp_path / "run", **settings)
        assert nasight.Run(tmp_path / "run").architecture in ready
        with pytest.raises(nasight.RequestError, match="registered ready-made and does not take none=False"):
            load("ready-made", none=False)
    finally:
        SPACES.remove("ready-made")


def test_a_method_keeps_the_name_under_which_it_is_found(added: None) -> None:
    nasight.register(import_module("outside_method").METHOD, "sharper")
    try:
        assert METHODS["sharper"].name == "sharper"
    finally:
        METHODS.remove("sharper")
    with pytest.raises(nasight.RequestError, match="the name of a method without training"):
        nasight.register(import_module("outside_method").METHOD, "eigen")


def test_a_space_that_cannot_be_made_without_options_stops_no_drawing(found: str) -> None:
    nasight.register(lambda depth: load("mlp", layers=depth), "needs-an-option")
    try:
        assert command("cell", found) == 0
    finally:
        SPACES.remove("needs-an-option")
