"""What the labels ask for: one class, several labels or numbers; and the loss, the score and the units that follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from nasight.compute import has_double, to_device, to_host
from nasight.errors import RequestError

Kind = Literal["classes", "labels", "numbers"]
KINDS: tuple[Kind, ...] = ("classes", "labels", "numbers")
METRICS: dict[Kind, tuple[str, ...]] = {
    "classes": ("accuracy", "balanced accuracy"),
    "labels": ("F1", "exact match"),
    "numbers": ("R2",),
}
"""The scores that are known by name, the usual one of each kind first."""
PERCENT = ("accuracy", "balanced accuracy", "exact match")
STRATA = 10
"""Parts of equal size into which numbers are cut, so that a split has small and large ones in proportion."""

LossFunction = Callable[[Tensor, Tensor], Tensor]
Metric = Callable[[Tensor, Tensor], Any]

PLAIN = (("classes", None), ("classes", "accuracy"))
"""Scores that need no float64; others are taken on the CPU where a device has none."""


@dataclass(frozen=True)
class Units:
    """How a score and a loss are written. Scores are kept as 100 times a mean over rows, and more is better.

    Parameters
    ----------
    metric : what the score is called.
    loss : the unit of the loss: "nats", or nothing where it has none that is known.

    >>> Units("accuracy").text(97.314), Units("R2").text(97.314), Units("R2").difference(-1.5)
    ('97.31 %', 'R2 0.9731', '-0.0150 of R2')
    """

    metric: str = "accuracy"
    loss: str = "nats"

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Units:
        """The units of a result or of a row of a history, which keep what is not usual of them."""
        metric = str(kept.get("metric", "accuracy"))
        return cls(metric, str(kept.get("loss_unit", "" if metric in METRICS["numbers"] else "nats")))

    def kept(self) -> dict[str, str]:
        """What a result keeps of them: `of` reads it."""
        found = {"metric": self.metric}
        return found if Units.of(found) == self else {**found, "loss_unit": self.loss}

    @property
    def percent(self) -> bool:
        return self.metric in PERCENT

    @property
    def axis(self) -> str:
        """What stands at an axis of scores, drawn as `drawn` gives them."""
        return f"{self.metric}, %" if self.percent else self.metric

    @property
    def loss_axis(self) -> str:
        """What stands at an axis of losses."""
        return f"loss, {self.loss}" if self.loss else "loss"

    @property
    def noun(self) -> str:
        """What a network with this score gives: classes, labels or numbers; outputs where the score is one's own."""
        return next((kind for kind, metrics in METRICS.items() if self.metric in metrics), "outputs")

    def drawn(self, score: float) -> float:
        """A score as it is drawn: in percent, or as the metric gives it."""
        return score if self.percent else score / 100

    def text(self, score: float, *, digits: int = 2) -> str:
        """A score with its unit."""
        return f"{score:.{digits}f} %" if self.percent else f"{self.metric} {score / 100:.{digits + 2}f}"

    def number(self, score: float, *, sign: bool = False) -> str:
        """A score without its unit."""
        plus = "+" if sign else ""
        return f"{score:{plus}.2f}" if self.percent else f"{score / 100:{plus}.4f}"

    def bare(self, score: float) -> str:
        """A score beside the name of its metric: with its unit, without that name."""
        return self.number(score) + (" %" if self.percent else "")

    def difference(self, points: float, *, sign: bool = False) -> str:
        """A difference of two scores with its unit."""
        plus = "+" if sign else ""
        return f"{points:{plus}.2f} points" if self.percent else f"{points / 100:{plus}.4f} of {self.metric}"


