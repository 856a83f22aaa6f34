"""What the predictions of a network come to, beyond its one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from nasight.data._task import Task


def figures(task: Task, names: Sequence[str], outputs: Tensor, y: Tensor) -> dict[str, Any]:
    """Figures of judged rows, as plain values; scores are in percent, errors in the units of y.

    Classes: accuracy, balanced accuracy (the mean of the recalls), the accuracy of always saying the most frequent
    class, and for each class its rows, recall and precision. Labels: F1, exact match, and for each label its rows,
    recall and precision. Numbers: R2 and the root of the mean squared error and the mean absolute error of each number.

    Parameters
    ----------
    task : what the labels ask for.
    names : of the classes, labels or numbers.
    outputs, y : of a network for the judged rows, (n, k), and their labels.
    """
    found: dict[str, Any] = {"metric": task.units.metric, "score": task.score(outputs, y)}
    if task.kind == "numbers":
        return {**found, **_numbers(task, names, outputs, y)}
    if task.kind == "labels":
        chosen, true = outputs > 0, y > 0.5
        scores = {
            "F1": Task("labels").score(outputs, y),
            "exact match": 100 * float((chosen == true).all(1).double().mean()),
        }
        return {**found, **scores, "each": _each(names, chosen, true)}
    k = len(names)
    chosen = torch.nn.functional.one_hot(outputs.argmax(1), k).bool()
    true = torch.nn.functional.one_hot(y, k).bool()
    each = _each(names, chosen, true)
    recalls = [row["recall"] for row in each.values() if row["recall"] is not None]
    most = max(each, key=lambda name: each[name]["rows"])
    return {
        **found,
        "accuracy": 100.0 * int((chosen & true).sum()) / len(y),
        "balanced accuracy": sum(recalls) / len(recalls),
        "majority": {"class": most, "accuracy": 100.0 * each[most]["rows"] / len(y)},
        "each": each,
    }


def _each(names: Sequence[str], chosen: Tensor, true: Tensor) -> dict[str, dict[str, Any]]:
    """Rows, recall and precision of each class or label, in percent; None where there is nothing to divide by."""
    both, said, there = (part.sum(0).tolist() for part in (chosen & true, chosen, true))
    return {
        name: {
            "rows": there[i],
            "recall": 100.0 * both[i] / there[i] if there[i] else None,
            "precision": 100.0 * both[i] / said[i] if said[i] else None,
        }
        for i, name in enumerate(names)
    }


def _numbers(task: Task, names: Sequence[str], outputs: Tensor, y: Tensor) -> dict[str, Any]:
    error = task.predictions(outputs.double()) - y
    each = {
        name: {"RMSE": float(error[:, i].square().mean().sqrt()), "MAE": float(error[:, i].abs().mean())}
        for i, name in enumerate(names)
    }
    return {"R2": Task("numbers", task.center, task.scale).score(outputs, y), "each": each}


def majority_warning(found: Mapping[str, Any]) -> str | None:
    """A sentence where always saying the most frequent class would score as high; None where it would not.

    >>> majority_warning({"accuracy": 98.3, "majority": {"class": "healthy", "accuracy": 98.3}})[:57]
    "always saying 'healthy' would have an accuracy of 98.30 %"
    """
    majority = found.get("majority")
    if not majority or found["accuracy"] > majority["accuracy"]:
        return None
    return (
        f"always saying {majority['class']!r} would have an accuracy of {majority['accuracy']:.2f} % too: look at the "
        "balanced accuracy, and let every class count alike (--class-weights balanced)"
    )


def telling_lines(found: Mapping[str, Any]) -> list[str]:
    """Those of `figure_lines` that say more than the score: of each class only where classes differ in size."""
    if not found:
        return []
    rows = [each.get("rows", 0) for each in found.get("each", {}).values()]
    uneven = found["metric"] != "accuracy" or max(rows) >= 2 * max(min(rows), 1)
    return figure_lines(found) if uneven else figure_lines(found)[:1]


def figure_lines(found: Mapping[str, Any], most: int = 12) -> list[str]:
    """The figures as lines to print: balanced accuracy and classes where classes differ in size, errors of numbers."""
    each = found.get("each", {})
    if "RMSE" in next(iter(each.values()), {}):
        return [
            f"{name}: RMSE {_error(row['RMSE'])}, MAE {_error(row['MAE'])}" for name, row in list(each.items())[:most]
        ]
    lines = []
    if "balanced accuracy" in found:
        lines.append(f"balanced accuracy {found['balanced accuracy']:.2f} %")
    if "exact match" in found:
        lines.append(f"all labels of a row right: {found['exact match']:.2f} %")
    for name, row in list(each.items())[:most]:
        lines.append(
            f"{name}: recall {_percent(row['recall'])}, precision {_percent(row['precision'])}, {row['rows']} rows"
        )
    if len(each) > most:
        lines.append(f"and {len(each) - most} more")
    return lines


def _error(value: float) -> str:
    """An error in the unit of its number, with at least four digits and no power of ten where that is readable."""
    return f"{value:,.0f}" if 1e4 <= value < 1e12 else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"
