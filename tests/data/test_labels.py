"""Labels of every kind become class numbers, several labels or numbers, and keep their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nasight.data import load
from nasight.data._labels import read_labels
from nasight.errors import RequestError


@pytest.mark.parametrize(
    ("y", "names", "numbers"),
    [
        (["dog", "cat", "dog"], ("cat", "dog"), [1, 0, 1]),
        (np.array(["10", "9", "10"]), ("9", "10"), [1, 0, 1]),
        (np.array([b"x", b"y", b"x"]), ("x", "y"), [0, 1, 0]),
        ([7, -3, 7], ("-3", "7"), [1, 0, 1]),
        (np.array([2**40, 5, 5]), ("5", str(2**40)), [1, 0, 0]),
        ([0, 1, 2], ("0", "1", "2"), [0, 1, 2]),
        ([1.0, 2.0, 1.0], ("1", "2"), [0, 1, 0]),
        ([True, False, True], ("False", "True"), [1, 0, 1]),
        (np.array([True, False, None])[:2], ("False", "True"), [1, 0]),
        (np.array(["a", 3, "a"], dtype=object), ("3", "a"), [1, 0, 1]),
        (np.eye(3)[[2, 0, 1]], ("0", "1", "2"), [2, 0, 1]),
        (torch.eye(3, dtype=torch.int64)[[2, 0, 1]], ("0", "1", "2"), [2, 0, 1]),
        (torch.tensor([[1], [0], [1]]), ("0", "1"), [1, 0, 1]),
    ],
)
def test_classes_keep_their_names_in_the_order_of_the_labels(
    y: Any, names: tuple[str, ...], numbers: list[int]
) -> None:
    found = read_labels(y)
    assert (found.task.kind, found.names, found.train.tolist()) == ("classes", names, numbers)
    assert found.train.dtype == torch.int64


def test_rows_of_zeros_and_ones_or_lists_of_names_are_several_labels() -> None:
    matrix = read_labels([[1, 1, 0], [0, 1, 0], [0, 0, 0]])
    named = read_labels([["cat", "red"], {"red"}, ()], [["cat"], []])
    assert matrix.task.kind == named.task.kind == "labels"
    assert named.names == ("cat", "red")
    assert named.train.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert named.test is not None
    assert named.test.tolist() == [[1, 0], [0, 0]]


def test_fractions_are_numbers_and_whole_numbers_too_where_that_is_asked_for() -> None:
    assert read_labels([0.5, 1.0, 2.0]).train.tolist() == [[0.5], [1.0], [2.0]]
    asked = read_labels([10, 20, 60], kind="numbers")
    assert asked.task.center == pytest.approx((30.0,))
    assert asked.task.scale == pytest.approx((np.std([10, 20, 60]),))
    assert read_labels(np.random.default_rng(0).random((4, 3))).names == ("0", "1", "2")


def test_what_is_asked_for_must_fit_the_labels() -> None:
    with pytest.raises(RequestError, match=r"whole numbers to be classes, got 0\.5"):
        read_labels([0.5, 1.0], kind="classes")
    with pytest.raises(RequestError, match="must hold numbers for task 'numbers', got names such as 'a'"):
        read_labels(["a", "b"], kind="numbers")
    with pytest.raises(RequestError, match="a task is one of classes, labels, numbers, got 'regression'"):
        read_labels([1, 2], kind="regression")


def test_numbers_are_split_so_that_small_and_large_ones_are_in_both_parts() -> None:
    y = np.linspace(0, 1, 200) ** 4
    data = load((np.zeros((200, 3)), y))
    part, rest = data.split(0.2, torch.Generator().manual_seed(0))
    places = torch.argsort(torch.argsort(data.train_y[:, 0]))[part]
    assert torch.bincount(places * 10 // 200, minlength=10).tolist() == [4] * 10
    assert sorted([*part.tolist(), *rest.tolist()]) == list(range(200))
