"""What a find was asked for, and its data with a test part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nasight.data import Dataset, select_rows, split_indices
from nasight.errors import RequestError
from nasight.reproducible import generator_for

TEST_SHARE = 0.2
DATA_SEED = 0


@dataclass(frozen=True)
class FindSettings:
    """What a find was asked for; a resumed one obeys it."""

    space: str
    space_options: dict[str, Any]
    data: str
    method: str
    seed: int
    size: dict[str, int]
    search_size: dict[str, int]
    target: str | None
    baseline: str | None
    max_params: int | None
    max_latency: float | None
    level: float
    workers: int
    batch_size: int
    trainings: int | None
    epochs: int | None
    device: str = "cpu"
    augment: str | None = None
    """The random changes of images that were asked for; None: those that help the baseline."""
    class_weights: str | None = None
    precision: str = "32"


def with_test_part(data: Dataset) -> Dataset:
    """The data set with a test part; where it has none, a fifth of its training rows, set aside first of all."""
    if data.test_x is not None:
        return data
    rows = len(data.train_y)
    held = max(round(TEST_SHARE * rows), data.fewest)
    if rows - held < 4 * data.fewest:
        raise RequestError(f"{rows} rows are too few for {data.outputs_text}: a find sets a fifth of them aside")
    test, train = split_indices(data.strata, [held, rows - held], generator_for(DATA_SEED, "test part"))
    # The units of numbers are those of the rows that are left to learn from.
    return replace(select_rows(data, train, test), task=data.task.fitted(data.train_y[train]))
