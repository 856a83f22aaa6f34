import shlex
from pathlib import Path

import pytest

import nasight
from command import run
from nasight.studies import command_of

SAME = {"preset", "threads", "seed", "size", "data", "space", "space_options", "examples", "batch_size", "validation"}


def again(words: str) -> nasight.Run:
    name, *arguments = shlex.split(words)
    assert name == "nasight"
    assert run(*arguments) == 0
    return nasight.Run(arguments[arguments.index("--out") + 1])


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> nasight.Run:
    out = tmp_path_factory.mktemp("a folder with spaces") / "a"
    words = "search --data digits --method darts --preset tiny --examples 150 --epochs 1 --channels 2 --arch-lr 0.02"
    assert run(*words.split(), "--batch-size", "30", "--seed", "3", "--threads", "1", "--out", str(out)) == 0
    return nasight.Run(out)


def test_the_command_makes_the_same_search(first: nasight.Run) -> None:
    second = again(command_of(first, out=str(first.path.with_name("b"))))
    assert second.settings == first.settings
    assert second.result["weights"] == first.result["weights"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--space mlp --width 4 --method asng --no-weights-first", {"weights_first": False}),
        ("--space mlp --width 4 --method darts --weights-first", {"weights_first": True}),
        (
            "--space nasbench1shot1-1 --channels 2 --method rs-ws --sums --candidate-rows 8",
            {"candidate_rows": 8, "space_options": {"sums": True}},
        ),
    ],
)
def test_the_command_names_the_order_of_steps_and_how_candidates_are_judged(
    words: str, expected: dict[str, object], tmp_path: Path
) -> None:
    usual = f"--data digits --preset tiny --examples 60 --epochs 1 --batch-size 8 --threads 1 --out {tmp_path}/a"
    assert run("search", *words.split(), *usual.split()) == 0
    made = nasight.Run(tmp_path / "a")
    assert made.settings.model_dump(include=set(expected)) == expected
    assert again(command_of(made, out=str(tmp_path / "b"))).settings == made.settings


@pytest.mark.slow
def test_a_longer_search_and_another_method_keep_all_other_settings(first: nasight.Run) -> None:
    longer = again(command_of(first, epochs=2, out=str(first.path.with_name("c")))).settings
    other = again(command_of(first, method="gaea-darts", out=str(first.path.with_name("d")))).settings
    assert (longer.epochs, longer.schedule_epochs, longer.arch_lr) == (2, 2, 0.02)
    assert (other.method, other.epochs) == ("gaea-darts", 1)
    assert other.arch_lr != 0.02
    for found in (longer, other):
        assert found.model_dump(include=SAME) == first.settings.model_dump(include=SAME)


def test_what_explain_advises_can_be_typed(first: nasight.Run) -> None:
    commands = [advice.command for advice in nasight.explain(first).advice if advice.command]
    assert commands
    assert all(words.startswith(("nasight search --space", "nasight explain ")) for words in commands)
