"""A search under way: solver calls of a method, a row of history each, the run folder between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import torch

from nasight.errors import RequestError
from nasight.features._evaluator import Evaluator, Solved, seed_for
from nasight.features._family import Config, Family, current_words
from nasight.features._linear import LinearModel
from nasight.features._methods import Call, Outcome, RoundPlan, method, planned, ranked
from nasight.features._settings import OWN, SelectSettings
from nasight.runs import RunFolder

HistoryRow = dict[str, Any]
"""What history.jsonl keeps of one solver call."""
Progress = Callable[[HistoryRow, int | None], None]
"""Called with the row of each call and the number of all calls, where that is known."""


@dataclass(frozen=True)
class Incumbent:
    """The configuration a search would give now, and the model it has for it."""

    config: int
    alone: bool  # its weights are its own; otherwise they are shared, and its validation rows are its share
    accuracy: float
    loss: float
    dimension: int
    seed: int
    test: float | None
    model: LinearModel

    def key(self, score: str) -> tuple[float, float]:
        return (-self.accuracy, self.loss) if score == "accuracy" else (self.loss, -self.accuracy)


class CallSchedule:
    """The calls of a method, pass after pass, and the configurations drawn for them."""

    def __init__(self, family: Family, settings: SelectSettings) -> None:
        self.family, self.settings = family, settings
        self.configs: list[Config] = []
        self.draws = 0

    def draw(self, count: int) -> Sequence[int]:
        rng = np.random.default_rng(seed_for(self.settings.seed, "configurations", self.draws))
        self.draws += 1
        first = len(self.configs)
        self.configs += self.family.sample(count, rng)
        return range(first, len(self.configs))

    def calls(self) -> Generator[Call, Outcome, None]:
        s = self.settings
        while True:
            yield from method(s.method).begin(RoundPlan(s.configs, s.dimension, s.score, self.draw))
            if s.max_calls is None and s.max_seconds is None:
                return

    def planned(self) -> int | None:
        """How many calls there will be, where that is known."""
        s = self.settings
        if s.max_calls is not None or s.max_seconds is not None:
            return s.max_calls
        rehearsal = CallSchedule(self.family, s)
        return planned(RoundPlan(s.configs, s.dimension, s.score, rehearsal.draw), method(s.method).begin)


class SelectionRun:
    """A selection under way: what was called, what it cost, who leads.

    Parameters
    ----------
    family : the feature maps to choose from.
    evaluator : makes the solver calls.
    settings : the method, its budget and its score.
    folder : keeps the run, if there is one; what it holds is continued.
    """

    def __init__(
        self, family: Family, evaluator: Evaluator, settings: SelectSettings, folder: RunFolder | None = None
    ) -> None:
        self.evaluator, self.settings, self.folder = evaluator, settings, folder
        self.schedule = CallSchedule(family, settings)
        self.history: list[HistoryRow] = []
        self.incumbent: Incumbent | None = None
        self.oracles: dict[int, float] = {}

    @property
    def path(self) -> Path | None:
        """The run folder."""
        return None if self.folder is None else self.folder.path

    @property
    def seconds(self) -> float:
        """Features, solves and scores so far; what fitting the family takes is spent before the first call."""
        return float(self.history[-1]["seconds"]) if self.history else self.evaluator.seconds_to_fit

    def spent(self) -> bool:
        """Whether the budget is used up; the first call is always made."""
        s, calls = self.settings, len(self.history)
        out_of_time = s.max_seconds is not None and calls > 0 and self.seconds >= s.max_seconds
        return out_of_time or (s.max_calls is not None and calls >= s.max_calls)

    def finish(self, progress: Progress | None = None) -> None:
        """Make the calls that are left; `progress` is told of each."""
        with self.folder.writing() if self.folder else nullcontext():
            try:
                self._finish(progress)
            except KeyboardInterrupt:
                if self.folder is None:
                    raise
                raise KeyboardInterrupt(
                    f"stopped; resume with: nasight select --resume {quote(str(self.path))}"
                ) from None
            if self.folder is not None:
                self.folder.write_result(self.result())

    def _finish(self, progress: Progress | None) -> None:
        self._restore()
        calls, total = self.schedule.calls(), self.schedule.planned()
        call = _next(calls, None)
        for row in self.history:
            call = _next(calls, Outcome(tuple(row["scores"]["accuracy"]), tuple(row["scores"]["loss"])))
        while call is not None and not self.spent():
            outcome = self._make(call)
            self._save()
            if progress is not None:
                progress(self.history[-1], total)
            call = _next(calls, outcome)

    def _make(self, call: Call) -> Outcome:
        number = len(self.history) + 1
        configs = [self.schedule.configs[i] for i in call.configs]
        solved = self.evaluator.solve(call, configs, number)
        seconds = self.seconds + solved.seconds
        self._judge(solved)
        self.history.append(self._row(solved, number, seconds))
        return solved.outcome

    def _judge(self, solved: Solved) -> None:
        """Whether the call has a better incumbent.

        Among stand-alone models the best validation score leads. Shared weights lead only as long as there is no
        stand-alone model, and a round's best replaces that of the round before, whose scores come from fewer rows.
        """
        best = ranked(solved.outcome, self.settings.score)[0]
        accuracy, loss = solved.outcome.accuracy[best], solved.outcome.loss[best]
        found = Incumbent(
            config=solved.call.configs[best],
            alone=not solved.call.shared,
            accuracy=0.0 if accuracy is None else accuracy,
            loss=math.inf if loss is None or math.isnan(loss) else loss,
            dimension=solved.call.dimension,
            seed=solved.seed,
            test=None,
            model=solved.model,
        )
        now = self.incumbent
        if now is not None and now.alone:
            score = self.settings.score
            if not found.alone or found.key(score) >= now.key(score):
                return
        self.incumbent = self._tested(found)

    def _tested(self, found: Incumbent) -> Incumbent:
        """The incumbent with the test accuracy of its model and, as oracle, of a stand-alone one; both unclocked."""
        test = self.evaluator.data.test
        if test is None:
            return found
        config = self.schedule.configs[found.config]
        accuracy = self.evaluator.accuracy(found.model, config, test, found.dimension, found.seed)
        full = found.alone and (found.dimension == self.settings.dimension or not self.schedule.family.sized)
        if self.settings.oracle and found.config not in self.oracles:
            self.oracles[found.config] = accuracy if full else self._oracle(found.config)
        return Incumbent(**{**found.__dict__, "test": accuracy})

    def _oracle(self, config: int) -> float:
        assert self.evaluator.data.test is not None
        configs, dimension = [self.schedule.configs[config]], self.settings.dimension
        solved = self.evaluator.solve(Call((config,), dimension, shared=False), configs, f"oracle {config}")
        return self.evaluator.accuracy(solved.model, configs[0], self.evaluator.data.test, dimension, solved.seed)

    def _row(self, solved: Solved, number: int, seconds: float) -> HistoryRow:
        best, outcome = self.incumbent, solved.outcome
        assert best is not None
        return {
            "calls": number,
            "seconds": seconds,
            "dimension": solved.call.dimension,
            "configs": len(solved.call.configs),
            "shared": solved.call.shared,
            "incumbent": best.config,
            "config": self.schedule.configs[best.config],
            "validation": "alone" if best.alone else "shared",
            "validation_accuracy": best.accuracy,
            "test_accuracy": best.test,
            "oracle_test_accuracy": self.oracles.get(best.config),
            "scores": {
                "configs": list(solved.call.configs),
                "accuracy": list(outcome.accuracy),
                "loss": list(outcome.loss),
            },
        }

    def _save(self) -> None:
        """Commit the call: the history, then the checkpoint that says how much of it counts."""
        if self.folder is None or self.incumbent is None:
            return
        self.folder.append_history(self.history[-1])
        best = dict(self.incumbent.__dict__)
        model = best.pop("model")
        best |= {"coef": torch.tensor(model.coef), "intercept": torch.tensor(model.intercept)}
        state = {"calls": len(self.history), "peak_bytes": self.evaluator.peak_bytes, "incumbent": best}
        self.folder.save(state, mark=f"{len(self.history):06d}")

    def _restore(self) -> None:
        if self.folder is None:
            return
        state = self.folder.load()
        rows = self.folder.resume_history(0 if state is None else state["calls"])
        if state is None:
            return
        self.history = [_current(row, self.settings) for row in rows]
        if self.history != rows:
            self.folder.write_history(self.history)
        self.oracles = {
            row["incumbent"]: row["oracle_test_accuracy"]
            for row in self.history
            if row["oracle_test_accuracy"] is not None
        }
        self.evaluator.peak_bytes = max(self.evaluator.peak_bytes, state["peak_bytes"])
        best = state["incumbent"]
        try:
            model = LinearModel(best.pop("coef").numpy(), best.pop("intercept").numpy())
            self.incumbent = Incumbent(**best, model=model)
        except (KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise RequestError(f"the checkpoint in {self.path} does not fit this selection: {error}") from error

    def result(self) -> dict[str, Any]:
        """What the search ended with: the object that `nasight select --json` prints."""
        s, best, data, last = self.settings, self.incumbent, self.evaluator.data, self.history[-1]
        assert best is not None
        seen = {config for row in self.history for config in row["scores"]["configs"]}
        return {
            "run": None if self.path is None else str(self.path),
            "method": s.method,
            "maps": s.maps,
            "data": s.data,
            "seed": s.seed,
            "config": self.schedule.configs[best.config],
            "validation": last["validation"],
            "validation_accuracy": best.accuracy,
            "test_accuracy": best.test,
            "oracle_test_accuracy": self.oracles.get(best.config),
            "calls": len(self.history),
            "seconds": self.seconds,
            "configs": len(seen),
            "dimension": best.dimension,
            "feature_seed": best.seed,
            "norm": float(np.sqrt(np.square(best.model.coef, dtype=np.float64).sum())),
            "training_rows": len(data.train),
            "validation_rows": len(data.validation),
            "test_rows": 0 if data.test is None else len(data.test),
            "peak_bytes": self.evaluator.peak_bytes,
        }


def read_history(folder: RunFolder, settings: SelectSettings) -> list[HistoryRow]:
    """The history of a run folder, its configurations spelled as they are now."""
    return [_current(row, settings) for row in folder.history]


def read_result(folder: RunFolder, settings: SelectSettings) -> dict[str, Any] | None:
    """The result of a run folder, its configuration spelled as it is now; None before the end."""
    result = folder.result
    return None if result is None else _current(result, settings)


def _current(row: HistoryRow, settings: SelectSettings) -> HistoryRow:
    # The words of the user's own maps are the user's.
    return row if settings.maps == OWN else {**row, "config": current_words(row["config"])}


def _next(calls: Generator[Call, Outcome, None], outcome: Outcome | None) -> Call | None:
    try:
        return next(calls) if outcome is None else calls.send(outcome)
    except StopIteration:
        return None
