"""Equal time: every network of a rung is trained for as long as the reference, whatever an epoch of it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nasight.compute import synchronize
from nasight.reproducible import torch_threads
from nasight.studies.finding._work import Request, Trainings
from nasight.training import Trainer

LEAST_EPOCHS = 2
"""A network that is far slower than the reference has so many, and takes longer."""
TIMED = 0.1
"""Seconds for which the steps of a candidate are timed."""
STEPS = 3
"""That are timed at least, after one that is not."""


def paced_epochs(epochs: float, pace: float) -> int:
    """The epochs that a network has in the time of so many of the reference, if each takes `pace` times as long.

    >>> paced_epochs(12, 1.5), paced_epochs(12, 0.5), paced_epochs(6, 4.0), paced_epochs(1, 3.0)
    (8, 24, 2, 1)
    """
    return max(1, min(LEAST_EPOCHS, round(epochs)), round(epochs / pace))


@dataclass(frozen=True)
class PaceProbe:
    """Seconds of the fastest step of the training that a request asks for; None where its steps fail.

    Steps are taken for some seconds. Other programs can only make a step slower, so the fastest compares networks best.
    """

    trainings: Trainings
    seconds: float = TIMED

    def __call__(self, request: Request) -> float | None:
        try:
            with torch_threads(1):
                return self._fastest(Trainer(self.trainings.job(request)))
        except RuntimeError:
            return None  # Its training will fail too, and says why.

    def _fastest(self, trainer: Trainer) -> float:
        trainer.set_rates()
        took, end = list[float](), time.perf_counter() + self.seconds
        while len(took) <= STEPS or time.perf_counter() < end:
            if trainer.step == trainer.loader.steps:
                trainer.next_epoch()
            start = time.perf_counter()
            trainer.take_step()
            synchronize(trainer.device)
            took.append(time.perf_counter() - start)
        return min(took[1:])
