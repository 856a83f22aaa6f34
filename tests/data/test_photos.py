"""Photos as people have them: any size, any kind, in folders or listed in a table; decoded once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from nasight.data import cache_entries, cache_folder, image_files, is_mapped, listening, load, read_image
from nasight.data._decode import FITS, fitted
from nasight.errors import RequestError
from nasight.export._alone import read_image as alone_read


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


class Heard:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.works: list[tuple[str, int, int]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, what: str, done: int, total: int) -> None:
        self.works.append((what, done, total))


def halves(width: int, height: int, left: tuple[int, int, int], right: tuple[int, int, int]) -> Image.Image:
    """A picture whose left half has one color and whose right half another."""
    picture = Image.new("RGB", (width, height), left)
    picture.paste(right, (width // 2, 0, width, height))
    return picture


def mixed(folder: Path, each: int = 3) -> Path:
    """Two classes of photos, no two alike in kind: red left and blue right, or the other way around."""
    red, blue = (255, 0, 0), (0, 0, 255)
    kinds: list[Callable[[Image.Image, Path], None]] = [
        lambda p, at: p.save(at.with_suffix(".png")),
        lambda p, at: p.convert("RGBA").save(at.with_suffix(".png")),
        lambda p, at: p.convert("P", palette=Image.Palette.ADAPTIVE).save(at.with_suffix(".gif")),
        lambda p, at: p.save(at.with_suffix(".jpg"), quality=95, subsampling=0),
        lambda p, at: p.convert("CMYK").save(at.with_suffix(".tif")),
        lambda p, at: turned(p, at.with_suffix(".jpg")),
    ]
    for name, colors in (("one", (red, blue)), ("two", (blue, red))):
        (folder / name).mkdir(parents=True)
        for row in range(each * len(kinds)):
            picture = halves(40 + 7 * row, 30 + 3 * row, *colors)
            kinds[row % len(kinds)](picture, folder / name / f"{row:03d}")
    return folder


def turned(picture: Image.Image, path: Path) -> None:
    """A photo of a camera that was held on its side: the pixels lie, and a note says how they stand."""
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.transpose(Image.Transpose.ROTATE_90).save(path, exif=exif, quality=95, subsampling=0)


def test_photos_of_all_kinds_and_sizes_show_what_they_show(tmp_path: Path) -> None:
    data = load(mixed(tmp_path), resolution=16)
    assert data.inputs == (3, 16, 16)
    for x, y in zip(data.train_x.int(), data.train_y.tolist(), strict=True):
        left, right = x[:, 3:13, 2:6].float().mean((1, 2)), x[:, 3:13, 10:14].float().mean((1, 2))
        (red, _, blue), (red_right, _, blue_right) = left.tolist(), right.tolist()
        assert (red > 200 > 60 > blue) == (y == 0)
        assert (blue_right > 200 > 60 > red_right) == (y == 0)


def test_sixteen_bits_and_gray_stay_gray(tmp_path: Path) -> None:
    for name, value in (("a", 1000), ("b", 65535)):
        (tmp_path / name).mkdir()
        Image.fromarray(np.full((20, 20), value, np.uint16)).save(tmp_path / name / "deep.png")
        Image.new("L", (24, 20), 255 if name == "b" else 4).save(tmp_path / name / "gray.png")
        Image.new("1", (20, 20), name == "b").save(tmp_path / name / "bits.png")
    data = load(tmp_path, resolution=8)
    assert data.inputs == (1, 8, 8)
    assert sorted(data.train_x[:3, 0, 4, 4].tolist()) == [0, 4, 4]
    assert data.train_x[3:, 0, 4, 4].tolist() == [255] * 3


@pytest.mark.parametrize(("fit", "rows"), [("crop", 8), ("pad", 4), ("stretch", 8)])
def test_a_wide_photo_is_cropped_padded_or_stretched(tmp_path: Path, fit: str, rows: int) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        wide = Image.new("L", (80, 40), 100)
        wide.paste(200, (0, 0, 10, 40))  # an eighth at the left
        wide.save(tmp_path / name / "wide.png")
    data = load(tmp_path, resolution=8, fit=fit)
    x = data.train_x[0, 0]
    assert int((x.sum(1) > 0).sum()) == rows
    bright = {"crop": 0, "pad": 1, "stretch": 1}[fit]
    assert int((x[4] > 180).sum()) == bright
    assert torch.equal(x, torch.from_numpy(read_image(tmp_path / "a" / "wide.png", (1, 8, 8), fit=fit))[0])


def test_photos_that_judge_show_their_inner_seven_eighths_and_those_learned_from_their_middle(tmp_path: Path) -> None:
    """Of 64 pixels the inner 56 remain, so a frame of 4 is gone: 32 of 32 pixels are gray, else 28."""
    for name in ("train/a", "train/b", "test/a", "test/b"):
        (tmp_path / name).mkdir(parents=True)
        framed = Image.new("L", (64, 64), 255)
        framed.paste(100, (4, 4, 60, 60))
        framed.save(tmp_path / name / "framed.png")
    data, plain = (load(tmp_path, resolution=32, fit=fit) for fit in ("inner", "crop"))
    assert data.test_x is not None
    assert plain.test_x is not None
    assert torch.equal(data.train_x, plain.train_x)
    assert [int((x[0, 0, 16] < 150).sum()) for x in (data.test_x, data.train_x, plain.test_x)] == [32, 28, 28]
    seen = read_image(tmp_path / "test" / "a" / "framed.png", (1, 32, 32), fit="inner")
    assert torch.equal(data.test_x[0], torch.from_numpy(seen))
    assert (data.fit, dict(data.reading)) == ("inner", {"resolution": 32, "fit": "inner"})
    own_size = load(tmp_path, fit="inner")
    assert own_size.test_x is not None
    assert int((own_size.test_x < 150).sum()) == 2 * 64 * 64
    assert load(tmp_path / "train", resolution=32, fit="inner").fit == "crop", "no photos judge"


def test_one_line_says_how_many_which_sizes_and_which_classes(tmp_path: Path) -> None:
    heard = Heard()
    with listening(heard):
        data = load(mixed(tmp_path))
    (line,) = heard.notes
    assert "36 photos in 2 classes (one 18, two 18), 40x30 to 159x81, color, brought to 55x55 (crop" in line
    assert "--resolution N for another size" in line
    assert line.endswith(data.summary)
    assert heard.works[-1] == ("decoding photos", 1, 1)


def test_photos_are_decoded_once_and_again_when_one_of_them_changes(tmp_path: Path) -> None:
    folder, heard = mixed(tmp_path / "photos", each=1), Heard()
    with listening(heard):
        first = load(folder, resolution=8)
        again = load(folder, resolution=8)
        assert len(heard.works) == 2
        assert first.fingerprint == again.fingerprint
        assert is_mapped(again.train_x)
        (entry,) = cache_entries()
        assert (entry.rows, entry.whole, entry.source) == (12, True, str(folder))
        load(folder, resolution=12)
        load(folder, resolution=8, fit="pad")
        assert len(cache_entries()) == 3
        halves(50, 50, (0, 0, 0), (9, 9, 9)).save(folder / "one" / "000.png")
        changed = load(folder, resolution=8)
    assert changed.fingerprint != first.fingerprint


def test_val_judges_where_there_is_no_test_and_is_learned_from_where_there_is(tmp_path: Path) -> None:
    for part in ("train", "val", "test"):
        mixed(tmp_path / part, each=1)
    data = load(tmp_path, resolution=8)
    assert (len(data.train_y), len(data.test_y if data.test_y is not None else ())) == (24, 12)
    assert "12 photos of val are learned from" in data.summary
    (tmp_path / "test").rename(tmp_path.parent / f"{tmp_path.name}-away")
    data = load(tmp_path, resolution=8)
    assert (len(data.train_y), len(data.test_y if data.test_y is not None else ())) == (12, 12)
    assert "val judges" in data.summary


def test_a_table_of_paths_and_labels_is_the_folder_that_it_lists(tmp_path: Path) -> None:
    mixed(tmp_path, each=1)
    files = sorted(tmp_path.glob("*/*"))
    table = tmp_path / "photos.csv"
    table.write_text("path,label\n" + "".join(f"{f.relative_to(tmp_path)},{f.parent.name}\n" for f in files))
    listed, folder = load(table, resolution=8), load(tmp_path, resolution=8)
    assert listed.classes == folder.classes
    assert listed.fingerprint == folder.fingerprint
    rows = [f"{f.parent.name},{f},{'test' if i % 3 == 0 else 'train'}\n" for i, f in enumerate(files)]
    table.write_text("kind,file,split\n" + "".join(rows))
    parted = load(table, resolution=8)
    assert parted.test_y is not None
    assert (len(parted.train_y), len(parted.test_y)) == (8, 4)
    table.write_text("kind,file,split,more\n" + "".join(f"a,{f},train,1\n" for f in files))
    with pytest.raises(RequestError, match="must have a column 'label'"):
        load(table)


def test_a_few_broken_files_are_named_and_left_out_and_strict_refuses_them(tmp_path: Path) -> None:
    mixed(tmp_path)
    (tmp_path / "one" / "000.png").write_bytes(b"not a picture")
    cut = (tmp_path / "two" / "003.jpg").read_bytes()
    (tmp_path / "two" / "003.jpg").write_bytes(cut[: len(cut) // 2])
    heard = Heard()
    with listening(heard):
        data = load(tmp_path, resolution=8)
    assert (len(data.train_y), int((data.train_y == 0).sum())) == (34, 17)
    assert "000.png (it is no image that Pillow knows)" in heard.notes[0]
    assert "003.jpg (" in heard.notes[0]
    assert "2 broken left out" in heard.notes[1]
    with pytest.raises(RequestError, match=r"000.png cannot be read as an image"):
        load(tmp_path, resolution=8, strict=True)
    with pytest.warns(UserWarning, match=r"003.jpg"):
        load(tmp_path, resolution=8)
    for path in sorted((tmp_path / "one").iterdir())[1:5]:
        path.write_bytes(b"")
    with pytest.raises(RequestError, match=r"nor can 5 others: more than the 3 that are left out"):
        load(tmp_path, resolution=10)
    with pytest.raises(RequestError, match=r"000.png cannot be read"):
        load(tmp_path, resolution=10, strict=True)
    assert not list(cache_folder().glob("*.part"))


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"resolution": 2}, "the resolution must be 4 to 1024 pixels, got 2"),
        ({"resolution": 5000}, "the resolution must be 4 to 1024 pixels, got 5000"),
        ({"fit": "squeeze"}, "fit must be one of crop, inner, pad, stretch, got 'squeeze'"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, how: dict[str, object], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        load(tmp_path, **how)  # type: ignore[arg-type]


def test_every_size_can_be_brought_to_every_other() -> None:
    """Rounding once led a crop over the edge of the photo."""
    for across in range(1, 60, 3):
        for down in (1, 7, 24, 31, 53):
            for width, height in ((8, 8), (24, 24), (7, 31)):
                for fit in FITS:
                    assert fitted(Image.new("L", (across, down)), width, height, fit).size == (width, height)


def test_a_model_folder_alone_sees_a_photo_as_the_training_did(tmp_path: Path) -> None:
    folder = mixed(tmp_path, each=1)
    for fit in FITS:
        how = {"fit": fit, "orientation": "upright"}
        for path in image_files(folder):
            there, here = alone_read(path, (3, 12, 12), how), read_image(path, (3, 12, 12), fit=fit, upright=True)
            assert np.array_equal(there, here), path
