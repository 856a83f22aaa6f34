"""One training of a network, judged as it goes, and what its curve says of speed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from nasight.errors import RequestError
from nasight.training._loop import Diverged, Job, Trainer

TEST_BATCH = 500


@dataclass(frozen=True, slots=True)
class Point:
    """The network on the test rows after this many steps; accuracy in percent."""

    step: int
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class TrainingCurve:
    """One training: its curve from the initial weights on, and whether it diverged.

    Diverged: a loss was not finite (the curve ends there), or the last test loss is above the first.
    """

    architecture: str
    lr: float
    seed: int
    steps: int
    curve: tuple[Point, ...]
    diverged: bool
    seconds: float

    @property
    def accuracy(self) -> float:
        return self.curve[-1].accuracy

    @property
    def loss(self) -> float:
        return self.curve[-1].loss

    @property
    def finished(self) -> bool:
        return self.curve[-1].step == self.steps

    def steps_to(self, loss: float) -> float | None:
        """Steps until the test loss is at most this, between two points along the line; None: never."""
        before: Point | None = None
        for point in self.curve:
            if point.loss <= loss:
                if before is None:
                    return float(point.step)
                share = (before.loss - loss) / (before.loss - point.loss)
                return before.step + share * (point.step - before.step)
            before = point
        return None

    def area(self) -> float | None:
        """The area under the curve of test losses over the steps, as a mean loss; None where the curve broke off.

        A loss above the first counts as the first: one bad point would otherwise be all that the area shows.
        """
        if not self.finished:
            return None
        losses = [min(point.loss, self.curve[0].loss) for point in self.curve]
        spans = [b.step - a.step for a, b in zip(self.curve[:-1], self.curve[1:], strict=True)]
        total = sum(span * (a + b) / 2 for span, a, b in zip(spans, losses[:-1], losses[1:], strict=True))
        return total / self.steps

    def to_dict(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture,
            "lr": self.lr,
            "seed": self.seed,
            "steps": self.steps,
            "diverged": self.diverged,
            "seconds": self.seconds,
            "curve": [[p.step, p.loss, p.accuracy] for p in self.curve],
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> TrainingCurve:
        try:
            curve = tuple(Point(int(s), float(loss), float(acc)) for s, loss, acc in row["curve"])
            if not curve:
                raise ValueError("no points")
            return cls(
                str(row["architecture"]),
                float(row["lr"]),
                int(row["seed"]),
                int(row["steps"]),
                curve,
                bool(row["diverged"]),
                float(row["seconds"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RequestError(f"a stored training is damaged: {error!r}") from error


def train_curve(job: Job, *, evaluations: int = 1) -> tuple[TrainingCurve, nn.Module]:
    """The curve of one training, judged before it and `evaluations` times per epoch, and the trained network.

    All chance follows from the seed. A training whose loss is no longer finite ends there and counts as diverged.
    """
    if job.data.test_y is None:
        raise RequestError(f"data set {job.data.name!r} has no test part to draw a curve on")
    started, trainer = time.perf_counter(), Trainer(job)
    steps = trainer.loader.steps
    total, points = job.settings.epochs * steps, job.settings.epochs * evaluations
    judged = {round(total * k / points) for k in range(points + 1)}
    curve, broken, text = list[Point](), False, job.space.format(job.arch)
    try:
        for step in range(total + 1):
            if step in judged:
                curve.append(Point(step, *trainer.judge(TEST_BATCH)))
            if step == total:
                break
            if step and step % steps == 0:
                trainer.next_epoch()
            if step % steps == 0:
                trainer.set_rates()
            trainer.take_step()
    except Diverged:
        broken = True
    if not curve:
        raise RequestError(f"the test loss of {text[:120]} is not finite before training")
    diverged = broken or curve[-1].loss > curve[0].loss
    seconds = time.perf_counter() - started
    found = TrainingCurve(text, job.settings.lr, job.seed, total, tuple(curve), diverged, seconds)
    return found, trainer.network.cpu()
