"""A finished find, read from its folder for its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from nasight import trust
from nasight.anatomy import Design
from nasight.errors import RequestError
from nasight.report.finding import RacedCandidate
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.spaces import names as space_names
from nasight.studies._deepen import kept
from nasight.studies._explain import CACHE
from nasight.studies.finding._answer import Answer
from nasight.studies.finding._budget import time_text
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._plan import Plan, rung_text
from nasight.studies.finding._work import read_architecture


class FinishedFind:
    """The folder of a find: its result, its settings and what its journal says."""

    def __init__(self, answer: Answer, space: Space | None) -> None:
        self.answer, self.path, self.given = answer, answer.path, space
        self.result = {**answer.result, "race": run_race(answer.result["race"])}
        self.settings: Mapping[str, Any] = answer.folder.about["settings"]
        self.journal = Journal(answer.path)
        self.leg = int(self.result["legs"]) - 1
        self.rungs: list[int] = self.result["race"]["rungs"]
        """Epochs of the rungs that were run."""
        self.rung_rows: list[int] = self.result["race"].get("rows", [])
        """Rows that each rung learned from; empty in finds of before, where all rungs had the same."""
        self.planned: Mapping[str, list[int]] = self.result["race"]["planned"]
        """`rungs` and `rows` of all rungs that were planned, also of those that were not reached."""

    @property
    def same(self) -> bool:
        """Whether no candidate was left to compare the baseline with."""
        return bool(self.result["architecture"] == self.result["baseline"]["architecture"])

    @property
    def equal_time(self) -> bool:
        """Whether all trainings of a rung took about the same time; else they had the same epochs."""
        return bool(self.result.get("equal") == "seconds")

    @property
    def longest(self) -> int:
        """Epochs of the winner's longest training in the race."""
        return max((n for n in self._epochs(self.result["architecture"]) if n is not None), default=max(self.rungs))

    def epochs_of(self, candidate: RacedCandidate, rung: int) -> int | None:
        """The epochs of a candidate on a rung; None where it has none."""
        return self._epochs(candidate.architecture)[rung]

    def _epochs(self, architecture: str) -> Sequence[int | None]:
        """Of a candidate on every rung; in finds of before all had those of the rung."""
        lines = (line for line in self.result["race"]["lines"] if line["architecture"] == architecture)
        found: Sequence[int | None] = next(lines, {"epochs": self.rungs}).get("epochs", self.rungs)
        return found

    def rung_text(self, rung: int) -> str:
        """The trainings of a rung in words, also of one that was planned and not reached."""
        rows = self.planned["rows"]
        return rung_text(self.planned["rungs"][rung], rows[rung] if rows else 0, max(rows, default=0))

    # What was searched

    @cached_property
    def space(self) -> Space | None:
        """The space, unless only the user can make it: a file is not run to write a page."""
        if self.given is not None or self.settings["space"] not in space_names():
            return self.given
        with suppress(RequestError):
            return load_space(self.settings["space"], **self.settings["space_options"])
        return None

    @property
    def where(self) -> str:
        """What was searched, in words."""
        return "your model" if self.settings["space"] == "module" else f"the space {self.settings['space']}"

    def design(self, text: str) -> Design | None:
        """The cells of an architecture; None where it has none."""
        if self.space is None:
            return None
        with suppress(RequestError):
            arch = read_architecture(self.space, text)
            cells = self.space.cells(arch)
            return Design.of(self.path.name, self.space, cells, arch) if cells else None
        return None

    def described(self, text: str) -> tuple[str, ...]:
        """The network of an architecture in words, at the size of the find; empty where the space has none."""
        if self.space is None:
            return ()
        target = self.result["target"]
        with suppress(RequestError):
            size = target.get("decided_at", target)["size"]
            return self.space.described(read_architecture(self.space, text), **size)
        return ()

    @cached_property
    def searches(self) -> list[Path]:
        """Folders of all searches, those of the first leg first."""
        names = [path for path in self.path.glob("searches/*-*") if path.name.replace("-", "").isdecimal()]
        return sorted(names, key=lambda path: tuple(map(int, path.name.split("-"))))

    @cached_property
    def scored(self) -> int:
        """Architectures that were scored without training, in all legs."""
        return sum(len(self.journal.get(f"scores {leg}", ())) for leg in range(self.leg + 1))

    # The race

    @cached_property
    def candidates(self) -> list[RacedCandidate]:
        """All of the race: those who came furthest first, and of them the most accurate."""
        lines = sorted(self.result["race"]["lines"], key=_standing)
        return [self._candidate(number, line) for number, line in enumerate(lines, 1)]

    def _candidate(self, number: int, line: Mapping[str, Any]) -> RacedCandidate:
        left, role = line["left"] or {}, ""
        if line["control"] and line["architecture"] == self.result["baseline"]["architecture"]:
            role = "baseline"
        elif line["architecture"] == self.result["architecture"]:
            role = "winner"
        return RacedCandidate(
            number=number,
            architecture=line["architecture"],
            proposed_by=(line["proposed_by"], *line["also"]),
            parameters=line["parameters"],
            multiply_adds=line.get("multiply_adds"),
            accuracies=line["accuracies"],
            left_at=left.get("rung"),
            reason=left.get("reason"),
            control=line["control"],
            role=role,
        )

    @cached_property
    def rivals(self) -> list[RacedCandidate]:
        """The candidates without the controls."""
        return [c for c in self.candidates if not c.control]

    def finished(self, candidate: RacedCandidate) -> bool:
        """Whether a candidate is trained on the last rung."""
        return candidate.reached == len(self.rungs) - 1

    # What it had and took

    @cached_property
    def plan(self) -> Plan | None:
        """The plan of the last leg; None where it is not kept."""
        with suppress(KeyError, TypeError):
            return Plan.from_dict(self.journal[f"plan {self.leg}"])
        return None

    @cached_property
    def budgets(self) -> list[Mapping[str, Any]]:
        """One per leg: seconds, or trainings."""
        return [self.journal[f"budget {leg}"] for leg in range(self.leg + 1) if f"budget {leg}" in self.journal]

    @property
    def budget(self) -> str:
        """All that the find was given, as a person says it."""
        seconds = sum(budget["seconds"] or 0.0 for budget in self.budgets)
        trainings = sum(budget["trainings"] or 0 for budget in self.budgets)
        said = [time_text(seconds) if seconds else "", f"{trainings} trainings" if trainings else ""]
        return " and ".join(filter(None, said)) or "unknown"

    def judging_rows(self, *, test: bool) -> int | None:
        """How many rows judged the answer (`test`), or the race; None: unknown."""
        for key in self.journal:
            if key.startswith("training ") and (" judged=test " in key) == test:
                rows = (self.journal[key] or {}).get("right")
                if rows is not None:
                    return int(rows["count"])
        return None


