"""What a find ends with: winner against baseline on rows that judged nothing before, with an interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from scipy import stats
from torch import nn

from nasight.data import Units
from nasight.errors import RequestError
from nasight.report.finding import proposer_words
from nasight.runs import RunFolder
from nasight.spaces import Space
from nasight.studies._model import Model
from nasight.studies._model_folder import load_model
from nasight.studies.finding._names import FIRST_OPTIONS, OWN, PLAIN, REFERENCE, STAND_IN
from nasight.studies.finding._race import Outcome, rank_sums
from nasight.studies.finding._settings import is_own
from nasight.studies.finding._work import BOOSTING

NOT_SEARCHED = (PLAIN, OWN, BOOSTING)
"""Who proposed what is of no searched space."""
SLOWER = 1.25
"""From so many times the seconds of the baseline's training on, the winner's is called slower."""


@dataclass(frozen=True)
class Difference:
    """Winner less baseline, in points, with an interval of this level."""

    mean: float
    low: float
    high: float
    level: float

    @property
    def better(self) -> bool | None:
        """True or False where the interval says so, None where it holds zero."""
        return True if self.low > 0 else False if self.high < 0 else None

    def within(self, most: float) -> Difference:
        """The same with an interval that reaches no further than `most` to either side: more is not possible.

        >>> Difference(-37.7, -112.1, 36.8, 0.95).within(100.0)
        Difference(mean=-37.7, low=-100.0, high=36.8, level=0.95)
        """
        return replace(self, low=max(self.low, -most), high=min(self.high, most))


def difference(winner: Sequence[Outcome], baseline: Sequence[Outcome], level: float = 0.95) -> Difference:
    """The difference of two architectures that were trained with the same seeds and judged by the same rows.

    Two things vary: the seed, over which the trainings are paired, and which rows happened to judge. Their variances
    add; the degrees of freedom are Welch's and Satterthwaite's. Where rows are right or wrong, one for either side is
    added to their variance (Agresti and Min 2005): few rows would underestimate it.

    >>> right = np.array([True] * 900 + [False] * 100)
    >>> a = [Outcome(90.0, right), Outcome(91.0, right), Outcome(92.0, right)]
    >>> b = [Outcome(80.0, right), Outcome(80.0, right), Outcome(80.0, right)]
    >>> found = difference(a, b)
    >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2), found.better
    (11.0, 8.69, 13.31, True)
    """
    parts = variances(winner, baseline)
    variance = sum(v for v, _ in parts)
    mean = float(np.mean([a.accuracy - b.accuracy for a, b in zip(winner, baseline, strict=True)]))
    if variance == 0:
        return Difference(mean, mean, mean, level)
    freedom = variance**2 / sum(v**2 / k for v, k in parts)
    reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * math.sqrt(variance)
    return Difference(mean, mean - reach, mean + reach, level)


def variances(winner: Sequence[Outcome], baseline: Sequence[Outcome]) -> list[tuple[float, int]]:
    """What makes a difference uncertain: the variance of its mean over seeds, and over rows where they are known; each
    with its degrees of freedom.
    """
    if len(winner) != len(baseline) or len(winner) < 2:
        raise RequestError(f"a difference needs the same two or more seeds on both sides, got {len(winner)}")
    pairs = np.array([a.accuracy - b.accuracy for a, b in zip(winner, baseline, strict=True)])
    parts = [(float(pairs.var(ddof=1)) / len(pairs), len(pairs) - 1)]
    rights = [[o.right for o in side if o.right is not None] for side in (winner, baseline)]
    if all(len(side) == len(winner) for side in rights):
        a, b = (np.mean(np.stack(side), axis=0) for side in rights)
        apart = a - b
        if all(right.dtype == bool for side in rights for right in side):
            apart = np.concatenate([apart, [1.0, -1.0]])
        if len(apart) > 1:
            parts.append((1e4 * float(apart.var(ddof=1)) / len(apart), len(apart) - 1))
    return parts


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


def best_point(points: Sequence[Point], *, by_size: bool) -> Point:
    """The most accurate point, or, where size counts as much, the one with the largest sum of both ranks."""
    accuracies = [p.accuracy for p in points]
    merits = rank_sums(accuracies, [p.parameters for p in points]) if by_size else accuracies
    return max(zip(merits, points, strict=True), key=lambda of: (of[0], of[1].accuracy, -of[1].parameters))[1]


def figures_network(result: Mapping[str, Any]) -> str:
    """Of which network the figures are, with its score: they are of one seed, the scores of a find of several.

    >>> figures_network({"architecture": "a", "take": "a", "accuracies": [57.14, 71.43, 71.43],
    ...                  "baseline": {"architecture": "b"}})
    'of the network in model/, seed 1 of 3: 57.14 %'
    """
    of = result.get("figures_of", result["take"])
    side = result if of == result["architecture"] else result["baseline"]
    scores = side["accuracies"]
    return f"of the network in model/, seed 1 of {len(scores)}: {Units.of(result).text(scores[0])}"


def slower(result: Mapping[str, Any]) -> float:
    """How many times as long as one of the baseline a training of the winner took; 1 where no clock counts.

    >>> slower({"budget": 60.0, "training_seconds": {"winner": 3.0, "baseline": 2.0}, "baseline": {"kind": "plain"}})
    1.5
    """
    took = result.get("training_seconds")
    if took is None or result.get("budget") is None or result["baseline"]["kind"] == BOOSTING:
        return 1.0
    return float(took["winner"] / max(took["baseline"], 1e-9))


def baseline_words(result: Mapping[str, Any]) -> str:
    """The baseline of a result, as a sentence names it."""
    kind, own = str(result["baseline"]["kind"]), is_own(str(result["space"]))
    if kind == STAND_IN:
        other = f"{proposer_words(FIRST_OPTIONS)} are" if own else f"{proposer_words(REFERENCE)} is"
        return f"{proposer_words(kind)} ({other} not)"
    # Finds of earlier versions have one name for the references of all spaces.
    return proposer_words(FIRST_OPTIONS if own and kind == REFERENCE else kind)


class Answer:
    """What a find found, read from its folder.

    `architecture`, `accuracy`, `baseline`, `interval`, `better`, `front`; `network` is the trained network that the
    answer says to take, `predict` uses it. A find of your own model needs it again, as `space`.
    """

    def __init__(self, path: str | Path, *, space: Space | None = None) -> None:
        self.folder = RunFolder.open(path, kind="find")
        self._space = space

    def __reduce__(self) -> tuple[Any, ...]:
        # As a place, which every rank of a find can read.
        return partial(Answer, space=self._space), (str(self.path),)

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def result(self) -> dict[str, Any]:
        """The object that `nasight find --json` prints."""
        result = self.folder.result
        if result is None:
            raise RequestError(
                f"the find in {self.path} is not finished; resume it: nasight find --resume {quote(str(self.path))}"
            )
        return result

    @property
    def architecture(self) -> str:
        return str(self.result["architecture"])

    @property
    def accuracy(self) -> float:
        """Mean test accuracy of the answer, in percent."""
        return float(self.result["accuracy"])

    @property
    def better(self) -> bool | None:
        """Whether the winner is better than the baseline: True, False, or None where the interval holds zero."""
        found = self.result["better"]
        return None if found is None else bool(found)

    @property
    def interval(self) -> tuple[float, float]:
        """Of the difference to the baseline, in points."""
        low, high = self.result["interval"]
        return float(low), float(high)

    @property
    def baseline(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.result["baseline"]
        return found

    @property
    def front(self) -> list[Point]:
        """Every raced architecture with its cost and accuracy, the best of each cost marked."""
        kept = self.result["front"]
        points = [Point(**point) for point in kept]
        # Finds of before say which are the best of their size alone.
        return points if all("best_latency" in point for point in kept) else with_fastest(points)

    @property
    def figures_network(self) -> str:
        """Of which network the figures per class are, in words."""
        return figures_network(self.result)

    @property
    def cautions(self) -> list[str]:
        """What to know of the answer and its interval, a sentence each."""
        found, number = [], self.result.get("answers", 1)
        if number > 1:
            found.append(
                f"the test part has judged {number} answers of this find: if an earlier one was why it was given more "
                "time, the interval is too narrow"
            )
        if self.result.get("rows_vary", True) is False:
            found.append(
                "the metric gives one number for all rows, so the interval knows how seeds differ, and not which rows "
                "happened to be in the test part: it is too narrow"
            )
        if (missing := self.result.get("missing")) is not None:
            found.append(f"your own baseline is not what the answer compares with: {missing}")
        if (ahead := self.result.get("ahead")) is not None:
            units, mine = Units.of(self.result), ahead["baseline"]
            than = "" if mine is None else f": {units.text(ahead['accuracy'])} against {units.text(mine)}"
            found.append(f"in the race another control, {ahead['architecture']}, was ahead of the baseline{than}")
        if (times := slower(self.result)) >= SLOWER:
            same = "" if self.result.get("equal") == "seconds" else ", which had as many epochs"
            found.append(
                f"a training of the winner took {times:.1f} times as long as one of the baseline{same}: with as many "
                "seconds the baseline may be as good"
            )
        return found

    @property
    def command(self) -> str:
        """What a person types to use the model; a network of their own runs from its folder, without its code."""
        if self.result["taken_from"] == OWN or is_own(str(self.result["space"])):
            return f"python {quote(str(self.path / 'model' / 'predict.py'))} FILES"
        return f"nasight predict {quote(str(self.path))} FILES"

    def within(self, *, max_params: int | None = None, max_latency: float | None = None) -> Point:
        """The best point of the front within limits."""
        fits = [
            p
            for p in self.front
            if (max_params is None or p.parameters <= max_params)
            and (max_latency is None or (p.latency is not None and p.latency <= max_latency))
        ]
        if not fits:
            raise RequestError(f"no architecture of the race in {self.path} is within these limits")
        return best_point(fits, by_size=self.result["race"].get("by_size", False))

    def advised(self) -> tuple[str, str]:
        """The architecture of the searched space to train, and in words which one that is and why.

        It is what the answer says to take, where that is of the searched space, else the winner of the race.
        """
        result, base = self.result, f"the baseline ({baseline_words(self.result)})"
        won, searched = (by not in NOT_SEARCHED for by in (result["proposed_by"], self.baseline["kind"]))
        if result["better"] and won:
            return self.architecture, "the winner of the race, which the answer says to take"
        if searched:
            other = self.architecture != self.baseline["architecture"]
            why = "the answer says to take: the winner is not shown to be better" if other else "nothing raced beats"
            return str(self.baseline["architecture"]), f"{base}, which {why}"
        why = f"{base}, which the answer says to take, is no architecture of the searched space"
        if won:
            return self.architecture, f"the winner of the race: {why}"
        return self.within().architecture, f"the best of the searched space in the race: {why}"

    @property
    def network(self) -> nn.Module:
        """The trained network that the answer says to take, in evaluation mode."""
        return self.model.network

    @cached_property
    def model(self) -> Model:
        """The model in the folder's `model`, which `nasight predict` uses."""
        return load_model(self.path / "model", space=self._space)

    def predict(self, x: Any) -> np.ndarray[Any, Any]:
        """The classes of examples, by the network that the answer says to take."""
        return self.model.predict(x)

    def sentence(self) -> str:
        """The answer in words."""
        return str(self.result["sentence"])

    def __repr__(self) -> str:
        return f"Answer({str(self.path)!r}: {self.sentence() if self.folder.result else 'not finished'})"
