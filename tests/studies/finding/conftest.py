from dataclasses import replace
from pathlib import Path

import pytest

from nasight.data import Dataset, load


@pytest.fixture(scope="session")
def few_digits() -> Dataset:
    """A part of the digits that trains in no time."""
    data = load("digits")
    assert data.test_x is not None
    assert data.test_y is not None
    parts = {"train_x": data.train_x[:300], "train_y": data.train_y[:300]}
    return replace(data, **parts, test_x=data.test_x[:120], test_y=data.test_y[:120], name="few digits")


@pytest.fixture(scope="session")
def few_digits_file(few_digits: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a file, for commands."""
    import numpy as np

    file = tmp_path_factory.mktemp("data") / "few.npz"
    np.savez(
        file,
        x=few_digits.train_x.numpy(),
        y=few_digits.train_y.numpy(),
    )
    return file
