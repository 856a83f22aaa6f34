import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from command import run
from nasight.searching import METHODS, resolve
from nasight.spaces import load

FAST = [
    "--data",
    "digits",
    "--preset",
    "tiny",
    "--examples",
    "200",
    "--channels",
    "4",
    "--epochs",
    "1",
    "--threads",
    "1",
]


def test_json_is_one_object_on_standard_output_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("search", *FAST, "--out", str(tmp_path / "r"), "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) >= {"run", "space", "method", "architecture", "accuracy", "entropy", "seconds"}
    assert result["run"] == str(tmp_path / "r")
    assert result["architecture"].count("|") == 9


def test_the_summary_names_the_cell_the_accuracy_and_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("search", *FAST, "--out", str(tmp_path / "r")) == 0
    shown = capsys.readouterr()
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert result["architecture"] in shown.out
    assert f"{result['accuracy']:.2f} %" in shown.out
    assert f"nasight train {tmp_path / 'r'} --seeds 3" in shown.out
    assert "epoch 1/1" in shown.err
    assert "epoch" not in shown.out.replace("1 epoch,", "")


def test_the_picture_is_well_formed_and_shows_every_decision(tmp_path: Path) -> None:
    assert run("search", *FAST, "--out", str(tmp_path / "r")) == 0
    root = ElementTree.fromstring((tmp_path / "r" / "search.svg").read_text())
    texts = " ".join("".join(element.itertext()) for element in root)
    assert all(name in texts for name in ("0->1", "0->2", "1->2", "0->3", "1->3", "2->3"))


def test_resume_of_a_finished_run_prints_its_result_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("search", *FAST, "--out", str(tmp_path / "r"), "--json")
    first = capsys.readouterr().out
    assert run("search", "--resume", str(tmp_path / "r"), "--json") == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "dart"], "there is no method 'dart'"),
        (["--space", "nasbench301"], "there is no space 'nasbench301'"),
        (["--data", "nothing.npz"], "nothing.npz"),
        (["--epochs", "many"], "Invalid value for '--epochs'"),
        (["--epochs", "0"], "setting 'epochs' should be greater than or equal to 1, got 0"),
        (["--objective", "best"], "has no objective 'best'"),
        (["--resume", "nowhere"], "nowhere is not a run"),
        (["--bogus"], "--bogus"),
        (["--space", "mlp", "--method", "pc-darts"], "weighs the edges"),
        (["--space", "mlp", "--channels", "8"], "space 'mlp' has no size 'channels'"),
    ],
)
def test_a_wrong_request_ends_with_2_and_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run("search", "--out", str(tmp_path / "r"), "--preset", "tiny", *arguments) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert not (tmp_path / "r").exists()


def test_list_prints_every_method_with_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("search", "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["method", "relaxation", "geometry", "objectives", "paper"]
    rows = {line.split()[0]: line for line in lines[1:] if line}
    assert "Softmax (adam)" in rows["darts"]
    assert "Simplex (entropy)" in rows["gaea-darts"]
    assert rows["darts"].split()[1] == rows["gaea-darts"].split()[1] == "Mixture"


@pytest.mark.parametrize("name", ["nasbench201", "darts", "nasbench1shot1-1", "mlp"])
def test_list_tells_the_objective_that_a_search_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("search", "--list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["methods"]
    space = load(name)
    told = {row["method"]: row["default"].get(space.family, row["objectives"][0]) for row in rows}
    taken = {
        method.name: resolve(method, space, data="digits").objective
        for method in METHODS.values()
        if space.edge_weights or not method.relaxation.edges
    }
    assert len(taken) > 10
    assert {method: told[method] for method in taken} == taken


def test_help_has_an_example() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "nasight", "search", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "nasight search --resume runs/b" in " ".join(shown.split())


def test_importing_nasight_and_asking_for_its_version_takes_no_torch() -> None:
    code = "import sys, nasight; print('torch' in sys.modules, nasight.__version__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split()[0] == "False"


def test_a_user_s_own_module_is_searched_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "from nasight import Choice\n"
        "def build():\n"
        "    act = Choice({'relu': nn.ReLU(), 'tanh': nn.Tanh()})\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), act, nn.Linear(16, 10))\n"
    )
    arguments = ["--space", f"{tmp_path / 'mine.py'}:build", "--data", "digits", "--epochs", "2", "--threads", "1"]
    assert run("search", *arguments, "--preset", "tiny", "--out", str(tmp_path / "r"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["architecture"] in ("2=relu", "2=tanh")
    assert run("search", "--resume", str(tmp_path / "r"), "--json") == 2, "a folder alone does not run code"
    assert run("search", "--resume", str(tmp_path / "r"), "--json", *arguments[:2]) == 0
