"""The architectures of a race with what each costs, and the best of each cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Point:
    """A raced architecture: what it costs, and the accuracy it would have at the target."""

    architecture: str
    parameters: int
    latency: float | None
    accuracy: float
    epochs: int
    """Of the longest training it had."""
    proposed_by: str
    best: bool = False
    """Whether no other point is at least as good and smaller."""
    multiply_adds: int | None = None
    """Per example; None: unknown."""
    estimated: bool = False
    """Whether its longest training was not of the target's length, so that the accuracy is what others gained."""
    best_latency: bool = False
    """Whether its latency is known, and no other point is at least as good and faster."""


def front(points: Sequence[Point]) -> list[Point]:
    """The points from small to large, those on the fronts of parameters and of latency marked."""
    ordered = sorted(points, key=lambda p: (p.parameters, -p.accuracy, p.architecture))
    small = _undominated((p.parameters, p) for p in ordered)
    return with_fastest([replace(p, best=p.architecture in small) for p in ordered])


def with_fastest(points: Sequence[Point]) -> list[Point]:
    """The points in their order, those on the front of latency marked."""
    fast = _undominated((p.latency, p) for p in points if p.latency is not None)
    return [replace(p, best_latency=p.architecture in fast) for p in points]


def _undominated(costs: Iterable[tuple[float, Point]]) -> set[str]:
    """The architectures of points, each with its cost, to which no other is at least as good and costs less."""
    found, most = set[str](), -math.inf
    for _, point in sorted(costs, key=lambda of: (of[0], -of[1].accuracy, of[1].architecture)):
        if point.accuracy > most:
            found.add(point.architecture)
            most = point.accuracy
    return found


def carried_on(points: Sequence[Point], earlier: Sequence[Point]) -> list[Point]:
    """The points of a race, and those of an earlier one that are not in it, with what the points of both gained.

    >>> before = [Point("a", 10, None, 80.0, 3, "chance"), Point("b", 20, None, 70.0, 3, "chance")]
    >>> [(p.architecture, p.accuracy, p.estimated)
    ...  for p in carried_on([Point("b", 20, None, 75.0, 9, "chance")], before)]
    [('b', 75.0, False), ('a', 85.0, True)]
    """
    now, then = {p.architecture: p for p in points}, {p.architecture: p for p in earlier}
    gains = [now[name].accuracy - then[name].accuracy for name in now if name in then]
    if not gains:
        return list(points)
    gain = math.fsum(gains) / len(gains)
    left = [replace(p, accuracy=p.accuracy + gain, estimated=True) for name, p in then.items() if name not in now]
    return [*points, *left]


def best_point(points: Sequence[Point]) -> Point:
    """The most accurate point; of equal ones the smallest."""
    return max(points, key=lambda point: (point.accuracy, -point.parameters))
