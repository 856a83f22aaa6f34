"""Tables of every kind become the same rows, and new rows are prepared as the training's were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from nasight.data import TableLayout, load, prepare, read_columns, with_label
from nasight.data._layout import MOST_VALUES, fit_layout
from nasight.errors import RequestError

TABLE = {
    "id": [f"h{i}" for i in range(80)],
    "area": [float(30 + (7 * i) % 50) for i in range(80)],
    "town": ["Bern" if i % 3 else "Chur" for i in range(80)],
    "age": [None if i % 10 == 0 else float(i) for i in range(80)],
    "same": [1] * 80,
    "price": [1000.5 + 3 * i for i in range(80)],
}
WRITE: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "a.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "a.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "a.parquet": lambda frame, path: frame.to_parquet(path),
}


@pytest.mark.parametrize("name", WRITE)
def test_every_kind_of_file_and_frame_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    WRITE[name](pd.DataFrame(TABLE), tmp_path / name)
    found = load(tmp_path / name, label="price")
    for frame in (pd.DataFrame(TABLE), pl.DataFrame(TABLE)):
        again = load(frame, label="price")
        assert again.fingerprint == found.fingerprint
        assert again.table == found.table
    assert (found.task.kind, found.classes, found.train_y[1].item()) == ("numbers", ("price",), 1003.5)
    assert found.table is not None
    assert [column.name for column in found.table.columns] == ["area", "town", "age"]
    assert "id (another text in every row), same (always the same)" in found.summary


def test_the_numbers_of_a_row_are_those_of_a_calculation_by_hand() -> None:
    data = load(pd.DataFrame(TABLE), label="price")
    area, age = np.array(TABLE["area"]), np.array(TABLE["age"], dtype=float)
    known = age[np.isfinite(age)]
    filled = np.where(np.isfinite(age), age, np.median(known))
    expected = np.stack(
        [
            (area - area.mean()) / area.std(),
            np.array(TABLE["town"]) == "Bern",
            np.array(TABLE["town"]) == "Chur",
            (filled - known.mean()) / known.std(),
            ~np.isfinite(age),
        ],
        1,
    )
    assert torch.allclose(data.train_x, torch.from_numpy(expected).float(), atol=1e-6)


def test_categories_and_flags_stay_0_and_1_and_numbers_are_standard_in_the_rows_that_are_learned_from() -> None:
    data = load(pd.DataFrame(TABLE), label="price")
    prepared = prepare(data, torch.arange(40))
    assert prepared.mean[[1, 2, 4]].tolist() == [0, 0, 0]
    assert prepared.std[[1, 2, 4]].tolist() == [1, 1, 1]
    assert prepared.mean[0].item() == pytest.approx(data.train_x[:40, 0].mean().item(), abs=1e-6)


def test_new_rows_may_have_columns_in_another_order_unknown_texts_and_missing_values() -> None:
    data = load(pd.DataFrame(TABLE), label="price")
    assert data.table is not None
    new = read_columns(pd.DataFrame({"town": ["Genf", None], "more": [1, 2], "age": [None, 3.0], "area": [30.0, None]}))
    found = data.table.apply(new, "new rows")
    assert found.shape == (2, 5)
    assert np.isfinite(found).all()
    assert found[:, 1:3].tolist() == [[0, 0], [0, 0]]
    assert found[:, 4].tolist() == [1, 0]
    with pytest.raises(RequestError, match="new rows lacks the column 'area'"):
        data.table.apply({"town": new["town"], "age": new["age"]}, "new rows")
    with pytest.raises(RequestError, match="column 'age' held numbers in the training, and here 'old'"):
        data.table.apply(read_columns(pd.DataFrame({"town": ["Bern"], "age": ["old"], "area": [1.0]})), "new rows")


CELLS = st.sampled_from([None, "a", "b", "c", "d"]) | st.none()
NUMBERS = st.sampled_from([-3.0, 0.5, 1.0, 40.0]) | st.just(float("nan"))


@given(st.lists(st.tuples(CELLS, NUMBERS, st.integers(0, 9)), min_size=6, max_size=30), st.data())
def test_rows_that_are_set_aside_leave_no_trace_in_the_layout(rows: list[tuple[Any, ...]], draw: st.DataObject) -> None:
    texts, numbers, certain = zip(*rows, strict=True)
    table = {"t": _column(texts), "x": np.array(numbers), "n": np.array([float(c) for c in certain])}
    learned = np.array(draw.draw(st.lists(st.sampled_from(range(len(rows))), min_size=2, unique=True)))
    alone, _ = fit_layout({name: cells[learned] for name, cells in table.items()})
    whole, _ = fit_layout(table)
    assume(whole.columns)
    if not alone.columns:
        with pytest.raises(RequestError, match="always the same"):
            whole.refitted(whole.apply(table, "table"), learned)
        return
    found, x = whole.refitted(whole.apply(table, "table"), learned)
    assert [(c.name, c.values, c.other, c.flag) for c in found.columns] == [
        (c.name, c.values, c.other, c.flag) for c in alone.columns
    ]
    for a, b in zip(found.columns, alone.columns, strict=True):
        assert (a.center, a.scale, a.fill) == pytest.approx((b.center, b.scale, b.fill), abs=1e-5)
    np.testing.assert_allclose(x, found.apply(table, "table"), atol=1e-4)


def _column(values: Sequence[str | None]) -> np.ndarray[Any, Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = list(values)
    return found


def test_a_layout_goes_to_plain_values_and_back() -> None:
    layout = load(pd.DataFrame(TABLE), label="price").table
    assert layout is not None
    assert TableLayout.from_list(layout.to_list()) == layout


def test_rare_texts_of_a_long_column_share_a_number() -> None:
    texts = [f"t{i}" for i in range(100)] + ["t0"] * 5
    layout, left = fit_layout(read_columns(pd.DataFrame({"a": texts})))
    assert not left
    (column,) = layout.columns
    assert (len(column.values), column.other, layout.width) == (MOST_VALUES, True, MOST_VALUES + 1)
    assert (
        column.apply(np.array(["never seen", "t0"], dtype=object)).argmax(1) == [64, column.values.index("t0")]
    ).all()


@pytest.mark.parametrize(
    ("label", "kind", "classes"),
    [
        (["yes", "no"], "classes", ("no", "yes")),
        ([True, False], "classes", ("False", "True")),
        ([3, 7], "classes", ("3", "7")),
        ([0.5, 1.5], "numbers", ("y",)),
        (list(range(100, 140)), "numbers", ("y",)),
    ],
)
def test_the_task_follows_from_the_label_column(label: list[Any], kind: str, classes: tuple[str, ...]) -> None:
    frame = pd.DataFrame({"x": np.arange(40.0), "y": (label * 20)[:40] if len(label) == 2 else label})
    data = load(frame)
    assert (data.task.kind, data.classes) == (kind, classes)


def test_several_columns_are_several_numbers_or_several_labels() -> None:
    frame = pd.DataFrame({"x": np.arange(8.0), "a": [0.5, 2, 3, 4] * 2, "b": [1, 2, 3, 4] * 2, "s": [True, False] * 4})
    both = load(frame, label="a,b")
    assert (both.task.kind, both.classes, tuple(both.train_y.shape)) == ("numbers", ("a", "b"), (8, 2))
    labels = load(frame.assign(t=[0, 1, 1, 1] * 2), label="s,t")
    assert (labels.task.kind, labels.train_y[0].tolist()) == ("labels", [1.0, 0.0])


def test_the_label_is_part_of_the_path_that_a_run_keeps(tmp_path: Path) -> None:
    path = tmp_path / "rows & more.csv"
    pd.DataFrame({"price = x": [1.5, 2.5] * 4, "b": [1, 2, 3, 4] * 2}).to_csv(path, index=False)
    kept = with_label(str(path), "price = x", "numbers")
    assert load(kept).fingerprint == load(path, label="price = x", task="numbers").fingerprint
    with pytest.raises(RequestError, match=r"behind the # of .* only label=NAME and task=KIND are known"):
        load(f"{path}#column=b")


def test_a_folder_with_train_and_test_tables_has_a_test_part(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(10.0), "day": [date(2020, 1, 1 + i) for i in range(10)], "y": ["a", "b"] * 5})
    frame[:6].to_parquet(tmp_path / "train.parquet")
    frame[6:].to_csv(tmp_path / "test.csv", index=False)
    with pytest.raises(RequestError, match="column 'day' held numbers in the training"):
        load(tmp_path)
    frame[6:].to_parquet(tmp_path / "test.parquet")
    (tmp_path / "test.csv").unlink()
    data = load(tmp_path)
    assert data.test_y is not None
    assert (len(data.train_y), len(data.test_y), data.classes) == (6, 4, ("a", "b"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a\n1\n2\n", "has the column 'a' only"),
        ("a,b\n1,\n2,\n", "has no row with a value in b"),
        ("a,b\n1,2\n1,3\n", "has no column to learn b from"),
        ("a,b\n1,x\n2,x\n", "one class only"),
        ("a,b\n1,x,3\n", "3 cells in line 2"),
        ("", "is empty"),
    ],
)
def test_a_broken_table_is_refused_in_one_sentence(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(RequestError, match=sentence) as caught:
        load(tmp_path / "a.csv")
    assert "\n" not in str(caught.value)


def test_other_broken_tables(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(RequestError, match="cannot be read as a Parquet file"):
        load(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"a": 1, "b": [1]}\n')
    with pytest.raises(RequestError, match="column 'b' holds a list"):
        load(tmp_path / "a.jsonl")
    with pytest.raises(RequestError, match="has no column 'c'; its columns are"):
        load(pd.DataFrame(TABLE), label="c")


cells = st.one_of(st.none(), st.text(max_size=5), st.integers(), st.floats(), st.booleans(), st.dates())


@given(st.lists(st.tuples(cells, cells), min_size=3, max_size=12))
def test_any_table_is_read_or_refused_in_one_sentence(rows: list[tuple[Any, Any]]) -> None:
    columns = {name: np.array([row[i] for row in rows] + [None], dtype=object)[:-1] for i, name in enumerate("ab")}
    frame = pd.DataFrame({**columns, "y": [i % 2 for i in range(len(rows))]})
    try:
        data = load(frame)
    except RequestError as error:
        sentence = str(error)
    else:
        sentence = ""
        assert bool(torch.isfinite(data.train_x).all())
    assert "\n" not in sentence