def run_race(race: Mapping[str, Any]) -> dict[str, Any]:
    """The race of a result with the rungs that were run: finds of before kept all that were planned.

    >>> found = run_race({"rungs": [1, 3], "lines": [{"accuracies": [90.0, None]}, {"accuracies": [80.0, None]}]})
    >>> found["rungs"], [line["accuracies"] for line in found["lines"]], found["planned"]
    ([1], [[90.0], [80.0]], {'rungs': [1, 3], 'rows': []})
    """
    rungs, rows = race["rungs"], race.get("rows", [])
    there = [i for line in race["lines"] for i, accuracy in enumerate(line["accuracies"]) if accuracy is not None]
    run = max(there, default=0) + 1
    return {
        "planned": {"rungs": rungs, "rows": rows},
        **race,
        "rungs": rungs[:run],
        "rows": rows[:run],
        "lines": [{**line, "accuracies": line["accuracies"][:run]} for line in race["lines"]],
    }


def verdicts(folder: Path) -> dict[str, int] | None:
    """How many decisions of a search are safe, unsafe and unknown, from what `explain` measured; None: nothing yet."""
    measured = kept(folder / CACHE)
    if measured is None:
        return None
    with suppress(KeyError, TypeError, ValueError, RequestError):
        found = [trust.judge(trust.Evidence.from_dict(each)).verdict for each in measured["evidence"]]
        return {verdict: found.count(verdict) for verdict in ("safe", "unsafe", "unknown")}
    return None


def _standing(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """A key by which the lines of a race are sorted."""
    reached = max((rung for rung, accuracy in enumerate(line["accuracies"]) if accuracy is not None), default=-1)
    accuracy = line["accuracies"][reached] if reached >= 0 else 0.0
    return -reached, -accuracy, line["parameters"], line["architecture"]