@dataclass(frozen=True)
class Task:
    """What is learned from the labels of a data set.

    Parameters
    ----------
    kind : "classes" (one of several, y (n,) as int64), "labels" (any of several, y (n, k) of 0 and 1 as float32) or
        "numbers" (y (n, k) as float32).
    center, scale : of each number, mean and deviation: networks learn numbers in these units.
    weights : of each class in the loss; None for 1.
    own_loss : in place of the usual one: (outputs, y) -> a mean, or one number for each row. Numbers come in standard
        units.
    metric : the score: a name in `METRICS`, or (predictions, y) -> one number for all rows or for each, more is better.
        Predictions are probabilities (n, k), or numbers (n, k) in the units of y.
    """

    kind: Kind = "classes"
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    weights: tuple[float, ...] | None = None
    own_loss: LossFunction | None = None
    metric: str | Metric | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise RequestError(f"a task is one of {', '.join(KINDS)}, got {self.kind!r}")
        if isinstance(self.metric, str) and self.metric not in METRICS[self.kind]:
            known = ", ".join(METRICS[self.kind])
            raise RequestError(
                f"the metrics for {self.kind} are {known}, or a function of your own, got {self.metric!r}"
            )

    @property
    def units(self) -> Units:
        """How its score is called and written."""
        loss = "nats" if self.kind != "numbers" and self.own_loss is None else ""
        if self.metric is None or isinstance(self.metric, str):
            return Units(self.metric or METRICS[self.kind][0], loss)
        return Units(getattr(self.metric, "__name__", type(self.metric).__name__), loss)

    def with_own(self, loss: LossFunction | None, metric: str | Metric | None) -> Task:
        """The task with a loss and a metric in place of the usual ones, where they are given."""
        if loss is None and metric is None:
            return self
        if isinstance(metric, str):
            known = {name.lower(): name for name in METRICS[self.kind]}
            metric = known.get(metric.lower().replace("-", " "), metric)
        return replace(self, own_loss=loss or self.own_loss, metric=metric or self.metric)

    def to_dict(self) -> dict[str, Any]:
        """All but functions, as plain values."""
        metric = self.metric if isinstance(self.metric, str) else None
        values = {"kind": self.kind, "center": self.center, "scale": self.scale, "weights": self.weights}
        return {**values, "metric": metric}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Task:
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**given)

    def fitted(self, y: Tensor) -> Task:
        """The task with the units of these numbers; other tasks as they are."""
        if self.kind != "numbers":
            return self
        values = y.double()
        std = values.std(0, correction=0)
        std = std.where(std > 1e-9 * (1 + values.mean(0).abs()), 1.0)
        return replace(self, center=tuple(values.mean(0).tolist()), scale=tuple(std.tolist()))

    def balanced(self, y: Tensor, classes: int) -> Task:
        """The task with class weights n / (k n_c): every class counts alike, and the mean weight of a row is 1."""
        if self.kind != "classes":
            raise RequestError(f"class weights are for classes, and these data hold {self.kind}")
        counts = torch.bincount(y, minlength=classes).clamp(min=1).double()
        return replace(self, weights=tuple((len(y) / (classes * counts)).tolist()))

    def strata(self, y: Tensor) -> Tensor:
        """A class number of each row, (n,), by which splits are stratified: tenths of the first number."""
        if self.kind == "classes":
            return y
        if self.kind == "labels":
            return torch.zeros(len(y), dtype=torch.int64)
        order = torch.argsort(y[:, 0], stable=True)
        places = torch.empty_like(order)
        places[order] = torch.arange(len(y))
        return places * min(STRATA, len(y)) // len(y)

    def fewest(self, classes: int) -> int:
        """The rows that a part needs."""
        return classes if self.kind == "classes" else 2

    # Loss

    def loss(self, outputs: Tensor, y: Tensor, *, smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
        """The loss of a batch: the mean over its rows, or their sum.

        Parameters
        ----------
        outputs : of a network, (n, k).
        y : labels, as the kind has them.
        smoothing : the part of the target that all classes share.
        reduction : "mean" or "sum".
        """
        if self.own_loss is not None:
            return self._own(outputs, y, reduction)
        if self.kind == "classes":
            if self.weights is None:
                return functional.cross_entropy(outputs, y, label_smoothing=smoothing, reduction=reduction)
            weight = _like(self.weights, outputs)
            total = functional.cross_entropy(outputs, y, weight, label_smoothing=smoothing, reduction="sum")
            return total if reduction == "sum" else total / len(y)
        each = self.losses(outputs, y)
        return each.sum() if reduction == "sum" else each.mean()

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each row, (n,), without class weights."""
        if self.kind == "classes":
            return functional.cross_entropy(outputs, y, reduction="none")
        if self.kind == "labels":
            return functional.binary_cross_entropy_with_logits(outputs, y, reduction="none").mean(1)
        return (outputs - self.standard(y)).square().mean(1)

    def _own(self, outputs: Tensor, y: Tensor, reduction: str) -> Tensor:
        assert self.own_loss is not None
        found = self.own_loss(outputs, self.standard(y) if self.kind == "numbers" else y)
        if not isinstance(found, Tensor) or found.shape not in ((), (len(y),)):
            got = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else f"a {type(found).__name__}"
            raise RequestError(f"a loss must give one number, or one for each of {len(y)} rows, got {got}")
        mean = found.mean()
        return mean * len(y) if reduction == "sum" else mean

    def standard(self, y: Tensor) -> Tensor:
        """Numbers in standard units."""
        return (y - _like(self.center, y)) / _like(self.scale, y)

    def predictions(self, outputs: Tensor) -> Tensor:
        """What outputs mean: probabilities of classes or of labels, or numbers in the units of y; (n, k)."""
        if self.kind == "classes":
            return torch.softmax(outputs, 1)
        if self.kind == "labels":
            return torch.sigmoid(outputs)
        return outputs * _like(self.scale, outputs) + _like(self.center, outputs)

    # Score

    def rows(self, outputs: Tensor, y: Tensor, among: Tensor | None = None) -> Tensor:
        """The score of each row, (n,); their mean is the score. Whether a class is right, as bool, for accuracy.

        F1 of a row is 2 |found and true| / (|found| + |true|), 1 where both are empty. R2 of a row is 1 less its
        squared error over the variance of the labels, the mean over the numbers. A metric of your own that gives one
        number gives it to every row.

        Parameters
        ----------
        outputs, y : of the rows.
        among : the labels of all rows that are judged, if these are a part of them.
        """
        if self.metric is not None and not isinstance(self.metric, str):
            return self._own_rows(outputs, y)
        if not has_double(outputs.device) and (self.kind, self.metric) not in PLAIN:
            outputs, y, among = to_host((outputs, y, among))
        if self.kind == "classes":
            right = outputs.argmax(1) == y
            return right if self.metric in (None, "accuracy") else self._balanced_rows(right, y, among, outputs)
        if self.kind == "labels":
            found, true = outputs > 0, y > 0.5
            if self.metric == "exact match":
                return (found == true).all(1)
            size = (found.sum(1) + true.sum(1)).double()
            return torch.where(size > 0, 2 * (found & true).sum(1) / size.clamp(min=1), 1.0)
        squared = (self.predictions(outputs.double()) - y).square()
        return (1 - squared / _variance(y if among is None else among)).mean(1)

    def _balanced_rows(self, right: Tensor, y: Tensor, among: Tensor | None, outputs: Tensor) -> Tensor:
        judged = y if among is None else among
        counts = torch.bincount(judged, minlength=outputs.shape[1]).double()
        return right.double() * len(judged) / (int((counts > 0).sum()) * counts[y].clamp(min=1))

    def _own_rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        assert callable(self.metric)
        target = y[:, 0] if self.kind == "numbers" and y.shape[1] == 1 else y
        given = self.predictions(outputs)
        found = torch.as_tensor(self.metric(given[:, 0] if target is not y else given, target)).double()
        if found.shape not in ((), (len(y),)):
            raise RequestError(
                f"a metric must give one number, or one for each of {len(y)} rows, got shape {tuple(found.shape)}"
            )
        return found.expand(len(y))

    def score(self, outputs: Tensor, y: Tensor) -> float:
        """100 times the mean over rows."""
        rows = self.rows(outputs, y)
        return 100.0 * rows.sum().item() / len(rows)


def _like(values: tuple[float, ...], like: Tensor) -> Tensor:
    """These numbers where `like` is, in its precision; nothing waits for a device."""
    return to_device(torch.tensor(values, dtype=like.dtype), like.device)


def _variance(y: Tensor) -> Tensor:
    found = y.double().var(0, correction=0)
    return found.where(found > 0, 1.0)


def task_of(kind: str | None, found: Kind) -> Kind:
    """The kind that was asked for, or else the one that was found."""
    if kind is None:
        return found
    if kind not in KINDS:
        raise RequestError(f"a task is one of {', '.join(KINDS)}, got {kind!r}")
    return kind


def names_text(names: Sequence[str], most: int = 4) -> str:
    """A few names, and how many there are besides."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
