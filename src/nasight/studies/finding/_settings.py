"""What a find was asked for, and its data with a test part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from nasight.data import Dataset, select_rows, split_indices
from nasight.errors import RequestError
from nasight.reproducible import generator_for
from nasight.runs import is_code
from nasight.studies.finding._planning import SHARES

TEST_SHARE = 0.2
TOLERANCE = 1e-6
DATA_SEED = 0
EDITION = 2
"""Since the second, finds with a target that they do not reach race whole trainings by accuracy alone, and what stands
for a reference over a limit prefers the options of the reference."""


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
    edition: int = 1
    """Of the rules by which it decides; a find of before there were editions has none."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Of the budget, for the parts of which another one was asked for."""


def divided(asked: Mapping[str, float], usual: Mapping[str, float] = SHARES) -> dict[str, float]:
    """The share of every part: those that were asked for; the others divide the rest as they would divide all.

    >>> divided({"race": 0.5}, {"race": 0.6, "recipe": 0.2, "answer": 0.2})
    {'race': 0.5, 'recipe': 0.25, 'answer': 0.25}
    """
    rest = 1 - sum(asked.values())
    others = sum(share for part, share in usual.items() if part not in asked)
    return {part: asked.get(part, share * rest / others if others else 0) for part, share in usual.items()}


def leg_seed(seed: int, number: int = 0) -> int:
    """The first seed of a leg: far enough from those of other finds and legs that none of theirs is used again."""
    return 10_000 * seed + 100 * number


def is_own(space: str) -> bool:
    """Whether the space of a find is the user's: a model, or code in a file."""
    return space == "module" or is_code(space)


def read_shares(given: str | Mapping[str, float] | None) -> dict[str, float]:
    """Shares of a budget, such as "race=0.5,recipe=0.05"; the parts that are not named divide the rest.

    >>> read_shares("race=0.5, recipe=0.05")
    {'race': 0.5, 'recipe': 0.05}
    """
    if isinstance(given, str):
        pairs = [part.partition("=")[::2] for part in given.split(",") if part.strip()]
        try:
            given = {name.strip(): float(value) for name, value in pairs}
        except ValueError:
            raise RequestError(f"shares are written race=0.5,recipe=0.05, got {given!r}") from None
    found = dict(given or {})
    for name, share in found.items():
        if name not in SHARES:
            raise RequestError(f"a budget has no part {name!r}, only {', '.join(SHARES)}")
        if not 0 < share < 1:
            raise RequestError(f"the share of {name} must be between 0 and 1, got {share}")
    total = sum(found.values())
    if len(found) == len(SHARES):
        if abs(total - 1) >= TOLERANCE:
            raise RequestError(f"the shares of all parts must add up to 1, not to {total:g}")
    elif total >= 1:
        raise RequestError(f"the shares add up to {total:g}, which leaves nothing for the other parts")
    return found


def with_test_part(data: Dataset) -> Dataset:
    """The data set with a test part; where it has none, a fifth of its training rows, set aside first of all."""
    if data.test_x is not None:
        return data
    rows = len(data.train_y)
    held = max(round(TEST_SHARE * rows), data.fewest)
    if rows - held < 4 * data.fewest:
        raise RequestError(f"{rows} rows are too few for {data.outputs_text}: a find sets a fifth of them aside")
    test, train = split_indices(data.strata, [held, rows - held], generator_for(DATA_SEED, "test part"))
    if data.task.kind == "classes":
        # A class with a single row cannot be in both parts: what nobody can learn is not asked.
        alone = torch.bincount(data.train_y)[data.train_y[test]] == 1
    else:
        # The same of a row without which a label, or a number, would be the same in all rows.
        y, one = data.train_y[test], data.train_y[train[:1]]
        alone = ((y != one) & (data.train_y[train] == one).all(0)).any(1)
    if not alone.all():
        test, train = test[~alone], torch.cat([train, test[alone]]).sort().values
    # The units of numbers are those of the rows that are left to learn from.
    return replace(select_rows(data, train, test), task=data.task.fitted(data.train_y[train]))
