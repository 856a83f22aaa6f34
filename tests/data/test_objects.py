"""What a Python program has in its hands: torch's data sets and loaders, frames with labels beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from torch.utils.data import Dataset as TorchDataset

from nasight.data import load
from nasight.errors import RequestError

X = torch.arange(12 * 64, dtype=torch.float32).reshape(12, 1, 8, 8)
Y = torch.arange(12) % 3


class Pairs(TorchDataset[Any]):
    classes = ("ant", "bee", "cat")

    def __len__(self) -> int:
        return 12

    def __getitem__(self, row: int) -> tuple[Any, int]:
        return X[row], int(Y[row])


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter([{"pixels": X[i], "label": Y[i]} for i in range(12)])


@pytest.mark.parametrize(
    "source",
    [
        Pairs(),
        Stream(),
        TensorDataset(X, Y),
        DataLoader(Pairs(), batch_size=5, shuffle=True),
        DataLoader(Stream(), batch_size=5),
        DataLoader(TensorDataset(X, Y), batch_size=None),
        (X, Y),
        (X.numpy(), Y.numpy()),
    ],
    ids=[
        "Dataset",
        "IterableDataset",
        "TensorDataset",
        "DataLoader",
        "of a stream",
        "without batches",
        "torch",
        "numpy",
    ],
)
def test_every_source_gives_the_same_rows_in_their_own_order(source: Any) -> None:
    assert load(source).fingerprint == load((X, Y)).fingerprint


def test_class_names_of_a_torch_data_set_are_kept_and_a_second_one_tests() -> None:
    data = load((Pairs(), TensorDataset(X[:4], Y[:4])))
    assert data.classes == ("ant", "bee", "cat")
    assert data.test_y is not None
    assert data.test_y.tolist() == Y[:4].tolist()


def test_a_torch_data_set_can_hold_numbers_and_several_labels() -> None:
    assert load(TensorDataset(X, torch.rand(12, 2))).task.kind == "numbers"
    assert load(TensorDataset(X, torch.tensor([[1, 1], [0, 1], [0, 0]] * 4))).task.kind == "labels"
    assert load(TensorDataset(X, Y), task="numbers").task.kind == "numbers"


def test_a_frame_with_its_labels_beside_it_is_a_table() -> None:
    frame = pd.DataFrame({"a": np.arange(12.0), "b": ["x", "y"] * 6})
    whole = load(frame.assign(label=Y.numpy()))
    assert load((frame, Y.numpy())).fingerprint == load((frame, pd.Series(Y.numpy()))).fingerprint == whole.fingerprint
    with pytest.raises(RequestError, match="the frame has 12 rows, but there are 3 labels"):
        load((frame, [1, 2, 3]))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (TensorDataset(X), "must be pairs"),
        (TensorDataset(X[:0], Y[:0]), "has no rows"),
        ([(X, Y)], "got 1 arrays"),
        (object(), "a frame or a torch Dataset or DataLoader, got a object"),
    ],
)
def test_other_things_are_refused_in_one_sentence(source: Any, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        load(source)


def test_rows_of_different_shapes_are_refused() -> None:
    class Uneven(Pairs):
        def __getitem__(self, row: int) -> tuple[Any, int]:
            return X[row, :, : 8 - row % 2], 0

    with pytest.raises(RequestError, match=r"row 1 of the Uneven has shape \(1, 7, 8\), row 0 has \(1, 8, 8\)"):
        load(Uneven())
