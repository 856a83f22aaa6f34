"""What a training gives: plain values that go to JSON and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean, stdev
from typing import Any


@dataclass(frozen=True, slots=True)
class EpochRow:
    """One epoch: `train_*` are means over its batches as they were learned from, `test_*` are of its end.

    Accuracies are in percent. `test_*` are None where a training is judged at its end alone.
    """

    epoch: int
    train_loss: float
    train_accuracy: float
    test_loss: float | None
    test_accuracy: float | None
    lr: float
    seconds: float


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """One trained network; `accuracy` (percent) and `loss` are of the last epoch, not of the luckiest one.

    `judged_by` says on which rows: the test part, or a held-out part of the training rows.
    """

    space: str
    architecture: str
    data: str
    seed: int
    accuracy: float
    loss: float
    judged_by: str
    parameters: int
    epochs: int
    seconds: float
    curve: tuple[EpochRow, ...]
    out: str | None = None
    multiply_adds: int | None = None
    """Of one example; None in results of version 0.1."""
    metric: str = "accuracy"
    """What `accuracy` holds, 100 times: "accuracy", "R2", "F1" or the name of a metric of one's own."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Further figures of the judged rows; see `nasight.data.figures`. Empty in results of version 0.1."""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "curve": [asdict(row) for row in self.curve]}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> TrainingResult:
        return cls(**{**value, "curve": tuple(EpochRow(**row) for row in value["curve"])})


@dataclass(frozen=True, slots=True)
class Summary:
    """The same training with several seeds: accuracies in percent, their mean and their sample standard deviation.

    One seed has no `spread`: it is None.
    """

    space: str
    architecture: str
    data: str
    judged_by: str
    seeds: tuple[int, ...]
    accuracy: tuple[float, ...]
    mean: float
    spread: float | None
    parameters: int
    epochs: int
    seconds: float
    out: str | None
    results: tuple[TrainingResult, ...]
    multiply_adds: int | None = None
    metric: str = "accuracy"
    figures: dict[str, Any] = field(default_factory=dict)
    """Of the first seed."""

    @classmethod
    def of(cls, results: Sequence[TrainingResult], out: str | None) -> Summary:
        first, accuracy = results[0], tuple(result.accuracy for result in results)
        return cls(
            space=first.space,
            architecture=first.architecture,
            data=first.data,
            judged_by=first.judged_by,
            seeds=tuple(result.seed for result in results),
            accuracy=accuracy,
            mean=mean(accuracy),
            spread=stdev(accuracy) if len(accuracy) > 1 else None,
            parameters=first.parameters,
            epochs=first.epochs,
            seconds=sum(result.seconds for result in results),
            out=out,
            results=tuple(results),
            multiply_adds=first.multiply_adds,
            metric=first.metric,
            figures=first.figures,
        )

    def to_dict(self) -> dict[str, Any]:
        """All but the single results, which have files of their own."""
        return {name: value for name, value in asdict(self).items() if name != "results"}
