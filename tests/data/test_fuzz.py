"""Three hundred damaged or odd inputs: one sentence each or a data set, and nothing half-written in the cache."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nasight.data import _npz, cache_folder, load
from nasight.errors import RequestError


def pictures() -> Iterator[tuple[str, bytes]]:
    """One image of each format."""
    pixels = np.random.default_rng(1).integers(0, 256, (9, 11, 3), dtype=np.uint8)
    for kind, mode in (("png", "RGBA"), ("jpg", "RGB"), ("gif", "P"), ("bmp", "RGB"), ("tif", "L"), ("webp", "RGB")):
        file = io.BytesIO()
        Image.fromarray(pixels).convert(mode).save(file, {"jpg": "jpeg", "tif": "tiff"}.get(kind, kind))
        yield kind, file.getvalue()


def damaged(content: bytes, rng: np.random.Generator, way: int) -> bytes:
    """The content cut short, with other bytes, with a hole, twice, or with a part moved."""
    at = int(rng.integers(1, max(2, len(content) - 1)))
    if way == 0:
        return content[:at]
    if way == 1:
        some = bytearray(content)
        for place in rng.integers(0, len(content), max(1, len(content) // 40)):
            some[place] = int(rng.integers(0, 256))
        return bytes(some)
    if way == 2:
        return content[:at] + bytes(20) + content[at + 20 :]
    if way == 3:
        return content[at:] + content[:at]
    return rng.bytes(at)


def outcome(path: Path, **how: object) -> str:
    """The sentence with which a source is refused, or "" where it is read."""
    with warnings.catch_warnings(action="ignore"):
        try:
            load(path, **how)  # type: ignore[arg-type]
        except RequestError as error:
            return str(error)
    return ""


@pytest.mark.slow
def test_three_hundred_damaged_inputs_are_one_sentence_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_npz, "MAPPED_BYTES", 500)
    rng, said, count = np.random.default_rng(0), list[str](), 0
    for kind, content in pictures():  # 6 formats, 5 ways, 6 times: 180
        for number in range(30):
            folder = tmp_path / f"{kind}-{number}"
            for name in ("a", "b"):
                (folder / name).mkdir(parents=True)
                (folder / name / f"good.{kind}").write_bytes(content)
            (folder / "a" / f"bad.{kind}").write_bytes(damaged(content, rng, number % 5))
            said.append(outcome(folder, resolution=8, strict=True))
            count += 1
    file = io.BytesIO()
    np.savez(file, x=rng.integers(0, 256, (30, 6, 6), dtype=np.uint8), y=np.arange(30) % 3)
    for number in range(80):
        (tmp_path / f"{number}.npz").write_bytes(damaged(file.getvalue(), rng, number % 5))
        said.append(outcome(tmp_path / f"{number}.npz"))
        count += 1
    table = b"path,label\npng-0/a/good.png,cat\npng-0/b/good.png,dog\njpg-0/a/good.jpg,cat\n"
    for number in range(25):
        (tmp_path / f"{number}.csv").write_bytes(damaged(table, rng, number % 5))
        said.append(outcome(tmp_path / f"{number}.csv", resolution=8, strict=True))
        count += 1
    for path in odd(tmp_path / "odd"):
        said.append(outcome(path, resolution=8, strict=True))
        assert said[-1], path
        count += 1
    assert count >= 300
    refused = [sentence for sentence in said if sentence]
    assert len(refused) > 150
    assert all("\n" not in sentence and 10 < len(sentence) < 700 for sentence in refused)
    assert not list(cache_folder().glob("*.part"))
    assert all((entry / "map.json").is_file() for entry in cache_folder().iterdir() if entry.name != ".locks")


def odd(root: Path) -> Iterator[Path]:
    """Sources that are whole and still cannot be read, each in its own way."""
    root.mkdir()
    for name in ("empty", "one/a", "hollow/a", "hollow/b", "links/a", "links/b"):
        (root / name).mkdir(parents=True)
    yield root / "empty"
    Image.new("L", (5, 5)).save(root / "one" / "a" / "1.png")
    yield root / "one"
    (root / "hollow" / "a" / "1.png").mkdir()
    yield root / "hollow"
    for name in ("a", "b"):
        (root / "links" / name / "1.png").symlink_to(root / "nowhere.png")
    yield root / "links"
    (root / "fractions" / "a").mkdir(parents=True)
    (root / "fractions" / "b").mkdir()
    for name in ("a", "b"):
        Image.fromarray(np.ones((5, 5), np.float32)).save(root / "fractions" / name / "1.tif")
    yield root / "fractions"
    arrays: dict[str, dict[str, object]] = {
        "text": {"x": np.array(["a", "b"]), "y": np.arange(2)},
        "flat": {"x": np.arange(600.0), "y": np.arange(600) % 2},
        "five": {"x": np.zeros((4, 2, 3, 4, 5)), "y": np.arange(4) % 2},
        "complex": {"x": np.zeros((40, 8), complex), "y": np.arange(40) % 2},
        "nan": {"x": np.full((40, 8), np.nan), "y": np.arange(40) % 2},
        "short": {"x": np.zeros((40, 8)), "y": np.arange(39) % 2},
        "alone": {"x": np.zeros((40, 8))},
        "none": {"x": np.zeros((0, 8, 8), np.uint8), "y": np.zeros(0, int)},
        "objects": {"x": np.array([{}, []], dtype=object), "y": np.arange(2)},
        "other-test": {"x": np.zeros((90, 8)), "y": np.arange(90) % 2, "x_test": np.zeros((9, 7)), "y_test": [0] * 9},
    }
    for name, values in arrays.items():
        np.savez(root / f"{name}.npz", **values)  # type: ignore[arg-type]
        yield root / f"{name}.npz"
    with zipfile.ZipFile(root / "zip.npz", "w") as file:
        file.writestr("x.npy", b"no array")
        file.writestr("y.npy", b"")
    yield root / "zip.npz"
