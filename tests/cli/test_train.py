import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nasight.cli import app
from nasight.data import load
from nasight.errors import RequestError
from nasight.runs import DataRecord, RunFolder

CELL = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"
TINY = ["--preset", "tiny", "--epochs", "1", "--channels", "4", "--workers", "1"]


def run(*arguments: str) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["train", *arguments], catch_exceptions=False, standalone_mode=False)
    assert result.exit_code == 0
    return result.stdout, result.stderr


@pytest.fixture
def search(tmp_path: Path) -> Path:
    """A finished search, as its folder tells of it."""
    settings = {"space": "nasbench201", "space_options": {"none": True}, "data": "digits"}
    about = {"settings": settings, "data": DataRecord.of(load("digits")).to_dict()}
    folder = RunFolder.create(tmp_path / "search", kind="search", about=about)
    asked = {"run": "r", "method": "darts", "objective": "bilevel", "data": "digits", "seed": 0, "epochs": 1}
    found = {"space": "nasbench201", "architecture": CELL, "accuracy": 50.0, "entropy": 1.0, "seconds": 1.0}
    folder.write_result({**asked, **found})
    return folder.path


@pytest.mark.slow
def test_json_is_one_object_with_every_seed_and_all_else_goes_to_standard_error(search: Path) -> None:
    out, err = run(str(search), "--seeds", "2", "--json", *TINY)
    value = json.loads(out)
    assert (value["architecture"], value["space"], value["seeds"], value["epochs"]) == (CELL, "nasbench201", [0, 1], 1)
    assert value["mean"] == pytest.approx(np.mean(value["accuracy"]))
    assert value["spread"] == pytest.approx(np.std(value["accuracy"], ddof=1))
    assert Path(value["out"]).parent == search / "train"
    assert (Path(value["out"]) / "seed-1" / "result.json").is_file()
    assert err.count("epoch 1/1") == 2


@pytest.mark.slow
def test_the_text_names_each_seed_the_mean_and_the_spread(tmp_path: Path) -> None:
    out, _ = run("--space", "nasbench201", "--arch", CELL, "--seed-list", "4,7", "--out", str(tmp_path / "o"), *TINY)
    assert "seed 4" in out
    assert "seed 7" in out
    assert " ± " in out
    assert "over 2 seeds, on the test part" in out


def test_the_users_own_file_of_gray_images_with_two_classes_is_trained_on(tmp_path: Path) -> None:
    y = np.arange(60) % 2
    x = np.random.default_rng(0).normal(size=(60, 28, 28)) + 2 * y[:, None, None] * np.eye(28)
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    words = ["--space", "nasbench201", "--arch", CELL, "--data", str(tmp_path / "mine.npz"), "--seeds", "1"]
    value = json.loads(run(*words, "--out", str(tmp_path / "o"), "--json", *TINY)[0])
    assert value["judged_by"] == "12 held-out training rows (20%)"
    assert value["spread"] is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "a RUN, or --space and --arch is missing"),
        (["--space", "nasbench201"], "--arch is missing"),
        (["nowhere"], "nowhere is not a run"),
        (["--space", "nasbench201", "--arch", "|x~0|"], "has 3 parts joined by"),
        (["--space", "nasbench201", "--arch", CELL, "--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["--space", "nasbench201", "--arch", CELL, "--seed-list", "1;2"], "joined by commas, got '1;2'"),
        (["--space", "nasbench201", "--arch", CELL, "--preset", "big"], "no preset 'big'"),
        (["--space", "nasbench201", "--arch", CELL, "--width", "4"], "no size 'width'"),
        (["--space", "nasbench201", "--arch", CELL, "--data", "cifar"], "no data set 'cifar'"),
        (["--space", "nasbench201", "--arch", CELL, "--workers", "0"], "at least 1 worker, got 0"),
    ],
)
def test_a_wrong_request_is_refused_with_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match=sentence):
        run(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_run_whose_data_has_changed_is_not_retrained_unasked(search: Path) -> None:
    about = RunFolder(search).about
    about["data"]["fingerprint"] = "0" * 64
    (search / "run.json").write_text(json.dumps(about))
    with pytest.raises(RequestError, match="its content has changed"):
        run(str(search), *TINY)


def test_an_unfinished_search_has_nothing_to_train(search: Path) -> None:
    (search / "result.json").unlink()
    with pytest.raises(RequestError, match="not finished; resume with: nasight search --resume"):
        run(str(search), *TINY)


def test_other_words_for_random_changes_are_another_training_with_a_folder_of_its_own(search: Path) -> None:
    asked = [(), ("--augment", "shift"), ("--augment", "crop,flip,jitter"), ("--augment", "shift")]
    found = [
        json.loads(run(str(search), "--examples", "60", "--seeds", "1", "--json", *words, *TINY)[0]) for words in asked
    ]
    assert len({value["out"] for value in found}) == 3
    assert found[1] == found[3]
