"""Gradient boosting as a control: what people take for tables, on the same rows and judged by the same ones."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasight.data import Dataset, Task, take
from nasight.reproducible import generator_for, threads
from nasight.studies.finding._race import Outcome
from nasight.training import Job, parts

CERTAIN = 1e-6
TREES = 100
"""Rounds of scikit-learn's usual settings: a tree for each class, or label."""
ALL_TREES = 1
"""The epochs of a training that has all of them; other numbers are the rounds themselves."""
STOPPED_EARLY = 10_000
"""With more rows scikit-learn holds some back to stop early, and only then does the seed play a role."""
SAMPLE, FEW = 4_000, 4
"""Rows and rounds by which time is measured."""


def boosting_seconds(job: Job, number: int) -> float:
    """Seconds that all rounds would take on all rows, from a few rounds on some of them; rather too many.

    The first fit of a process does not count: scikit-learn is imported there.
    """
    data = job.data
    count = len(data.train_y)
    some = torch.randperm(count, generator=generator_for(job.seed, "boosting"))[:SAMPLE].sort().values
    x, y = take(data.train_x, some).numpy(), data.train_y[some].numpy()
    took = []
    with threads(number):
        for trees in (1, 1, FEW):
            start = time.perf_counter()
            _model(data.task, job.seed, job.settings.class_weights, False, trees).fit(
                x, y[:, 0] if _one_number(data) else y
            )
            took.append(time.perf_counter() - start)
    _, one, few = took
    each = max(0.0, few - one) / (FEW - 1)
    return (one + (TREES - 1) * each) * count / len(some)


def train_boosting(job: Job, number: int) -> Outcome:
    """scikit-learn's histogram gradient boosting with its usual settings, on the rows of a job; `number` of threads.

    It learns from the numbers that networks get: categories as 0 and 1, missing values filled and flagged. The seed
    decides what early stopping, which begins at 10,000 rows, holds back; there is none where a class or a label has a
    single row. Where there is no time for all rounds, the epochs of the job say how many there are.
    """
    start, data = time.perf_counter(), job.data
    rows, held_out, _ = parts(data, job.settings)
    learned = torch.arange(len(data.train_y)) if rows is None else rows
    judge_x, judge_y = (
        (take(data.train_x, held_out), data.train_y[held_out]) if held_out is not None else (data.test_x, data.test_y)
    )
    assert judge_x is not None
    assert judge_y is not None
    with threads(number):
        labels = data.train_y[learned].numpy()
        early_stopping = False if _has_single(data.task, labels) else "auto"
        trees = TREES if job.settings.epochs == ALL_TREES else job.settings.epochs
        model = _model(data.task, job.seed, job.settings.class_weights, early_stopping, trees)
        model.fit(take(data.train_x, learned).numpy(), labels[:, 0] if _one_number(data) else labels)
        outputs = _outputs(model, data, judge_x.numpy())
    scores = job.task.rows(outputs, judge_y)
    return Outcome(100.0 * float(scores.float().mean()), scores.numpy(), time.perf_counter() - start)


def _has_single(task: Task, labels: NDArray[Any]) -> bool:
    """Whether a class has a single row, or a label a single row with or without it: a split cannot divide them."""
    if task.kind == "numbers":
        return False
    columns = labels.T if task.kind == "labels" else labels[None]
    return any(bool((np.unique(column, return_counts=True)[1] < 2).any()) for column in columns)


def _one_number(data: Dataset) -> bool:
    return data.task.kind == "numbers" and data.n_classes == 1


def _model(
    task: Task, seed: int, class_weights: str | None, early_stopping: str | bool = "auto", trees: int = TREES
) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

    how: dict[str, Any] = {"random_state": seed, "early_stopping": early_stopping, "max_iter": trees}
    if task.kind == "classes":
        return HistGradientBoostingClassifier(class_weight=class_weights, **how)
    if task.kind == "labels":
        return MultiOutputClassifier(HistGradientBoostingClassifier(**how))
    one = HistGradientBoostingRegressor(**how)
    return one if len(task.center) == 1 else MultiOutputRegressor(one)


def _outputs(model: Any, data: Dataset, x: NDArray[Any]) -> Tensor:
    """What a network would give for the same predictions: logarithms of probabilities, or numbers in standard units."""
    if data.task.kind == "numbers":
        found = torch.from_numpy(np.asarray(model.predict(x), dtype=np.float64).reshape(len(x), -1))
        return data.task.standard(found)
    if data.task.kind == "labels":
        # A label that all rows have, or none, is a single class, whose probabilities come first.
        columns = [0 if list(known) == [1] else 1 for known in model.classes_]
        shares = np.stack([each[:, at] for each, at in zip(model.predict_proba(x), columns, strict=True)], 1)
        return torch.logit(torch.from_numpy(shares), eps=CERTAIN)
    shares = np.full((len(x), data.n_classes), CERTAIN)
    shares[:, model.classes_] = model.predict_proba(x)
    return torch.from_numpy(np.log(np.maximum(shares, CERTAIN)))
