"""What every command shares: help, version, endings."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import nasight
from command import run
from nasight.cli import app
from nasight.options import GROUPS, SearchOptions, TrainOptions, settings_of

COMMANDS = ("search", "train", "explain", "score", "kernel", "select", "cell", "reproduce", "export")
INNER = (("data", "get"), ("table", "query"), ("table", "race"), ("trust", "demo"), ("trust", "ranking"))


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS), *INNER], ids=" ".join)
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


@pytest.mark.parametrize("words", ["find", "search", "train", "explain", "reproduce", "table race", "trust ranking"])
def test_the_options_of_a_command_stand_in_groups_whose_order_is_the_same_everywhere(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words.split(), "--help") == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"─ {group} ─") for group in GROUPS if f"─ {group} ─" in shown]
    assert len(places) >= 3
    assert places == sorted(places)


def options_of(*words: str) -> dict[str, Any]:
    """Name -> (its flags, what it means) of every option of a command."""
    command: Any = get_command(app)
    for word in words:
        command = command.commands[word]
    return {p.name: (p.opts, p.secondary_opts, p.help, p.metavar) for p in command.params if hasattr(p, "help")}


@pytest.mark.parametrize(
    ("one", "other", "but"),
    [
        # What helps images is measured by a find; lengths and folders are of different things.
        (("find",), ("search",), {"augment", "epochs", "method", "out", "resolution", "resume", "space"}),
        # In a training everything begins from the run; its limits choose from a find.
        (
            ("search",),
            ("train",),
            {"data", "space", "preset", "epochs", "validation", "resolution", "lr", "weight_decay", "clip", "threads"}
            | {"max_params", "max_latency", "seed", "out", "resume"},
        ),
        (("explain",), ("trust", "ranking"), set()),
    ],
    ids=["find and search", "search and train", "explain and trust ranking"],
)
def test_commands_describe_the_options_that_they_share_in_the_same_words(
    one: tuple[str, ...], other: tuple[str, ...], but: set[str]
) -> None:
    first, second = options_of(*one), options_of(*other)
    shared = set(first) & set(second) - but
    assert len(shared) >= 9
    assert {name: first[name] for name in shared} == {name: second[name] for name in shared}


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


@pytest.mark.parametrize("options", [SearchOptions, TrainOptions])
def test_every_setting_is_described_in_a_sentence_and_listed_with_its_group(options: type) -> None:
    about = [setting for _, setting in settings_of(options).values()]
    assert all(setting.help.endswith(".") for setting in about)
    places = [GROUPS.index(setting.group) for setting in about]
    assert places == sorted(places)


def test_dir_lists_what_there_is() -> None:
    assert set(nasight.__all__) <= set(dir(nasight))
