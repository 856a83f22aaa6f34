"""Equal time: every network of a rung is trained for as long as the reference, whatever an epoch of it takes."""

from __future__ import annotations

from dataclasses import dataclass

from nasight.studies.finding._speed import TrainingProbe
from nasight.studies.finding._work import Request, Trainings

LEAST_EPOCHS = 2
"""A network that is far slower than the reference has so many, and takes longer."""


def paced_epochs(epochs: float, pace: float) -> int:
    """The epochs that a network has in the time of so many of the reference, if each takes `pace` times as long.

    >>> paced_epochs(12, 1.5), paced_epochs(12, 0.5), paced_epochs(6, 4.0), paced_epochs(1, 3.0)
    (8, 24, 2, 1)
    """
    return max(1, min(LEAST_EPOCHS, round(epochs)), round(epochs / pace))


@dataclass(frozen=True)
class PaceProbe:
    """Seconds per row of the training that a request asks for, by a few of its steps; None where these fail."""

    trainings: Trainings

    def __call__(self, request: Request) -> float | None:
        try:
            return TrainingProbe(self.trainings, (request,))(0)
        except RuntimeError:
            return None  # Its training will fail too, and says why.
