"""Losses and scores of every task, against scikit-learn and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn import metrics
from torch.nn import functional

from nasight.data import Task, Units, figures, majority_warning
from nasight.data._labels import read_labels
from nasight.errors import RequestError

CHANCE = np.random.default_rng(3)


def test_scores_of_numbers_are_those_of_scikit_learn() -> None:
    y = CHANCE.normal(100.0, 30.0, (50, 2))
    labels = read_labels(y)
    outputs = torch.from_numpy(CHANCE.normal(size=(50, 2)))
    guessed = labels.task.predictions(outputs).numpy()
    true = labels.train.double().numpy()
    assert labels.task.score(outputs, labels.train) == pytest.approx(100 * metrics.r2_score(true, guessed))
    found = figures(labels.task, ("a", "b"), outputs, labels.train)
    assert found["each"]["b"]["MAE"] == pytest.approx(metrics.mean_absolute_error(true[:, 1], guessed[:, 1]))
    assert found["each"]["a"]["RMSE"] == pytest.approx(metrics.root_mean_squared_error(true[:, 0], guessed[:, 0]))
    exact = (labels.train - torch.tensor(labels.task.center)) / torch.tensor(labels.task.scale)
    assert labels.task.score(exact, labels.train) == pytest.approx(100.0)
    assert labels.task.score(torch.zeros(50, 2), labels.train) == pytest.approx(0.0, abs=1e-6)


def test_scores_of_several_labels_are_those_of_scikit_learn() -> None:
    y = torch.from_numpy(CHANCE.integers(0, 2, (40, 5))).float()
    y[3] = 0
    outputs = torch.from_numpy(CHANCE.normal(size=(40, 5))).float()
    outputs[3] = -1
    said, task = (outputs > 0).numpy(), Task("labels")
    expected = metrics.f1_score(y.numpy(), said, average="samples", zero_division=1)
    assert task.score(outputs, y) == pytest.approx(100 * expected)
    exact = Task("labels", metric="exact match").score(outputs, y)
    assert exact == pytest.approx(100 * metrics.accuracy_score(y.numpy(), said))
    assert float(task.loss(outputs, y)) == pytest.approx(
        float(functional.binary_cross_entropy_with_logits(outputs, y)), rel=1e-6
    )


def test_balanced_accuracy_and_figures_of_classes_are_those_of_scikit_learn() -> None:
    y = torch.from_numpy(CHANCE.choice(3, 60, p=[0.8, 0.15, 0.05]))
    outputs = torch.from_numpy(CHANCE.normal(size=(60, 3)))
    outputs[:, 0] += 1
    said = outputs.argmax(1).numpy()
    balanced = 100 * metrics.balanced_accuracy_score(y.numpy(), said)
    assert Task(metric="balanced accuracy").score(outputs, y) == pytest.approx(balanced)
    halves = [
        Task(metric="balanced accuracy").rows(o, t, y) for o, t in ((outputs[:30], y[:30]), (outputs[30:], y[30:]))
    ]
    assert 100 * float(torch.cat(halves).mean()) == pytest.approx(balanced)
    found = figures(Task(), ("a", "b", "c"), outputs, y)
    assert found["accuracy"] == pytest.approx(100 * metrics.accuracy_score(y.numpy(), said))
    assert found["balanced accuracy"] == pytest.approx(balanced)
    precision, recall, _, rows = metrics.precision_recall_fscore_support(y.numpy(), said, zero_division=np.nan)
    for i, row in enumerate(found["each"].values()):
        assert row["recall"] == pytest.approx(100 * recall[i])
        assert row["precision"] == pytest.approx(100 * precision[i])
        assert row["rows"] == rows[i]


def test_balanced_weights_are_those_of_scikit_learn_and_let_every_class_count_alike() -> None:
    from sklearn.utils.class_weight import compute_class_weight

    y = torch.tensor([0] * 90 + [1] * 9 + [2])
    task = Task().balanced(y, 3)
    assert task.weights == pytest.approx(compute_class_weight("balanced", classes=np.arange(3), y=y.numpy()))
    outputs = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    each = functional.cross_entropy(outputs, y, reduction="none")
    means = [float(each[y == c].mean()) for c in range(3)]
    assert float(task.loss(outputs, y)) == pytest.approx(sum(means) / 3, rel=1e-5)
    with pytest.raises(RequestError, match="class weights are for classes"):
        Task("numbers").balanced(y, 3)


def test_the_majority_is_named_where_it_scores_as_high() -> None:
    y = torch.tensor([0] * 290 + [1] * 6)
    blind = figures(Task(), ("sound", "broken"), torch.tensor([[1.0, 0.0]]).expand(296, 2), y)
    assert blind["accuracy"] == pytest.approx(97.97, abs=0.01)
    assert blind["balanced accuracy"] == 50.0
    warning = majority_warning(blind)
    assert warning is not None
    assert "'sound'" in warning
    sharp = figures(Task(), ("sound", "broken"), functional.one_hot(y, 2).float(), y)
    assert majority_warning(sharp) is None


def test_the_usual_loss_of_classes_is_bit_for_bit_the_cross_entropy() -> None:
    outputs, y = torch.randn(16, 5, generator=torch.Generator().manual_seed(0)), torch.arange(16) % 5
    assert torch.equal(Task().loss(outputs, y), functional.cross_entropy(outputs, y))
    assert torch.equal(
        Task().loss(outputs, y, smoothing=0.1), functional.cross_entropy(outputs, y, label_smoothing=0.1)
    )
    total = functional.cross_entropy(outputs, y, reduction="sum")
    assert torch.equal(Task().loss(outputs, y, reduction="sum"), total)


def test_a_loss_and_a_metric_of_ones_own_give_one_number_or_one_for_each_row() -> None:
    labels = read_labels([1.5, 2.5, 4.0])
    outputs = torch.tensor([[0.0], [1.0], [2.0]])
    huber = labels.task.with_own(functional.huber_loss, None)
    assert float(huber.loss(outputs, labels.train)) == pytest.approx(
        float(functional.huber_loss(outputs, labels.task.standard(labels.train)))
    )
    near = labels.task.with_own(None, lambda guess, y: (guess - y).abs() < 1)
    assert near.rows(outputs, labels.train).shape == (3,)
    one = labels.task.with_own(None, lambda guess, y: 0.25)
    assert one.score(outputs, labels.train) == 25.0
    with pytest.raises(
        RequestError, match=r"a metric must give one number, or one for each of 3 rows, got shape \(2,\)"
    ):
        labels.task.with_own(None, lambda guess, y: torch.zeros(2)).rows(outputs, labels.train)
    with pytest.raises(RequestError, match="a loss must give one number"):
        labels.task.with_own(lambda guess, y: 1.0, None).loss(outputs, labels.train)  # type: ignore[arg-type,return-value]
    with pytest.raises(RequestError, match="the metrics for numbers are R2"):
        Task("numbers", metric="accuracy")


def test_a_task_goes_to_plain_values_and_back() -> None:
    task = read_labels([1.5, 2.5, 4.0]).task
    assert Task.from_dict(task.to_dict()) == task
    assert Units("accuracy").difference(1.234, sign=True) == "+1.23 points"
