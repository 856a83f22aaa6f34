"""Shared by the tests of the tables room: one real table, one made in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import synthetic_table

from nasight.tables import Table, load
from nasight.tables._readers import FILE


@pytest.fixture(scope="session")
def csv_path(data_folder: Path) -> Path:
    if not (data_folder / FILE).is_file():
        pytest.skip(f"{FILE} is not in the data folder")
    return data_folder / FILE


@pytest.fixture(scope="session")
def published(csv_path: Path) -> Table:
    """NAS-Bench-201."""
    return load(csv_path)


@pytest.fixture(scope="session")
def small() -> Table:
    return synthetic_table()
