"""ImageNet's presets on a folder of photos: 224 pixels and random crops, unless something else is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import nasight
from command import run as command
from nasight.data import Augment, Dataset, SentData, clear_cache, input_record, load, load_at, prepare
from nasight.runs import DataRecord, RunFolder
from nasight.searching import Progress, Run
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.studies import trainable
from nasight.studies._model_card import Images
from nasight.studies.finding._find import data_and_space
from nasight.training._train import make_job

DARTS = load_space("darts")
CELL = "DARTS_V2"
SEARCHED = Augment(crop=0, flip=True, area=0.08)
TRAINED = Augment(crop=0, flip=True, area=0.08, jitter=0.4)
CROP_16 = {"resolution": 16, "fit": "crop"}
READING = {"resolution": 224, "fit": "inner"}
SEARCH: dict[str, Any] = {
    "preset": "imagenet",
    "examples": 12,
    "epochs": 2,
    "warmup": 0,
    "batch_size": 3,
    "lr": 0.05,
    "size": {"channels": 4, "cells": 3},
    "threads": 1,
}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NASIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def write_photos(folder: Path, each: int = 10, seed: int = 0) -> Path:
    """Bright and dark photos, each of another size."""
    chance = np.random.default_rng(seed)
    for name, low in (("bright", 150), ("dark", 0)):
        (folder / name).mkdir(parents=True)
        for row in range(each):
            pixels = chance.integers(low, low + 100, (90 + 5 * row, 100 - 2 * row, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{row}.{'jpg' if row % 2 else 'png'}")
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("data") / "photos")


@pytest.fixture(scope="module")
def found(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return nasight.search("darts", "gaea-pc-darts", str(photos), **SEARCH, out=tmp_path_factory.mktemp("runs") / "run")


Searched = Callable[..., Path]


@pytest.fixture
def searched(tmp_path: Path) -> Searched:
    """Makes the folder of a finished search on some data."""

    def make(data: Dataset, source: str, preset: str = "tiny") -> Path:
        settings = {"space": "darts", "space_options": {"none": True}, "data": source, "preset": preset}
        folder = RunFolder.create(
            tmp_path / "search", kind="search", about={"settings": settings, "data": DataRecord.of(data).to_dict()}
        )
        asked = {"run": "r", "method": "darts", "objective": "bilevel", "data": source, "seed": 0, "epochs": 1}
        found = {"space": "darts", "architecture": DARTS.format(DARTS.parse(CELL))}
        folder.write_result({**asked, **found, "accuracy": 50.0, "entropy": 1.0, "seconds": 1.0})
        return folder.path

    return make


def test_photos_have_224_pixels_and_published_changes_unless_something_else_is_said(photos: Path) -> None:
    published = load_at(224, photos)
    assert (published.inputs, published.augmentation) == ((3, 224, 224), SEARCHED)
    assert load_at(224, photos, training=True).augmentation == TRAINED
    assert dict(published.reading) == READING
    assert dict(load_at(224, photos, fit="crop").reading) == {"resolution": 224, "fit": "crop"}
    assert (load_at(None, photos).inputs, load_at(None, photos).augmentation) == ((3, 64, 64), None)
    assert load_at(224, photos, resolution=96).inputs == (3, 96, 96)
    assert load_at(224, photos, augment=False).augmentation is None
    assert load_at(224, photos, augment="none").augmentation is None
    assert load_at(224, photos, augment="shift=8").augmentation == Augment(crop=8, flip=False)
    assert load_at(224, f"{photos}#task=classes").inputs == (3, 224, 224)


def test_arrays_files_and_named_sets_stay_as_they_are(tmp_path: Path) -> None:
    x, y = np.zeros((6, 40, 40, 3), np.uint8), np.arange(6) % 2
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    for data in ((x, y), str(tmp_path / "mine.npz"), load((x, y))):
        read = load_at(224, data)
        assert (read.inputs, read.augmentation) == ((3, 40, 40), None)
    digits = load_at(224, "digits")
    assert (digits.inputs, digits.augmentation) == ((1, 8, 8), load("digits").augmentation)


def test_only_imagenets_presets_of_the_darts_space_ask_for_pixels() -> None:
    assert dict(DARTS.photo_pixels) == {"imagenet": 224, "imagenet-darts": 224}
    assert set(DARTS.photo_pixels) <= set(DARTS.train_settings)
    assert dict(Space.photo_pixels) == dict(load_space("nasbench201").photo_pixels) == {}


def test_photos_that_judge_are_the_middle_224_of_256_pixels(tmp_path: Path) -> None:
    """A photo of 320 x 256 pixels is not resized, but cut: 32 off the left and right, and another 16 all around."""
    pixels = np.random.default_rng(0).integers(0, 256, (256, 320, 3), dtype=np.uint8)
    for name in ("train/a", "train/b", "val/a", "val/b"):
        (tmp_path / name).mkdir(parents=True)
        Image.fromarray(pixels).save(tmp_path / name / "photo.png")
    data = load_at(224, tmp_path, training=True)
    assert data.test_x is not None
    assert np.array_equal(data.test_x[0].numpy(), pixels[16:240, 48:272].transpose(2, 0, 1))
    assert Images(**input_record(prepare(data))["images"]).fit == "inner", "and so are new ones"
    whole = Image.fromarray(pixels[:, 32:288]).resize((224, 224), Image.Resampling.BILINEAR)
    away = data.train_x[0, :, 1:-1, 1:-1].int().numpy() - np.array(whole).transpose(2, 0, 1)[:, 1:-1, 1:-1].astype(int)
    assert abs(away).max() <= 1, "but for the edge, where pixels beside the middle count"


class Stop(Progress):
    """Leaves after the first epoch, as a machine that goes down does."""

    def epoch(self, row: dict[str, Any]) -> None:
        raise ZeroDivisionError


@pytest.mark.slow
def test_a_search_has_224_pixels_and_random_crops_and_a_stopped_one_goes_on_with_them(
    found: Run, photos: Path, tmp_path: Path
) -> None:
    assert found.settings.resolution == 224
    assert (found.data.inputs, dict(found.data.reading)) == ((3, 224, 224), READING)
    assert (found.data.augmentation, found.result["augmentation"]) == ("crop=0.08,flip",) * 2
    with pytest.raises(ZeroDivisionError):
        nasight.search("darts", "gaea-pc-darts", str(photos), **SEARCH, out=tmp_path / "stopped", progress=Stop())
    clear_cache()
    again = nasight.resume(tmp_path / "stopped")
    assert again.result["weights"] == found.result["weights"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "inputs", "reading", "changes"),
    [
        ("--resolution 16", [3, 16, 16], {"resolution": 16, "fit": "inner"}, "crop=0.08,flip"),
        ("--resolution 16 --no-augment", [3, 16, 16], {"resolution": 16, "fit": "inner"}, "none"),
        ("--resolution 16 --fit pad --strict", [3, 16, 16], {"resolution": 16, "fit": "pad"}, "crop=0.08,flip"),
        ("--augment jitter,crop=0.5 --resolution 16 --fit crop", [3, 16, 16], CROP_16, "crop=0.5,jitter=0.4"),
        ("--fit pad --augment shift=2", [3, 224, 224], {"resolution": 224, "fit": "pad"}, "shift=2"),
    ],
)
def test_what_the_command_of_a_search_says_wins(
    photos: Path, tmp_path: Path, words: str, inputs: list[int], reading: dict[str, Any], changes: str
) -> None:
    few = "--examples 12 --epochs 1 --warmup 0 --batch-size 3 --lr 0.05 --channels 4 --cells 3 --threads 1"
    asked = f"search --space darts --method pc-darts --preset imagenet --data {photos} {few} {words}"
    assert command(*asked.split(), "--out", str(tmp_path / "run")) == 0
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["data"]
    assert (kept["inputs"], kept["reading"], kept["augmentation"]) == (inputs, reading, changes)


@pytest.mark.parametrize("preset", ["imagenet", "imagenet-darts"])
def test_a_training_by_name_has_224_pixels_random_crops_and_colors(photos: Path, preset: str) -> None:
    job = make_job(DARTS, CELL, str(photos), preset, 0, {})
    assert (job.data.inputs, job.data.augmentation, job.settings.augment) == ((3, 224, 224), TRAINED, True)
    assert make_job(DARTS, CELL, str(photos), preset, 0, {"augment": "shift=4"}).data.augmentation == Augment(4, False)
    assert make_job(DARTS, CELL, str(photos), preset, 0, {"augment": False}).data.augmentation is None
    assert make_job(DARTS, CELL, str(photos), "tiny", 0, {}).data.inputs == (3, 64, 64)
    asked = {"space": "darts", "arch": CELL, "data": str(photos), "preset": preset}
    named = trainable(**asked)
    assert (named.data.inputs, named.data.augmentation) == ((3, 224, 224), TRAINED)
    assert (trainable(**asked, resolution=96).data.inputs, named.out.parent) == ((3, 96, 96), Path("runs"))


@pytest.mark.slow
def test_what_a_search_at_224_pixels_found_is_trained_at_224_with_every_preset(found: Run) -> None:
    for preset, changes in (("imagenet", TRAINED), ("tiny", SEARCHED)):
        what = trainable(found.path, preset=preset)
        assert (what.data.inputs, what.data.augmentation) == ((3, 224, 224), changes)
        assert what.out == found.path / "train"
    assert trainable(found.path, preset="imagenet", resolution=96).data.inputs == (3, 96, 96)


def test_what_was_found_on_other_images_is_trained_on_photos_of_224_pixels(photos: Path, searched: Searched) -> None:
    run = searched(load("digits"), "digits")
    what = trainable(run, data=str(photos), preset="imagenet")
    assert (what.data.inputs, what.data.augmentation) == ((3, 224, 224), TRAINED)
    assert trainable(run, data=str(photos), preset="imagenet", resolution=96).data.inputs == (3, 96, 96)
    assert trainable(run, preset="imagenet").data.inputs == (1, 8, 8)


def test_what_was_found_on_photos_of_64_pixels_is_trained_on_the_same_photos_at_224(
    photos: Path, searched: Searched
) -> None:
    run = searched(load(photos), str(photos))
    small, large = trainable(run, preset="tiny"), trainable(run, preset="imagenet")
    assert (small.data.inputs, small.data.augmentation) == ((3, 64, 64), None)
    assert (large.data.inputs, large.data.augmentation) == ((3, 224, 224), TRAINED)
    assert dict(large.data.reading) == READING
    assert large.out != small.out == run / "train"


def test_random_changes_and_fit_that_were_asked_of_a_search_are_those_of_the_training(
    photos: Path, searched: Searched
) -> None:
    shifted = searched(load(photos, resolution=224, fit="pad", augment="shift=8"), str(photos), "imagenet")
    what = trainable(shifted, preset="imagenet").data
    assert (what.augmentation, what.reading["fit"]) == (Augment(crop=8, flip=False), "pad")


def test_a_search_that_was_not_to_change_photos_leaves_the_training_without(photos: Path, searched: Searched) -> None:
    plain = searched(load(photos, resolution=224, augment="none"), str(photos), "imagenet")
    assert trainable(plain, preset="imagenet").data.augmentation is None


def test_workers_of_a_cluster_read_photos_as_they_were_read_here(photos: Path) -> None:
    data = load_at(224, photos, fit="pad")
    there = SentData.of(data).load()
    assert (there.inputs, there.fingerprint, there.augmentation) == ((3, 224, 224), data.fingerprint, SEARCHED)
    assert DataRecord.of(there) == DataRecord.of(data)
    assert SentData.of(load("digits")).load().augmentation == load("digits").augmentation


@pytest.mark.slow
def test_the_command_trains_a_small_network_with_its_auxiliary_head_on_photos(
    photos: Path, searched: Searched, capsys: pytest.CaptureFixture[str]
) -> None:
    run = searched(load("digits"), "digits")
    small = "--preset imagenet --channels 8 --cells 3 --batch-size 4 --epochs 1 --seeds 1 --threads 1 --json"
    for _ in range(2):
        assert command("train", str(run), "--data", str(photos), *small.split()) == 0
    told = capsys.readouterr()
    assert "random changes of images: crop=0.08,flip,jitter=0.4\n" in told.err
    out = Path(json.loads(told.out.splitlines()[-1])["out"])
    (record,) = (json.loads(path.read_text())["data"] for path in out.glob("seed-0/run.json"))
    assert (record["inputs"], record["reading"]) == ([3, 224, 224], READING)
    assert record["augmentation"] == "crop=0.08,flip,jitter=0.4"


def test_a_find_whose_target_is_a_preset_for_photos_reads_them_as_that_preset_does(photos: Path) -> None:
    def inputs(target: str | None) -> tuple[int, ...]:
        return data_and_space(str(photos), "darts", target, None)[0].inputs

    assert inputs("imagenet") == (3, 224, 224)
    assert inputs(None) == inputs("paper") == load(str(photos)).inputs == (3, 64, 64)
    assert data_and_space(load(str(photos), resolution=32), "darts", "imagenet", None)[0].inputs == (3, 32, 32)
    assert data_and_space(str(photos), None, None, None)[2] == "convnet"
