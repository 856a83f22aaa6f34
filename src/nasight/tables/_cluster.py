"""A cluster on paper: trainings take the seconds that a table says, some workers are slow, some die."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from nasight.errors import RequestError
from nasight.tables._trials import RaceProblem

Job = tuple[int, int]
"""The place of a cell in the table, and the epochs of its training."""


class Policy(ABC):
    """A search that is asked for the next training whenever a worker is free, and told what came of each."""

    @abstractmethod
    def ask(self) -> Job | None:
        """The next training; None: there is none until a running one has ended."""

    @abstractmethod
    def tell(self, job: Job, accuracy: float) -> None:
        """Take the validation accuracy of a training."""


@dataclass(frozen=True)
class ClusterSettings:
    """How many workers there are, and how they fail.

    Parameters
    ----------
    workers : how many trainings run at once.
    slow, factor : the share of trainings that meet a slow moment, and how many times as long they take.
    life : mean seconds until a worker dies; its training is lost, and given to the next free worker.
    repair : seconds until a dead worker is back.
    latency : seconds between the end of a training and the start of the next on the same worker.
    """

    workers: int
    slow: float = 0.05
    factor: float = 4.0
    life: float = 50_000.0
    repair: float = 600.0
    latency: float = 1.0

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise RequestError(f"a cluster has at least 1 worker, got {self.workers}")
        if not 0 <= self.slow <= 1:
            raise RequestError(f"slow is a share between 0 and 1, got {self.slow!r}")
        for name in ("factor", "life"):
            if not getattr(self, name) > 0:
                raise RequestError(f"{name} must be above 0, got {getattr(self, name)!r}")


@dataclass
class ClusterRun:
    """What a search did on a cluster."""

    steps: list[tuple[float, int, float]] = field(default_factory=list)
    """(seconds, cell, validation accuracy), one for each change of the best cell so far."""
    trainings: int = 0
    lost: int = 0
    """Trainings that died with their worker."""
    busy: float = 0.0
    """Worker seconds that ended in an accuracy."""
    seconds: float = 0.0
    """When the last training ended."""


@dataclass(order=True)
class _Event:
    time: float
    number: int
    worker: int = field(compare=False)
    job: Job | None = field(compare=False)
    dies: bool = field(compare=False)
    began: float = field(compare=False)


def run_on_cluster(
    policy: Policy, problem: RaceProblem, settings: ClusterSettings, rng: np.random.Generator, *, most: int = 20_000
) -> ClusterRun:
    """Give trainings to free workers until the problem's seconds are over, or `most` have ended.

    A training that would end after the limit is not begun. The best cell so far is that of the longest training, then
    of the highest validation accuracy, as in a race of one worker.
    """
    found, best = ClusterRun(), (0, -np.inf)
    events: list[_Event] = []
    free, again, number = list(range(settings.workers)), list[Job](), 0
    now = 0.0
    while True:
        while free:
            job = again.pop() if again else policy.ask()
            if job is None:
                break
            cell, epochs = job
            price = float(problem.price[epochs][cell]) * (settings.factor if rng.random() < settings.slow else 1.0)
            life = float(rng.exponential(settings.life))
            if now + price > problem.seconds:
                free.pop()  # no training is begun that the limit would cut off: this worker is done
                continue
            dies = life < price
            end = now + min(life, price)
            heapq.heappush(events, _Event(end, number, free.pop(), job, dies, now))
            number += 1
        if not events or found.trainings >= most:
            return found
        event = heapq.heappop(events)
        now = event.time
        if event.job is None:
            free.append(event.worker)
            continue
        wait = settings.repair if event.dies else settings.latency
        heapq.heappush(events, _Event(now + wait, number, event.worker, None, False, now))
        number += 1
        if event.dies:
            found.lost += 1
            again.append(event.job)
            continue
        cell, epochs = event.job
        accuracy = float(problem.accuracy[epochs][cell])
        found.trainings += 1
        found.busy += now - event.began
        found.seconds = now
        if (epochs, accuracy) > best:
            best = (epochs, accuracy)
            found.steps.append((now, cell, accuracy))
        policy.tell(event.job, accuracy)
