"""How long the stand-alone network of an architecture takes for one example, measured for few of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from statistics import median

import torch
from torch import Tensor

from nasight.architecture import Architecture
from nasight.reproducible import seeded, torch_threads
from nasight.spaces import Space

WARM_UP = 2
"""The first passes choose algorithms and reserve memory; they do not count."""
REPEATS = 15
SECONDS = 0.5
"""No further pass begins after this time, as soon as one was counted."""
MEASURED = 200
"""At most this many architectures are measured for one pick."""
LIKELIEST = 60
SPREAD = 20
ROUND = 10
RIDGE = 0.1


class Latency:
    """Milliseconds of one example through the network of an architecture, on one thread of this machine.

    The median of up to 15 passes in eval mode after two that do not count; a slow network gets fewer passes. It is
    measured once and kept. A clock is noisy: another process, another run or another machine gives other times.
    """

    def __init__(
        self,
        space: Space,
        inputs: tuple[int, ...],
        classes: int,
        size: Mapping[str, int],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.space, self.inputs, self.classes, self.size, self.clock = space, inputs, classes, dict(size), clock
        self.known = dict[Architecture, float]()

    def __call__(self, arch: Architecture) -> float:
        if arch not in self.known:
            self.known[arch] = self._measure(arch)
        return self.known[arch]

    @torch.no_grad()
    def _measure(self, arch: Architecture) -> float:
        # The values of weights and example do not matter; the caller's randomness stays as it was.
        with seeded("latency"):
            network = self.space.network(arch, self.inputs, self.classes, **self.size).eval()
            example = torch.rand(1, *self.inputs)
        passes = list[float]()
        with torch_threads(1):
            begin = self.clock()
            while len(passes) < WARM_UP + REPEATS:
                start = self.clock()
                network(example)
                end = self.clock()
                passes.append(end - start)
                if end - begin > SECONDS and len(passes) > WARM_UP:
                    break
        return 1000 * median(passes[WARM_UP:])


def quick(
    order: Sequence[Architecture], latency: Latency, limit: float, number: int, generator: torch.Generator
) -> list[Architecture]:
    """Those of `order`, likeliest first, that were measured to keep the limit: in that order, at most `number`.

    The likeliest are measured first. Where too few of them keep the limit, some random ones are measured, and from
    then on the likeliest that should keep it: an additive fit to what was measured estimates the others.
    """
    took, counted = dict[int, float](), 0

    def measure(chosen: Iterable[int]) -> None:
        nonlocal counted
        for i in chosen:
            if counted == number or len(took) == MEASURED:
                return
            if i not in took:
                took[i] = latency(order[i])
                counted += took[i] <= limit

    measure(range(min(LIKELIEST, len(order))))
    if counted < number and len(took) < len(order):
        drawn = torch.randperm(len(order), generator=generator)[:SPREAD].tolist()
        # These show how the options differ; they are no likely ones, so they do not end the search for such.
        took |= {i: latency(order[i]) for i in drawn if i not in took}
        features = _features(order)
        while counted < number and len(took) < min(MEASURED, len(order)):
            estimate = _estimate(features, took)
            waiting = [i for i in range(len(order)) if i not in took]
            hopeful = (i for i in waiting if estimate[i] <= limit)
            measure(list(islice(hopeful, ROUND)) or sorted(waiting, key=estimate.__getitem__)[:ROUND])
    return [order[i] for i in sorted(took) if took[i] <= limit][:number]


def _features(order: Sequence[Architecture]) -> Tensor:
    """How often each option is taken, and where: (architectures, options + options of each decision)."""
    columns = dict[str | tuple[str, str], int]()
    found = torch.zeros(len(order), len({key for a in order for pair in a.choices for key in (pair, pair[1])}))
    for row, arch in enumerate(order):
        for key, times in Counter(key for pair in arch.choices for key in (pair, pair[1])).items():
            found[row, columns.setdefault(key, len(columns))] = times
    return found.double()


def _estimate(features: Tensor, took: Mapping[int, float]) -> list[float]:
    """The times of all architectures by ridge regression on the measured ones."""
    rows = torch.tensor(list(took))
    times = torch.tensor(list(took.values()), dtype=torch.double)
    center, level = features[rows].mean(0), times.mean()
    x, y = features[rows] - center, times - level
    slopes = torch.linalg.solve(x.T @ x + RIDGE * torch.eye(x.shape[1], dtype=torch.double), x.T @ y)
    estimated: list[float] = (level + (features - center) @ slopes).tolist()
    return estimated
