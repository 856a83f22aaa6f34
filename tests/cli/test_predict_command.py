"""`nasight predict`: files in, classes out, and one sentence for whatever is wrong."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from command import run
from nasight.data import load as load_data
from nasight.studies import load_model, trained_model, write_model
from nasight.training import train

FAST: dict[str, Any] = {"preset": "tiny", "epochs": 2}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a model."""
    place = tmp_path_factory.mktemp("run") / "a"
    train("mlp", "relu,tanh,swish/1,0", "digits", out=place, **FAST)
    write_model(place / "model", trained_model(place))
    return place


@pytest.fixture
def photos(tmp_path: Path) -> list[str]:
    """Eight digits as photos of several sizes, in a folder with a sub-folder."""
    (tmp_path / "new" / "more").mkdir(parents=True)
    (tmp_path / "new" / "notes.txt").write_text("no image")
    (tmp_path / "new" / ".hidden.png").touch()
    x = load_data("digits").train_x
    files = list[str]()
    for number in range(8):
        file = tmp_path / "new" / ("more" if number > 5 else "") / f"{number}.{'jpg' if number % 2 else 'png'}"
        Image.fromarray((x[number, 0].numpy() * 255).astype(np.uint8)).resize((8 + number, 16)).save(file)
        files.append(str(file))
    return files


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_each_file_gets_a_line_with_its_class_and_probability(
    done: Path, photos: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("predict", str(done), *photos, "--batch-size", "3") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found, wanted = lines(shown.out), load_model(done).probabilities(photos)
    assert list(found[0]) == ["file", "class", "probability"]
    assert [row["file"] for row in found] == photos
    assert [row["class"] for row in found] == [str(label) for label in wanted.argmax(1)]
    np.testing.assert_allclose([float(row["probability"]) for row in found], wanted.max(1), atol=1e-6)


def test_json_is_one_object_with_every_probability(
    done: Path, photos: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("predict", str(done), *photos, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    wanted = load_model(done).probabilities(photos)
    assert (said["run"], said["model"], said["failed"]) == (str(done), str(done / "model"), [])
    for each, row in zip(said["predictions"], wanted, strict=True):
        assert each["class"] == next(iter(each["probabilities"]))
        np.testing.assert_allclose([each["probabilities"][str(label)] for label in range(10)], row, atol=1e-6)
    assert run("predict", str(done), photos[0], "--json", "--top", "2") == 0
    assert len(json.loads(capsys.readouterr().out)["predictions"][0]["probabilities"]) == 2


def test_a_folder_is_walked_for_images_and_the_lines_go_into_a_file(
    done: Path, photos: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.csv"
    assert run("predict", str(done / "model"), str(tmp_path / "new"), "--top", "3", "--csv", str(file)) == 0
    assert capsys.readouterr().out == ""
    found = lines(file.read_text())
    assert sorted(row["file"] for row in found) == sorted(photos)
    assert list(found[0])[1:] == ["class", "probability", "class 2", "probability 2", "class 3", "probability 3"]


def test_rows_of_a_file_are_numbered(done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = load_data("digits").test_x, load_data("digits").test_y
    assert x is not None
    assert y is not None
    np.savez(tmp_path / "x.npz", x=x)
    assert run("predict", str(done), str(tmp_path / "x.npz")) == 0
    found = lines(capsys.readouterr().out)
    assert [int(row["row"]) for row in found] == list(range(len(x)))
    # The accuracy of these answers is the one that the training reported.
    right = np.mean([int(row["class"]) == label for row, label in zip(found, y.tolist(), strict=True)])
    assert 100 * right == pytest.approx(json.loads((done / "result.json").read_text())["accuracy"])


def test_a_broken_file_is_named_the_others_are_told_and_the_command_ends_with_2(
    done: Path, photos: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(Path(photos[1]).read_bytes()[:200])
    assert run("predict", str(done), photos[0], str(broken), photos[2]) == 2
    shown = capsys.readouterr()
    assert [row["file"] for row in lines(shown.out)] == [photos[0], photos[2]]
    first, last = shown.err.splitlines()
    assert first.startswith(f"nasight: {broken} cannot be read as an image")
    assert last == "nasight: 1 of 3 files cannot be read; the others are done"
    assert run("predict", str(done), str(broken), photos[2], "--json") == 2
    said = json.loads(capsys.readouterr().out)
    assert [each["file"] for each in said["failed"]] == [str(broken)]
    assert [each["file"] for each in said["predictions"]] == [photos[2]]


def test_a_finished_training_needs_no_model_folder(
    done: Path, photos: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(done, tmp_path / "train" / "tiny" / "seed-0", ignore=shutil.ignore_patterns("model"))
    assert run("predict", str(done), *photos) == 0
    wanted = capsys.readouterr().out
    before = sorted(tmp_path.rglob("*"))
    assert run("predict", str(tmp_path / "train"), *photos) == 0
    assert capsys.readouterr().out == wanted
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_what_a_search_on_one_s_own_file_found_is_used_where_it_was_trained(
    photos: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    y = np.arange(60) % 2
    x = np.random.default_rng(0).integers(0, 100, (60, 8, 8), dtype=np.uint8) + (100 * y[:, None, None]).astype(
        np.uint8
    )
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    words = ["--data", str(tmp_path / "mine.npz"), "--space", "mlp", "--preset", "tiny", "--epochs", "1"]
    assert run("search", *words, "--threads", "1", "--out", str(tmp_path / "run")) == 0
    assert run("predict", str(tmp_path / "run"), photos[0]) == 2
    assert "no finished training; nasight train makes one" in capsys.readouterr().err
    few = ["--preset", "tiny", "--epochs", "1", "--seeds", "1", "--workers", "1"]
    assert run("train", str(tmp_path / "run"), *few) == 0
    capsys.readouterr()
    assert run("predict", str(tmp_path / "run"), *photos) == 0
    assert {row["class"] for row in lines(capsys.readouterr().out)} <= {"0", "1"}


def test_a_network_of_one_s_own_file_is_run_when_the_user_names_it(
    photos: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(
        "from torch import nn\nfrom nasight import Choice\n"
        "def build():\n    act = Choice({'relu': nn.ReLU(), 'tanh': nn.Tanh()}, name='act')\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 4), act, nn.Linear(4, 10))\n"
    )
    space = f"{tmp_path / 'own.py'}:build"
    train(space, "act=tanh", "digits", out=tmp_path / "run", preset="tiny", epochs=1, examples=60)
    assert run("predict", str(tmp_path / "run"), photos[0]) == 2
    assert "if you trust it, name it: --space FILE.py:NAME" in capsys.readouterr().err
    assert run("predict", str(tmp_path / "run"), photos[0], "--space", space) == 0
    assert len(lines(capsys.readouterr().out)) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "a.png"], "there is no folder nowhere"),
        (["RUN", "b.png"], "there is no file or folder 'b.png'"),
        (["RUN", "empty"], "there are no images in 'empty'"),
        (["RUN", "a.png", "--top", "0"], "--top must be at least 1, got 0"),
        (["RUN", "a.png", "--batch-size", "0"], "at least 1, got 0"),
        (["RUN", "a.png", "--json", "--csv", "o.csv"], "give --json or --csv, not both"),
        (["RUN", "a.png", "--csv", "no/such/o.csv"], "there is no folder 'no/such'"),
        (["empty", "a.png"], "holds no model and no finished training"),
        (["RUN"], "Missing argument"),
    ],
)
def test_a_wrong_request_ends_with_2_and_one_sentence(
    arguments: list[str],
    said: str,
    done: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    assert run("predict", *[str(done) if word == "RUN" else word for word in arguments]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_a_stranger_s_class_names_do_not_command_the_terminal(
    done: Path, photos: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(done / "model", tmp_path / "model")
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    about["classes"] = [f"\x1b[2J{name}" for name in about["classes"]]
    (tmp_path / "model" / "model.json").write_text(json.dumps(about))
    assert run("predict", str(tmp_path), photos[0]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J" in out


def test_a_damaged_model_ends_with_2(done: Path, photos: list[str], tmp_path: Path, capsys: Any) -> None:
    shutil.copytree(done / "model", tmp_path / "model")
    with (tmp_path / "model" / "weights.safetensors").open("ab") as file:
        file.write(b"x")
    assert run("predict", str(tmp_path), photos[0]) == 2
    assert capsys.readouterr().err.count("\n") == 1
