"""Equal time: every network of a rung is trained for as long as the reference, whatever an epoch of it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nasight.compute import synchronize
from nasight.reproducible import torch_threads
from nasight.studies.finding._work import Request, Trainings
from nasight.training import Trainer

LEAST_PACE = 0.05
"""One that is far faster has at most twenty times the epochs of the reference."""
TIMED = 0.1
"""Seconds for which the steps of a candidate and of the reference are timed."""
STEPS = 3
"""Of each that are timed at least, after one that is not."""


@dataclass(frozen=True)
class PaceProbe:
    """How many times as long as one of the reference a step of a training takes; 1 where its steps fail.

    The two take turns for some seconds in one process. Other programs can only make a step slower, so the fastest of
    each are compared.
    """

    trainings: Trainings
    reference: Request
    seconds: float = TIMED

    def __call__(self, request: Request) -> float:
        try:
            with torch_threads(1):
                own, reference = (Trainer(self.trainings.job(each)) for each in (request, self.reference))
                return self._pace(own, reference)
        except RuntimeError:
            return 1.0  # The training will fail too, and says why.

    def _pace(self, own: Trainer, reference: Trainer) -> float:
        own.set_rates()
        reference.set_rates()
        rounds, end = list[tuple[float, float]](), time.perf_counter() + self.seconds
        while len(rounds) <= STEPS or time.perf_counter() < end:
            rounds.append((_step(own), _step(reference)))
        fastest = min(took for took, _ in rounds[1:]), min(took for _, took in rounds[1:])
        return max(LEAST_PACE, round(fastest[0] / fastest[1], 3))


def _step(trainer: Trainer) -> float:
    """Seconds of a step."""
    if trainer.step == trainer.loader.steps:
        trainer.next_epoch()
    start = time.perf_counter()
    trainer.take_step()
    synchronize(trainer.device)
    return time.perf_counter() - start
