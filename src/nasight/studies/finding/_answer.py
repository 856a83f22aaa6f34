"""What a find ends with: winner against baseline on rows that judged nothing before, with an interval."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from torch import nn

from nasight.data import Units
from nasight.errors import RequestError
from nasight.report.finding import proposer_words
from nasight.runs import RunFolder
from nasight.spaces import Space
from nasight.studies._model import Model
from nasight.studies._model_folder import load_model
from nasight.studies.finding._boosting import TREES
from nasight.studies.finding._front import Point, best_point, with_fastest
from nasight.studies.finding._names import FIRST_OPTIONS, OWN, PLAIN, REFERENCE, STAND_IN
from nasight.studies.finding._settings import is_own
from nasight.studies.finding._work import BOOSTING

NOT_SEARCHED = (PLAIN, OWN, BOOSTING)
"""Who proposed what is of no searched space."""
SLOWER = 1.25
"""From so many times the seconds of the baseline's training on, the winner's is called slower."""


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
        if (self.result.get("boosting_trees") or TREES) < TREES:
            found.append(
                f"gradient boosting had {self.result['boosting_trees']} of its {TREES} rounds: there was no time for "
                "more"
            )
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
            least = min((p.parameters for p in self.front), default=0)
            raise RequestError(
                f"no architecture of the race in {self.path} is within these limits: the smallest has {least:,} "
                "parameters"
            )
        return best_point(fits)

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
