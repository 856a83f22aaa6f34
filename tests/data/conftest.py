"""Shared by the tests of the data room: one thread, and the published files where they can be had."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nasight.data import Dataset, available, load

torch.set_num_threads(1)


@pytest.fixture
def published() -> Callable[[str], Dataset]:
    """Loads a published data set from $NASIGHT_DATA, or skips the test."""

    def get(name: str) -> Dataset:
        folder = os.environ.get("NASIGHT_DATA")
        if not folder:
            pytest.skip("NASIGHT_DATA names no data folder")
        if not next(row.here for row in available(folder) if row.name == name):
            pytest.skip(f"{name} is not in {Path(folder)}")
        return load(name, folder=folder)

    return get
