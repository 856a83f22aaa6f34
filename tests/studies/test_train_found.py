"""What a search found, trained from Python as on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nasight
from command import run as command
from nasight.data import listening
from nasight.studies import train_found, trainable

ARCH = "relu,tanh/0"


class Heard:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, what: str, done: int, total: int) -> None:
        pass


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("found") / "search"
    return nasight.search("mlp", data="digits", preset="tiny", epochs=1, examples=100, threads=1, out=out).path


def test_the_command_reads_the_seeds_that_the_function_trained(
    search: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = trainable(search, preset="tiny")
    summary = train_found(found, seeds=[3], workers=1, epochs=2, size={"width": 8})
    written = (Path(summary.out or "") / "seed-3" / "result.json").stat().st_mtime_ns
    asked = ("--preset", "tiny", "--epochs", "2", "--width", "8", "--seed-list", "3", "--workers", "1", "--json")
    assert command("train", str(search), *asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {name: value for name, value in json.loads(json.dumps(summary.to_dict())).items() if name in told}
    assert (Path(told["out"]) / "seed-3" / "result.json").stat().st_mtime_ns == written


def test_settings_change_those_that_were_found_and_sizes_that_are_not_named_stay(tmp_path: Path) -> None:
    named = trainable(space="mlp", arch=ARCH, preset="tiny", out=tmp_path / "a", layers=3)
    once = named.changed(size={"width": 8}, lr=0.5)
    twice = once.changed(epochs=7)
    assert (twice.resolved.size["width"], twice.resolved.lr, twice.resolved.epochs) == (8, 0.5, 7)
    assert named.resolved.size["width"] != 8
    assert once.changed(size={"width": 4}).resolved.size["width"] == 4


@pytest.mark.parametrize(("asked", "applied"), [("shift,flip", True), (False, False)])
def test_words_for_random_changes_are_a_training_with_them(asked: str | bool, applied: bool, tmp_path: Path) -> None:
    named = trainable(space="mlp", arch=ARCH, preset="tiny", out=tmp_path / "a", layers=3)
    assert named.changed(augment=asked, metric="balanced accuracy").resolved.augment is applied


def test_a_training_that_goes_on_on_another_device_says_so(search: Path) -> None:
    found = trainable(search, preset="tiny", out=search / "moved")
    summary = train_found(found, seeds=[0], workers=1, epochs=1, device="cpu")
    place = Path(summary.out or "") / "seed-0"
    about = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps(about | {"device": "cuda:0"}))
    (place / "result.json").unlink()
    heard = Heard()
    with listening(heard):
        train_found(found, seeds=[0], workers=1, epochs=1, device="cpu")
    assert any(text.startswith("seed-0: started on cuda, resumed on cpu") for text in heard.notes)
