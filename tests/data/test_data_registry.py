"""Formats and data sets that a program or an installed package adds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nasight.data import DataFormat, Dataset, available, formats, from_arrays, get, load, register, rows
from nasight.data._registry import REGISTERED
from nasight.errors import RequestError


def read_text(path: Path) -> Dataset:
    table = np.loadtxt(path, dtype=np.float32)
    return from_arrays(path.stem, (table[:, :-1], table[:, -1]), source=str(path))


TEXT = DataFormat("a table of numbers", lambda path: path.suffix == ".txt", read_text)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = set(REGISTERED)
    yield
    for name in set(REGISTERED) - before:
        REGISTERED.remove(name)


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    path = tmp_path / "flowers.txt"
    path.write_text("0.1 0.2 0\n0.3 0.1 1\n0.5 0.5 1\n")
    return path


def test_a_path_that_no_format_reads_is_told_the_formats(flowers: Path) -> None:
    with pytest.raises(RequestError, match=r"flowers\.txt is not an \.npz file or a folder of images or a table"):
        load(flowers)
    register(DataFormat("an Excel file", lambda path: path.suffix == ".xlsx", read_text))
    with pytest.raises(RequestError, match=r"is not an \.npz file or .* or an Excel file$"):
        load(flowers)
    with pytest.raises(RequestError, match=r"is not a \.csv, \.tsv, \.jsonl or \.npz file or an Excel file$"):
        rows(flowers)


def test_a_registered_format_is_read_by_load_and_by_rows(flowers: Path) -> None:
    register(TEXT)
    assert load(flowers).train_y.tolist() == [0, 1, 1]
    assert rows(str(flowers)).train_x.tolist() == load(flowers).train_x.tolist()
    with pytest.raises(RequestError, match=r"target is for \.csv"):
        rows(flowers, target="label")


def test_a_registered_format_goes_before_the_built_in_ones(tmp_path: Path) -> None:
    arrays = {"x": np.zeros((4, 3)), "y": np.arange(4) % 2}
    np.savez(tmp_path / "mine.npz", **arrays)
    (tmp_path / "mine.csv").write_text("a,b\n1,x\n2,y\n")
    assert load(tmp_path / "mine.npz").name == "mine"

    def read(path: Path) -> Dataset:
        return from_arrays("own", tuple(arrays.values()))

    register(DataFormat("my own", lambda path: path.suffix in (".npz", ".csv"), read))
    assert [known.name for known in formats()][::4] == ["my own", "an .npz file"]
    assert load(tmp_path / "mine.npz").name == load(tmp_path / "mine.csv").name == "own"
    assert rows(tmp_path / "mine.csv").name == "own"


def test_a_name_stands_for_a_data_set_or_for_the_function_that_makes_it(tmp_path: Path, flowers: Path) -> None:
    seen: list[Path] = []

    def make(folder: Path) -> Dataset:
        seen.append(folder)
        return read_text(folder / "flowers.txt")

    register(make, "garden")
    register(read_text(flowers))
    assert load("garden", folder=tmp_path).fingerprint == load("flowers").fingerprint
    assert rows("garden", folder=tmp_path).classes == ["0", "1"]
    assert seen == [tmp_path, tmp_path]
    assert [row.name for row in available(tmp_path)][-2:] == ["garden", "flowers"]
    with pytest.raises(RequestError, match="did you mean 'garden'"):
        load("gardens")
    with pytest.raises(RequestError, match="'garden' was registered and needs no download"):
        get("garden", tmp_path)


@pytest.mark.parametrize(
    ("thing", "name", "says"),
    [
        (7, "seven", "'seven' must be a DataFormat, a Dataset or a function"),
        (lambda folder: 7, None, "made by a function needs a name"),
        (TEXT, "digits", "there is a data set 'digits' already"),
        (TEXT, "a folder of images", "there is a data set or format 'a folder of images' already"),
    ],
)
def test_what_cannot_be_registered_is_refused_in_a_sentence(thing: object, name: str | None, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        register(thing, name)  # type: ignore[arg-type]


def test_what_is_read_must_be_a_data_set(flowers: Path) -> None:
    register(DataFormat("wrong", lambda path: True, lambda path: 7))  # type: ignore[arg-type, return-value]
    register(lambda folder: None, "nothing")  # type: ignore[arg-type, return-value]
    with pytest.raises(RequestError, match=r"what reads .*flowers\.txt must give a Dataset, it gave int"):
        load(flowers)
    with pytest.raises(RequestError, match="what reads the data set 'nothing' must give a Dataset, it gave NoneType"):
        load("nothing")


def test_a_format_comes_from_an_installed_package(flowers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name, value = "text", "package:TEXT"

        def load(self) -> DataFormat:
            return TEXT

    monkeypatch.setattr("nasight.registry.entry_points", lambda group: [Entry()] if group == "nasight.data" else [])
    monkeypatch.setattr(REGISTERED, "_looked", False)
    assert load(flowers).inputs == (2,)
