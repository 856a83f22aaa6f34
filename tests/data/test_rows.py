"""Rows for linear models: what each kind of source becomes, and the sentence for each way it can be wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from nasight.data import load, rows
from nasight.errors import RequestError

TABLE = "size,color,label\n1.5,red,yes\n2,blue,no\n-3e1,red,yes\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def test_images_become_rows_of_numbers_up_to_one() -> None:
    data, images = rows("digits"), load("digits")
    assert images.test_x is not None
    assert (data.kind, data.train_x.dtype, data.classes) == ("numeric", np.float32, list("0123456789"))
    np.testing.assert_array_equal(data.train_x, images.train_x.reshape(1437, 64))
    np.testing.assert_array_equal(data.test_x, images.test_x.reshape(360, 64))


def test_bytes_are_divided_by_255(tmp_path: Path) -> None:
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4) * 10
    np.savez(tmp_path / "a.npz", x=x, y=[0, 1])
    np.testing.assert_allclose(rows(tmp_path / "a.npz").train_x, x.reshape(2, 12) / 255, rtol=1e-6)


def test_imdb_is_read_with_its_test_part(data_folder: Path) -> None:
    if not (data_folder / "imdb").is_dir():
        pytest.skip(f"imdb is not in {data_folder}")
    data = rows("imdb", folder=data_folder)
    assert data.test_y is not None
    assert (data.kind, len(data.train_x), len(data.test_x or ()), data.classes) == ("text", 25_000, 25_000, ["0", "1"])
    assert data.train_y.mean() == data.test_y.mean() == 0.5
    assert data.train_x[0].startswith("Story of a man who has unnatural feelings for a pig.")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.TSV.gz"])
def test_tables_give_numbers_and_a_column_for_each_value(tmp_path: Path, name: str) -> None:
    text = TABLE.replace(",", "\t") if "tsv" in name.lower() else TABLE
    path = write(tmp_path, name.lower(), text)
    data = rows(str(path))
    assert data.train_x.tolist() == [[1.5, 0, 1], [2, 1, 0], [-30, 0, 1]]  # blue, red
    assert (data.train_y.tolist(), data.classes, data.test_x) == ([1, 0, 1], ["no", "yes"], None)
    assert rows(path, target="color").classes == ["blue", "red"]


def test_one_column_of_words_is_text(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", 'label,review\n2,"good, really"\n10,bad\n\n2,"two\nlines"\n')
    data = rows(path, target="label")
    assert (data.kind, data.train_x) == ("text", ["good, really", "bad", "two\nlines"])
    assert (data.classes, data.train_y.tolist()) == (["2", "10"], [0, 1, 0])


def test_lines_of_json_are_texts_alone_or_with_a_test_part(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "train.jsonl.gz",
        '{"text": "a\\u2028b", "label": "x", "n": 2}\n\n{"text": "", "label": "y", "n": 1}\n',
    )
    assert rows(path).train_x == ["a\u2028b", ""]
    assert rows(path, target="n").train_y.tolist() == [1, 0]
    write(tmp_path, "test.jsonl", '{"text": "c", "label": "y"}\n')
    both = rows(tmp_path)
    assert both.test_y is not None
    assert (both.test_x, both.test_y.tolist()) == (["c"], [1])
    write(tmp_path, "test.jsonl", '{"text": "c", "label": "z"}\n')
    with pytest.raises(RequestError, match="the class 'z', which training lacks"):
        rows(tmp_path)


def test_arrays_are_numbers_or_texts_with_labels_of_any_kind() -> None:
    x = np.arange(6).reshape(3, 2)
    data = rows((x, ["b", "a", "b"], x[:1], ["a"]))
    assert data.test_y is not None
    assert (data.train_y.tolist(), data.test_y.tolist(), data.classes) == ([1, 0, 1], [0], ["a", "b"])
    assert rows((["one", "two"], [3, 7])).kind == "text"
    assert rows((np.array(["one", "two"]), [3, 7])).train_x == ["one", "two"]
    assert rows(data) is data


def test_fingerprint_changes_with_any_row_label_or_class() -> None:
    x, texts = np.eye(3), ["ab", "c", ""]
    variants = [
        (x, [0, 1, 1]), (x, [0, 1, 0]), (x, [0, 2, 2]), (x[::-1], [0, 1, 1]), (x, [0, 1, 1], x, [0, 1, 1]),
        (texts, [0, 1, 1]), (["a", "bc", ""], [0, 1, 1]),
    ]  # fmt: skip
    found = [rows(variant).fingerprint for variant in variants]
    assert len(set(found)) == len(found)
    assert rows((x.copy(), [0, 1, 1])).fingerprint == found[0]


@pytest.mark.parametrize(
    ("name", "text", "target", "says"),
    [
        ("t.csv", TABLE, "weight", "has no column 'weight'; its columns are size, color, label"),
        ("t.csv", TABLE.replace("blue", ""), None, "an empty cell in line 3, column 'color'"),
        ("t.csv", TABLE.replace("2", "nan"), None, "has 'nan' in line 3, column 'size'"),
        ("t.csv", TABLE.replace("-3e1", "1e300"), None, "has '1e300' in line 4, column 'size'"),
        ("t.csv", TABLE.replace("no", " "), None, "an empty cell in line 3, column 'label'"),
        ("t.csv", TABLE.replace("no", "yes"), None, "the class 'yes' only"),
        ("t.csv", "a,b\n", None, "column names but no rows"),
        ("t.csv", "", None, "is empty"),
        ("t.csv", "1,2\n3,4\n", None, "must name the columns, got 1, 2"),
        ("t.csv", "a,a\n3,4\n", None, "two columns 'a'"),
        ("t.csv", "a,b\n3,4,5\n", None, "3 cells in line 2, where 2 columns are named"),
        ("t.csv", "b\n3\n", None, "the column 'b' only"),
        ("t.csv", "n,w,b\n" + "".join(f"{i},w{i},{i % 2}\n" for i in range(65)), None, "column 'w' .* 65 different"),
        ("t.csv.gz.csv", "\udcff", None, "is not UTF-8 text"),
        ("t.jsonl", '{"text": "a"}', None, "line 1 of .* has no field 'label'; it has text"),
        ("t.jsonl", '{"label": 1}', None, "has no field 'text'; it has label"),
        ("t.jsonl", '{"text": 3, "label": 1}', None, "must be a string, got 3"),
        ("t.jsonl", '{"text": "a", "label": NaN}', None, "must be a class, got nan"),
        ("t.jsonl", "[1]", None, r"must be an object, got \[1\]"),
        ("t.jsonl", "{", None, "line 1 of .* is not JSON"),
        ("t.jsonl", "\n", None, "has no rows"),
        ("t.txt", "a", None, "is not a .csv, .tsv, .jsonl or .npz file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(
    tmp_path: Path, name: str, text: str, target: str | None, says: str
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RequestError, match=says):
        rows(path, target=target)


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"there is no file or folder absent\.csv"):
        rows("absent.csv")
    with pytest.raises(RequestError, match=r"no data set 'digit'; known names are digits, .*, imdb"):
        rows("digit")
    with pytest.raises(RequestError, match=r"data set 'imdb' is not in .*put train\.jsonl"):
        rows("imdb", folder=tmp_path)
    with pytest.raises(RequestError, match=r"target is for \.csv"):
        rows("digits", target="label")
    write(tmp_path, "a.csv.gz", "a")
    (tmp_path / "a.csv.gz").write_bytes(b"nothing")
    with pytest.raises(RequestError, match="not a whole gzip file"):
        rows(tmp_path / "a.csv.gz")


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ((np.eye(2),), "got 1 arrays"),
        ((np.array([[1.0, np.nan], [1, 2]]), [0, 1]), "NaN or infinite value in row 0, column 1"),
        ((np.eye(2), [0, 1, 1]), r"x has 2 rows, but its labels have shape \(3,\)"),
        ((np.eye(2), [0, np.nan]), "the label of row 1 is not a number"),
        ((np.eye(2), [1, 1]), "the class '?1'? only"),
        ((np.empty((0, 2)), []), "the training part of arrays has no rows"),
        (([[1], [1, 2]], [0, 1]), "rows of different lengths"),
        ((np.ones(3), [0, 1, 1]), r"must be a matrix .* got shape \(3,\)"),
        ((np.array(["a", None], dtype=object), [0, 1]), "must hold texts, got a NoneType in row 1"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused_in_a_sentence(arrays: tuple[object, ...], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        rows(arrays)
