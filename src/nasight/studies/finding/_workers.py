"""Trainings and searches of a find over processes; what is in the journal is not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from nasight.compute import spread
from nasight.data import SentData
from nasight.errors import RequestError, RunError
from nasight.own import PARTS, OwnParts
from nasight.runs import Parcel, RunFolder, is_code, parcel
from nasight.searching import Diverged, resume, search
from nasight.spaces import Space
from nasight.studies.finding._journal import Journal, outcome_from_json, outcome_to_json
from nasight.studies.finding._race import Outcome
from nasight.studies.finding._work import Request, Trainings, rows_of

Item = TypeVar("Item")
OnOutcome = Callable[[Request, Outcome | None], None]
CLOCK = "clock"


class Clock:
    """Seconds that a find has taken, those before a kill included; `began` is when this call of it did."""

    def __init__(self, journal: Journal, began: float | None = None) -> None:
        self.journal, self.before = journal, float(journal.get(CLOCK, 0.0))
        self.start = time.monotonic() if began is None else began

    def __call__(self) -> float:
        return self.before + time.monotonic() - self.start

    def keep(self) -> None:
        self.journal.put(CLOCK, round(self(), 3))


@dataclass(frozen=True)
class SearchRequest:
    """One weight-sharing search: its folder and its settings."""

    out: str
    settings: dict[str, Any]

    def __hash__(self) -> int:
        return hash(self.out)


@dataclass(frozen=True)
class SearchFailed:
    """A search that could not begin, or ended at no architecture; the race goes on without it."""

    why: str


@dataclass(frozen=True)
class Searches:
    """Runs what a `SearchRequest` asks for, or resumes it; gives its folder."""

    space: Space | tuple[str, dict[str, Any]]
    data: str | SentData
    own: OwnParts = field(default_factory=OwnParts)

    def __call__(self, request: SearchRequest) -> Any:
        if isinstance(self.data, SentData):
            return parcel(lambda place: self._search(replace(request, out=str(place))))
        return self._search(request)

    def _search(self, request: SearchRequest) -> str | SearchFailed:
        try:
            return self._found(request)
        except Diverged as error:
            return SearchFailed(str(error))
        except RequestError as error:
            # One that cannot be had for this data (too few rows to divide) is none; one that has begun could be had.
            if (Path(request.out) / "run.json").is_file():
                raise
            return SearchFailed(str(error))
        except RunError:
            # One that ended at what is no network is finished, and says so; all else stops the find.
            if not _finished(request.out):
                raise
            return request.out

    def _found(self, request: SearchRequest) -> str:
        data, given = rows_of(self.data), self.space
        own = {part: value for part in PARTS if (value := getattr(self.own, part)) is not None}
        settings = {**request.settings, **own}
        if (Path(request.out) / "run.json").is_file():
            # A space from a file is named again, as the find itself was asked for it.
            again = given if isinstance(given, Space) else given[0] if is_code(given[0]) else None
            resume(request.out, data=data, space=again, own=self.own, device=settings["device"])
        elif isinstance(given, Space):
            search(given, data=data, out=request.out, **settings)
        else:
            search(given[0], data=data, out=request.out, space_options=given[1], **settings)
        return request.out


class Workers:
    """An executor with a memory: trainings go through it, and their outcomes into the journal as they arrive."""

    def __init__(
        self, executor: Executor | None, trainings: Trainings, journal: Journal, clock: Clock, told: OnOutcome
    ) -> None:
        self.executor, self.trainings, self.journal, self.clock, self.told = executor, trainings, journal, clock, told

    def train(self, requests: Sequence[Request]) -> list[Outcome | None]:
        """The outcomes of these trainings, in their order."""
        keys = [request.key() for request in requests]
        todo = {key: request for key, request in zip(keys, requests, strict=True) if key not in self.journal}
        for key, request in zip(keys, requests, strict=True):
            if key not in todo:
                self.told(request, outcome_from_json(self.journal[key]))

        def arrived(request: Request, sent: Any) -> None:
            outcome: Outcome | None = sent
            if isinstance(sent, Parcel):
                assert request.place is not None
                # A training that failed leaves an unfinished folder, which is worth nothing.
                outcome = sent.unpack(request.place) if sent.value is not None else None
            self.journal.put(request.key(), outcome_to_json(outcome))
            self.clock.keep()
            self.told(request, outcome)

        self.each(self.trainings, list(todo.values()), arrived)
        return [outcome_from_json(self.journal[key]) for key in keys]

    def search(self, searches: Searches, requests: Sequence[SearchRequest]) -> list[str]:
        """The folders of these searches, finished; those of searches that failed are left out, now and ever after."""

        def arrived(request: SearchRequest, sent: Any) -> None:
            value = sent.value if isinstance(sent, Parcel) else sent
            if isinstance(value, SearchFailed):
                self.journal.put(_failed(request), value.why)
            elif isinstance(sent, Parcel):
                sent.unpack(request.out)
            self.clock.keep()

        todo = [r for r in requests if _failed(r) not in self.journal and not _finished(r.out)]
        self.each(searches, todo, arrived)
        return [request.out for request in requests if _failed(request) not in self.journal]

    def failures(self, requests: Sequence[SearchRequest]) -> list[str]:
        """Why some of these searches failed, each in a sentence."""
        return [str(self.journal[key]) for key in map(_failed, requests) if key in self.journal]

    def each(self, work: Callable[[Item], Any], items: Sequence[Item], arrived: Callable[[Item, Any], None]) -> None:
        """`work` of every item, here or in the executor's processes."""
        if self.executor is not None:
            spread(work, items, self.executor, arrived)
            return
        for item in items:
            arrived(item, work(item))


def _failed(request: SearchRequest) -> str:
    return f"failed {Path(request.out).name}"


def _finished(folder: str) -> bool:
    return (Path(folder) / "run.json").is_file() and RunFolder.open(folder, kind="search").result is not None
