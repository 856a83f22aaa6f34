"""CIFAR-100 and ImageNet-16-120 in their owners' formats, written here byte by byte."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nasight.data import _cifar100 as cifar_100
from nasight.data import available, get, load
from nasight.errors import RequestError


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two images of each class to train on and one to test: coarse label, fine label, red, green and blue plane."""
    monkeypatch.setattr(cifar_100, "ROWS", {"train.bin": 200, "test.bin": 100})
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    for file, rows in cifar_100.ROWS.items():
        records = [bytes([i % 20, i % 100]) + bytes([i % 7]) * 1024 + bytes([1]) * 2048 for i in range(rows)]
        (folder / file).write_bytes(b"".join(records))
    return tmp_path


def test_cifar_100_has_its_fine_classes_in_alphabetical_order(cifar: Path) -> None:
    data = load("cifar-100", folder=cifar)
    assert (data.n_classes, data.inputs, len(data.train_y)) == (100, (3, 32, 32), 200)
    assert list(data.classes) == sorted(data.classes)
    assert data.train_y[:3].tolist() == [0, 1, 2]
    assert data.train_x[5, :, 0, 0].tolist() == [5, 1, 1]
    assert (data.classes[0], data.classes[99]) == ("apple", "worm")


def test_a_cifar_100_file_of_another_size_is_refused(cifar: Path) -> None:
    path = cifar / "cifar-100-binary" / "test.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RequestError, match="not the 307400 of 100 CIFAR-100 images"):
        load("cifar-100", folder=cifar)


def imagenet(root: Path, *, dump: Callable[[dict[str, object]], bytes]) -> Path:
    """Ten batches and a validation batch with classes 1 to 150, of which 120 belong to the set."""
    folder = root / "ImageNet16"
    folder.mkdir()
    for number in range(1, 12):
        labels = list(range(1, 151))
        data = np.repeat(np.array(labels, np.uint8)[:, None], 768, axis=1)
        file = f"train_data_batch_{number}" if number < 11 else "val_data"
        (folder / file).write_bytes(dump({"data": data, "labels": labels, "mean": data.mean(0)}))
    return root


@pytest.mark.parametrize("protocol", [2, 4])
def test_imagenet16_keeps_its_first_120_classes(tmp_path: Path, protocol: int) -> None:
    root = imagenet(tmp_path, dump=lambda batch: pickle.dumps(batch, protocol))
    data = load("imagenet16-120", folder=root)
    assert (data.n_classes, data.inputs, len(data.train_y)) == (120, (3, 16, 16), 1200)
    assert data.test_y is not None
    assert data.test_y.tolist() == list(range(120))
    assert data.train_x[119, 0, 0, 0] == 120


class Harm:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (open, ("harm.txt",))


@pytest.mark.parametrize("what", [Harm(), np.array([Harm()], object)])
def test_a_batch_that_would_run_something_is_refused(
    tmp_path: Path, what: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harm.txt").write_text("kept")
    root = imagenet(tmp_path, dump=lambda batch: pickle.dumps({**batch, "more": what}))
    with pytest.raises(RequestError, match="cannot be read as a batch of ImageNet16: it asks for"):
        load("imagenet16-120", folder=root)


def test_what_is_not_here_says_where_its_owner_has_it(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="nasight data get cifar-100"):
        load("cifar-100", folder=tmp_path)
    for ask in (lambda: load("imagenet16-120", folder=tmp_path), lambda: get("imagenet16-120", tmp_path)):
        with pytest.raises(RequestError, match=r"https://image-net\.org/download-images"):
            ask()
    rows = {row.name: row for row in available(tmp_path)}
    assert not rows["imagenet16-120"].here
    assert "account" in rows["imagenet16-120"].get
