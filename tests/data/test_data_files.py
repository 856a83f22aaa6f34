"""Names, files and folders: what is read, and the sentence for each way it can fail."""

from __future__ import annotations

import gzip
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from nasight.data import Dataset, _npz, available, load
from nasight.data._sources import IDX_FILES
from nasight.errors import RequestError


def idx(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """A data folder with a small MNIST: two files compressed, two not."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "mnist"
    folder.mkdir()
    for file, rows in zip(IDX_FILES, (30, 30, 10, 10), strict=True):
        array = rng.integers(0, 256, (rows, 28, 28), dtype=np.uint8) if "images" in file else np.arange(rows) % 10
        data = idx(array.astype(np.uint8))
        if file.startswith("train"):
            (folder / f"{file}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / file).write_bytes(data)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "inputs", "first"),
    [
        ("cifar-10", 50_000, (3, 32, 32), ["frog", "truck", "truck", "deer", "automobile"]),
        ("fashion-mnist", 60_000, (1, 28, 28), ["Ankle boot", "T-shirt/top", "T-shirt/top", "Dress", "T-shirt/top"]),
        ("mnist", 60_000, (1, 28, 28), ["5", "0", "4", "1", "9"]),
    ],
)
def test_published_files_are_read_as_published(
    name: str, rows: int, inputs: tuple[int, ...], first: list[str], published: Callable[[str], Dataset]
) -> None:
    data = published(name)
    assert (len(data.train_y), data.inputs, data.n_classes) == (rows, inputs, 10)
    assert data.test_y is not None
    assert data.test_y.bincount().sum() == 10_000
    assert [data.classes[label] for label in data.train_y[:5]] == first


def test_idx_files_are_read_compressed_or_not(mnist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("mnist", folder=mnist)
    assert data.train_y.tolist() == [i % 10 for i in range(30)]
    raw = gzip.decompress((mnist / "mnist" / "train-images-idx3-ubyte.gz").read_bytes())
    assert data.train_x.numpy().tobytes() == raw[16:]
    monkeypatch.setenv("NASIGHT_DATA", str(mnist))
    assert load("mnist").fingerprint == data.fingerprint


@pytest.mark.parametrize(
    ("file", "damage", "sentence"),
    [
        ("train-images-idx3-ubyte.gz", lambda b: b[:-100], "not a whole gzip file"),
        ("train-images-idx3-ubyte.gz", lambda b: b"PK" + b, "not a whole gzip file"),
        ("train-labels-idx1-ubyte.gz", lambda b: b[:12] + bytes((b[12] ^ 255,)) + b[13:], "not a whole gzip file"),
        ("t10k-images-idx3-ubyte", lambda b: b[:-1], "announces 7840 bytes .* but holds 7839"),
        ("t10k-images-idx3-ubyte", lambda b: b + b"\0", "but holds 7841"),
        ("t10k-images-idx3-ubyte", lambda b: b[:9], "not an IDX file"),
        ("t10k-images-idx3-ubyte", lambda b: b"", "not an IDX file"),
        ("t10k-images-idx3-ubyte", lambda b: b"\0\0\x0d\x03" + b[4:], "starts with 00 00 0d 03, not with 00 00 08 03"),
        ("t10k-labels-idx1-ubyte", lambda b: b[:-1] + b"\x0b", "holds label 11"),
        ("t10k-labels-idx1-ubyte", lambda b: idx(np.zeros(9, np.uint8)), "9 labels for 10 images"),
    ],
)
def test_a_damaged_idx_file_is_named(mnist: Path, file: str, damage: Callable[[bytes], bytes], sentence: str) -> None:
    path = mnist / "mnist" / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RequestError, match=sentence) as caught:
        load("mnist", folder=mnist)
    assert str(path) in str(caught.value)


def test_a_short_cifar_batch_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        (folder / name).write_bytes(bytes(3073))
    with pytest.raises(RequestError, match=r"data_batch_1.bin holds 3073 bytes, not the 30730000"):
        load("cifar-10", folder=tmp_path)


def test_missing_data_says_where_it_was_looked_for_and_how_to_get_it(mnist: Path) -> None:
    with pytest.raises(RequestError, match="cifar-10-batches-bin; get it with `nasight data get cifar-10 --folder"):
        load("cifar-10", folder=mnist)
    (mnist / "mnist" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(RequestError, match="lacks t10k-labels-idx1-ubyte; get it with `nasight data get mnist"):
        load("mnist", folder=mnist)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("cifar10", "did you mean 'cifar-10'"),
        ("Fashion_MNIST", "did you mean 'fashion-mnist'"),
        ("elephants", "known names are digits, fashion-mnist, mnist, cifar-10"),
        ("elephants.npz", "no file or folder elephants.npz"),
        ("herd/elephants", "no file or folder herd/elephants"),
    ],
)
def test_an_unknown_name_gets_the_known_ones(name: str, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        load(name)


def test_what_is_here_is_listed_with_its_size(mnist: Path) -> None:
    rows = {row.name: row for row in available(mnist)}
    assert list(rows) == ["digits", "fashion-mnist", "mnist", "cifar-10", "cifar-100", "imagenet16-120"]
    assert rows["digits"].here
    assert rows["mnist"].where == str(mnist / "mnist")
    assert rows["mnist"].size == sum(path.stat().st_size for path in (mnist / "mnist").iterdir())
    assert not rows["cifar-10"].here


def test_an_npz_file_gives_its_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (20, 5, 7, 3), dtype=np.uint8), np.arange(20) % 4
    np.savez_compressed(tmp_path / "mine.npz", x=x, y=y, x_test=x[:8], y_test=y[:8], other=y)
    data = load(str(tmp_path / "mine.npz"))
    assert (data.name, data.inputs, data.n_classes) == ("mine", (3, 5, 7), 4)
    assert torch.equal(data.train_x, torch.from_numpy(x).permute(0, 3, 1, 2))
    assert data.test_y is not None
    assert data.test_y.tolist() == y[:8].tolist()


@pytest.mark.parametrize("mapped", [False, True])
def test_the_names_that_keras_gives_arrays_are_known(
    mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mapped:
        monkeypatch.setattr(_npz, "MAPPED_BYTES", 0)
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (20, 5, 7), dtype=np.uint8), np.arange(20) % 4
    np.savez(tmp_path / "mnist.npz", x_train=x, y_train=y, x_test=x[:8], y_test=y[:8])
    np.savez(tmp_path / "ours.npz", x=x, y=y, x_test=x[:8], y_test=y[:8])
    theirs, ours = load(str(tmp_path / "mnist.npz")), load(str(tmp_path / "ours.npz"))
    assert torch.equal(theirs.train_x, ours.train_x)
    assert torch.equal(theirs.train_y, ours.train_y)
    assert theirs.test_x is not None
    assert ours.test_x is not None
    assert torch.equal(theirs.test_x, ours.test_x)
    # Where a file has both kinds of names, ours count, and the others are not looked at.
    np.savez(tmp_path / "both.npz", x=x[:4], y=y[:4], x_train=np.array([{}, {}]), y_train=y)
    assert len(load(str(tmp_path / "both.npz")).train_y) == 4


def test_an_npz_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    x, y = np.zeros((4, 3)), np.arange(4) % 2
    path = tmp_path / "mine.npz"
    np.savez(path, x=x, label=y)
    with pytest.raises(RequestError, match=r"mine.npz lacks the array 'y'; it holds x, label"):
        load(path)
    np.savez(path, x=x, y=y, x_test=x)
    with pytest.raises(RequestError, match="lacks the array 'y_test'"):
        load(path)
    np.savez(path, x_train=x, x_test=x, y_test=y)
    with pytest.raises(RequestError, match="lacks the array 'y_train'"):
        load(path)
    np.savez(path, x=np.array([{}, {}, {}, {}]), y=y)
    with pytest.raises(RequestError, match="plain arrays"):
        load(path)
    np.savez(path, x=x, y=y)
    whole = path.read_bytes()
    for damaged in (whole[:-30], whole[: len(whole) // 2], b"", b"hello", whole[:100] + b"\7" + whole[101:]):
        path.write_bytes(damaged)
        with pytest.raises(RequestError, match=r"mine.npz"):
            load(path)
    with path.open("wb") as file:
        np.save(file, x)
    with pytest.raises(RequestError, match="lacks the array 'x'; it holds nothing"):
        load(path)
    path.rename(tmp_path / "mine.csv")
    with pytest.raises(RequestError, match="is not UTF-8 text"):
        load(tmp_path / "mine.csv")


def draw(path: Path, value: int, mode: str = "L", size: tuple[int, int] = (6, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode in ("L", "P", "I;16") else (value, 0, 0)).save(path)


def test_an_image_folder_is_read_with_its_class_names(tmp_path: Path) -> None:
    for part, rows in (("train", 3), ("test", 1)):
        for value, name in enumerate(("cat", "ant")):
            for row in range(rows):
                draw(tmp_path / part / name / f"{row}.png", 10 * value + row)
    (tmp_path / "train" / "cat" / ".hidden.png").write_bytes(b"")
    (tmp_path / "train" / "cat" / "notes.txt").write_text("mine")
    data = load(tmp_path)
    assert data.classes == ("ant", "cat")
    assert data.inputs == (1, 4, 6)
    assert data.train_x[:, 0, 0, 0].tolist() == [10, 11, 12, 0, 1, 2]
    assert data.train_y.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.test_y is not None
    assert data.test_y.tolist() == [0, 1]
    assert load(tmp_path / "train").test_x is None


def test_gray_images_become_color_only_beside_color_ones(tmp_path: Path) -> None:
    draw(tmp_path / "a" / "1.png", 7)
    draw(tmp_path / "b" / "1.png", 9, "RGB")
    data = load(tmp_path)
    assert data.train_x[:, :, 0, 0].tolist() == [[7, 7, 7], [9, 0, 0]]
    for part in ("train", "test"):
        shutil.copytree(tmp_path, tmp_path.parent / "parts" / part)
    draw(tmp_path.parent / "parts" / "train" / "b" / "1.png", 8)
    assert load(tmp_path.parent / "parts").train_x[:, :, 0, 0].tolist() == [[7, 7, 7], [8, 8, 8]]


def test_classes_that_are_called_train_and_plane_are_classes(tmp_path: Path) -> None:
    draw(tmp_path / "train" / "1.png", 7)
    draw(tmp_path / "plane" / "1.png", 9)
    assert load(tmp_path).classes == ("plane", "train")


def test_a_class_folder_without_images_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        draw(tmp_path / name / "1.png", 7)
    (tmp_path / "c").mkdir()
    with pytest.raises(RequestError, match="c holds no images"):
        load(tmp_path)


def test_a_folder_without_classes_is_refused(tmp_path: Path) -> None:
    draw(tmp_path / "1.png", 7)
    with pytest.raises(RequestError, match="has no sub-folders"):
        load(tmp_path)
    for place in ("train/a", "train/b", "test/z"):
        draw(tmp_path / "parts" / place / "1.png", 7)
    with pytest.raises(RequestError, match=r"z is a class that .*train does not have"):
        load(tmp_path / "parts")
