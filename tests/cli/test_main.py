"""What every command shares: help, version, endings."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import nasight
from command import run
from nasight.options import SearchOptions, settings_of

COMMANDS = ("search", "train", "explain", "score", "kernel", "select", "cell", "reproduce", "export")
GROUPS = (("data", "get"), ("table", "query"), ("table", "race"), ("trust", "demo"), ("trust", "ranking"))


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS), *GROUPS], ids=" ".join)
def test_help_has_an_example_on_a_line_of_its_own(
    words: tuple[str, ...], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, flag) == 0
    shown = capsys.readouterr().out
    if words:
        starts = [line.strip() for line in shown.splitlines()]
        assert any(f"{line} ".startswith(f"nasight {' '.join(words)} ") for line in starts), shown


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"nasight {nasight.__version__}\n"


@pytest.mark.parametrize("words", [(), ("trust",), ("table",)], ids=" ".join)
def test_a_command_without_words_prints_its_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 0
    assert "Usage:" in capsys.readouterr().out


def test_square_brackets_of_a_help_text_reach_the_reader(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cell", "--help") == 0
    assert "[node, input, operation]" in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_the_options_of_a_search_stand_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("search", "--help") == 0
    shown = capsys.readouterr().out
    groups = ("What", "How long", "How large", "How it learns", "Limits", "Machine", "Output")
    places = [shown.index(f"─ {group} ─") for group in groups]
    assert places == sorted(places)


def test_an_unknown_command_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serch") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_signature_of_a_search_lists_every_setting_before_and_after_a_search(tmp_path: Path) -> None:
    before = inspect.signature(nasight.search)
    assert set(settings_of(SearchOptions)) <= set(before.parameters)
    assert all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in before.parameters.values())
    nasight.search("mlp", data="digits", preset="tiny", epochs=1, examples=100, out=tmp_path / "run")
    assert inspect.signature(nasight.search) == before
    assert inspect.isfunction(nasight.search)


def test_every_setting_of_a_search_is_described_in_a_sentence() -> None:
    for name, (_, about) in settings_of(SearchOptions).items():
        assert about.help.endswith("."), name


def test_dir_lists_what_there_is() -> None:
    assert set(nasight.__all__) <= set(dir(nasight))
