"""From a folder of mixed photos to a run, on the command line: what is said, kept and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command import run
from nasight.searching import Run

TINY = ("--preset", "tiny", "--epochs", "1", "--channels", "2", "--cells", "1", "--threads", "1")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASIGHT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Bright and dark photos of different sizes."""
    rng = np.random.default_rng(0)
    for name, low in (("bright", 150), ("dark", 0)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for row in range(24):
            pixels = rng.integers(low, low + 100, (20 + row, 30 - row % 7, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{row}.png")
    return tmp_path / "photos"


def test_a_search_over_photos_says_what_it_reads_and_a_resume_reads_the_same(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "dark" / "0.png").write_bytes(b"broken")
    out = tmp_path / "run"
    asked = ("--resolution", "8", "--fit", "pad", "--augment", "shift")
    assert run("search", "--data", str(photos), *TINY, *asked, "--out", str(out)) == 0
    said = capsys.readouterr().err
    assert "47 photos in 2 classes (bright 24, dark 23), " in said
    assert "brought to 8x8 (pad), 1 broken left out" in said
    assert "0.png (it is no image that Pillow knows)" in said
    assert "random changes of images: shift=1" in said
    kept = json.loads((out / "run.json").read_text())
    assert kept["data"]["reading"] == {"resolution": 8, "fit": "pad"}
    assert kept["data"]["augmentation"] == "shift=1"
    assert (kept["data"]["inputs"], kept["settings"]["data"]) == ([3, 8, 8], str(photos))
    with pytest.warns(UserWarning, match=r"0\.png"):
        again = Run(out).load_data()
    assert (again.inputs, again.fit) == ((3, 8, 8), "pad")
    assert again.augmentation is not None
    assert (again.augmentation.crop, again.augmentation.flip) == (1, False)
    assert run("search", "--data", str(photos), *TINY, "--strict", "--out", str(tmp_path / "no")) == 2
    assert "0.png cannot be read as an image" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_images_of_unknown_origin_are_not_changed_and_that_is_said_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "my.npz", x=rng.integers(0, 256, (60, 8, 8), dtype=np.uint8), y=np.arange(60) % 2)
    out = tmp_path / "run"
    assert run("search", "--data", str(tmp_path / "my.npz"), *TINY, "--out", str(out)) == 0
    said = capsys.readouterr().err
    assert "random changes of images: none; --augment shift,flip,cutout,crop,jitter says which keep the class" in said
    assert Run(out).result["augmentation"] == "none"
    assert run("search", "--data", "digits", *TINY, "--examples", "60", "--out", str(tmp_path / "d")) == 0
    assert "random changes of images: shift=1\n" in capsys.readouterr().err
    # A run of before keeps no words: it meant shifts and flips, and so it does now.
    kept = json.loads((out / "run.json").read_text())
    del kept["data"]["augmentation"]
    (out / "run.json").write_text(json.dumps(kept))
    before = Run(out).load_data().augmentation
    assert before is not None
    assert (before.crop, before.flip) == (1, True)


def test_what_a_preset_leaves_out_is_said_and_all_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The preset tiny takes 1,200 of the 1,437 digits."""
    small = ("--space", "mlp", "--preset", "tiny", "--epochs", "1", "--threads", "1", "--width", "4")
    assert run("search", *small, "--out", str(tmp_path / "a")) == 0
    assert "1,200 of 1,437 rows (preset tiny); --examples all" in capsys.readouterr().err
    assert run("search", *small, "--examples", "all", "--out", str(tmp_path / "b")) == 0
    assert " of 1,437 rows" not in capsys.readouterr().err
    assert Run(tmp_path / "b").settings.examples is None
    assert run("search", *small, "--examples", "many", "--out", str(tmp_path / "c")) == 2
    assert "--examples must be a number of rows, or all, got 'many'" in capsys.readouterr().err


def test_more_epochs_lengthen_a_search_that_has_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    small = ("--space", "mlp", "--preset", "tiny", "--examples", "200", "--threads", "1", "--width", "4")
    assert run("search", *small, "--epochs", "2", "--out", str(out)) == 0
    first = Run(out).history
    assert run("search", "--resume", str(out), "--epochs", "4") == 0
    said = capsys.readouterr().err
    assert "epochs 3 to 4 follow the cosine of 4 epochs: the learning rate, 0.013 at last, goes on from 0.013" in said
    found = Run(out)
    assert (found.result["epochs"], found.settings.schedule_epochs) == (4, 4)
    assert found.history[:2] == first
    assert [row["epoch"] for row in found.history] == [0, 1, 2, 3]
    assert json.loads((out / "run.json").read_text())["lengthened"] == [{"from": 2, "to": 4}]
    for more, sentence in (
        (("--epochs", "4"), "has 4 epochs already, got --epochs 4"),
        (("--lr", "0.1"), "--lr cannot change with --resume"),
    ):
        assert run("search", "--resume", str(out), *more) == 2
        assert sentence in capsys.readouterr().err
    assert Run(out).finished


def test_the_cache_is_listed_and_cleared(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("data", "cache") == 0
    assert "0 entries" in capsys.readouterr().out
    assert run("score", "--data", str(photos), "--metric", "naswot", "--sample", "1", "--workers", "1") == 0
    capsys.readouterr()
    assert run("data", "cache", "--json") == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert (entry["rows"], entry["source"]) == (48, str(photos))
    assert run("data", "cache", "zzz", "--clear") == 2
    assert run("data", "cache", "--clear") == 0
    assert "removed: 1 entries" in capsys.readouterr().out
