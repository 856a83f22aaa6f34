"""The methods, as plans: which configurations the next solver call is for, at which dimension.

A pass of a method is a generator: it yields a `Call`, is sent the call's `Outcome`, and ends when the method is
through. It knows nothing of features, rows or solvers, and all that is random in it is the configurations it draws. So
a run that was killed is resumed by sending a new pass the outcomes that the old one has had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from nasight.errors import RequestError

ETA = 4  # Hyperband's and successive halving's factor, in dimension and in configurations
CRITERIA = ("accuracy", "loss")
"""What configurations are compared by on validation rows."""


@dataclass(frozen=True)
class Call:
    """One solver call: the configurations (by number) it is for; several share the weights, and `dimension`."""

    configs: tuple[int, ...]
    dimension: int
    shared: bool


@dataclass(frozen=True)
class Outcome:
    """What the call's weights did on each configuration's validation rows; None where it had none."""

    accuracy: tuple[float | None, ...]
    loss: tuple[float | None, ...]


@dataclass(frozen=True)
class RoundPlan:
    """What a pass is made from: how many configurations, the full dimension, the score, and where they come from."""

    configs: int
    dimension: int
    score: str
    draw: Callable[[int], Sequence[int]]


Pass = Generator[Call, Outcome, None]


@dataclass(frozen=True)
class SelectionMethod:
    """One way to choose among configurations: a row of `SELECTION_METHODS`."""

    name: str
    configs: int
    """How many configurations a pass begins with by default."""
    begin: Callable[[RoundPlan], Pass]
    """Starts a pass: yields solver calls and is sent their outcomes."""
    about: str


def ranked(outcome: Outcome, score: str) -> list[int]:
    """Positions from best to worst by the score; ties by the other score, then by the order of drawing.

    A configuration without a validation row comes after all that have one.
    """

    def key(i: int) -> tuple[float, float, int]:
        accuracy, loss = outcome.accuracy[i], outcome.loss[i]
        if accuracy is None or loss is None:
            return math.inf, math.inf, i
        # A loss that is not a number (a solver that overflowed) is the worst loss there is.
        loss = math.inf if math.isnan(loss) else loss
        return (-accuracy, loss, i) if score == "accuracy" else (loss, -accuracy, i)

    return sorted(range(len(outcome.accuracy)), key=key)


def survivors(outcome: Outcome, score: str) -> list[int]:
    """The better half, rounded up, in the order of drawing: those at or better than the median, ties as `ranked`."""
    return sorted(ranked(outcome, score)[: (len(outcome.accuracy) + 1) // 2])


def halvings(configs: int) -> int:
    """Rounds until one configuration is left: 8 for 256, 3 for 5 (5, 3, 2, 1)."""
    return math.ceil(math.log2(configs))


def fast_dimensions(dimension: int, rounds: int) -> list[int]:
    """Dimensions of the shared rounds: D 2^((i - R)/2) for i from 0, its floor plus one, as the authors' runs had.

    >>> fast_dimensions(100_000, 8)
    [6251, 8839, 12501, 17678, 25001, 35356, 50001, 70711]
    """
    # 2^(-k/2) is exact for even k; a power of sqrt(2) would be off by a rounding error at the whole numbers.
    return [min(dimension, math.floor(dimension * 2 ** ((i - rounds) / 2)) + 1) for i in range(rounds)]


def ladder(configs: int, dimension: int, rungs: int | None = None) -> list[tuple[int, int]]:
    """Successive halving's (configurations, dimension): n/4^i at D/4^(s - i), s as large as n allows.

    >>> ladder(64, 100_000)
    [(64, 1563), (16, 6250), (4, 25000), (1, 100000)]
    """
    last = _logarithm(configs) if rungs is None else rungs
    return [(configs // ETA**i, -(-dimension // ETA ** (last - i))) for i in range(last + 1)]


def brackets(configs: int, dimension: int) -> list[list[tuple[int, int]]]:
    """Hyperband's brackets (Li et al. 2018, Algorithm 1), the most cautious last; resource = dimension, eta = 4.

    >>> [rungs[0] for rungs in brackets(64, 100_000)]
    [(64, 1563), (22, 6250), (8, 25000), (4, 100000)]
    """
    most = _logarithm(configs)
    return [ladder(-(-(most + 1) * ETA**s // (s + 1)), dimension, rungs=s) for s in range(most, -1, -1)]


def _logarithm(configs: int) -> int:
    power = 0
    while ETA ** (power + 1) <= configs:
        power += 1
    return power


def _weight_sharing(plan: RoundPlan) -> Pass:
    """Algorithm 1: shared solves, the worse half dropped after each, one stand-alone solve at the end."""
    yield from _halve(plan, lambda rounds: [plan.dimension] * rounds)


def _fast_weight_sharing(plan: RoundPlan) -> Pass:
    """Algorithm 1 with a dimension that grows by sqrt 2 per round and is D in the last solve (Appendix B.1)."""
    yield from _halve(plan, lambda rounds: fast_dimensions(plan.dimension, rounds))


def _halve(plan: RoundPlan, dimensions: Callable[[int], list[int]]) -> Pass:
    left = list(plan.draw(plan.configs))
    for dimension in dimensions(halvings(len(left))):
        outcome = yield Call(tuple(left), dimension, shared=True)
        left = [left[i] for i in survivors(outcome, plan.score)]
    yield Call(tuple(left), plan.dimension, shared=False)


def _random(plan: RoundPlan) -> Pass:
    for config in plan.draw(plan.configs):
        yield Call((config,), plan.dimension, shared=False)


def _successive_halving(plan: RoundPlan) -> Pass:
    yield from _climb(plan, ladder(plan.configs, plan.dimension))


def _hyperband(plan: RoundPlan) -> Pass:
    for rungs in brackets(plan.configs, plan.dimension):
        yield from _climb(plan, rungs)


def _climb(plan: RoundPlan, rungs: list[tuple[int, int]]) -> Pass:
    """Each configuration alone, the best of a rung going to the next."""
    left = list(plan.draw(rungs[0][0]))
    for count, dimension in rungs:
        left = left[:count]
        outcomes: dict[int, Outcome] = {}
        for config in left:
            outcomes[config] = yield Call((config,), dimension, shared=False)
        reached = [outcomes[config] for config in left]
        rung = Outcome(tuple(o.accuracy[0] for o in reached), tuple(o.loss[0] for o in reached))
        left = [left[i] for i in ranked(rung, plan.score)]


def planned(plan: RoundPlan, begin: Callable[[RoundPlan], Pass]) -> int:
    """How many solver calls one pass makes, whatever their outcomes are."""
    calls, outcome, steps = 0, None, begin(plan)
    while True:
        try:
            call = next(steps) if outcome is None else steps.send(outcome)
        except StopIteration:
            return calls
        calls += 1
        outcome = Outcome((0.0,) * len(call.configs), (0.0,) * len(call.configs))


SELECTION_METHODS = {
    row.name: row
    for row in (
        SelectionMethod(
            "weight-sharing", 256, _weight_sharing, "Algorithm 1: log2(configs) shared solves, then one alone"
        ),
        SelectionMethod(
            "fast-weight-sharing", 256, _fast_weight_sharing, "the same with a dimension growing by sqrt 2 per round"
        ),
        SelectionMethod("random", 9, _random, "each configuration alone at the full dimension"),
        SelectionMethod(
            "successive-halving", 64, _successive_halving, "alone from D/64, the best quarter at four times as much"
        ),
        SelectionMethod("hyperband", 64, _hyperband, "successive halving from D/64, D/16, D/4 and D in turn"),
    )
}


def method(name: str) -> SelectionMethod:
    """A row of the method table by its name."""
    if name not in SELECTION_METHODS:
        raise RequestError(f"there is no method {name!r}; there are {', '.join(SELECTION_METHODS)}")
    return SELECTION_METHODS[name]
