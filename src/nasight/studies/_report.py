"""A run, or several, explained on one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasight.errors import RunError
from nasight.runs import write_atomic
from nasight.searching import Run
from nasight.spaces import Space
from nasight.studies._deepen import Note, deepen
from nasight.studies._explain import Explanation, explain
from nasight.studies._page import Subject, run_page

NAME = "report.html"
FREE = {"seed", "threads", "checkpoint_seconds", "path", "device"}
"""Settings in which two runs may differ and still be the same search with another seed."""


@dataclass(frozen=True)
class Report:
    """What was said of the first run and those that differ from it by their seed, and of each other one."""

    explanation: Explanation
    others: tuple[Explanation, ...]
    path: Path | None
    unwritten: str | None = None
    """Why there is no page in the run folder, where it could not be written."""

    def to_dict(self) -> dict[str, Any]:
        others = [{"run": o.runs[0], "method": o.about["method"], "counts": o.counts} for o in self.others]
        return {
            **self.explanation.to_dict(),
            "others": others,
            "report": None if self.path is None else str(self.path),
        }


def report(
    run: str | Path | Run,
    *others: str | Path | Run,
    out: str | Path | None = None,
    write: bool = True,
    deep: bool = False,
    note: Note | None = None,
    space: Space | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Report:
    """Explain a run and write its page, by default RUN/report.html; `settings` are those of `explain`.

    Of the others, those that differ by their seed alone count as evidence; all are compared. `deep` computes the
    landscape and the scores too, which takes minutes; a second call resumes what an interrupted one left.
    """
    runs = [each if isinstance(each, Run) else Run(each, space=space) for each in (run, *others)]
    twins = [each for each in runs[1:] if _same_search(runs[0], each)]
    rest = [each for each in runs[1:] if each not in twins]
    explanation = explain(runs[0], *twins, progress=progress, **settings)
    # Of a run on other data only the search is compared.
    alike = [each for each in rest if _same_problem(runs[0], each)]
    judged = tuple(explain(each, progress=progress, **settings) for each in alike)
    if deep:
        deepen(
            runs[0], settings.get("data"), settings.get("data_folder"), note=note, device=settings.get("device", "auto")
        )
    path, unwritten = None, None
    if write:
        counts = {each.runs[0]: each.counts for each in judged}
        subject = Subject(runs[0], explanation, tuple(runs[1:]), counts)
        try:
            path = write_page(run_page(subject), runs[0].path if out is None else out)
        except RunError as error:
            if out is not None:
                raise
            unwritten = str(error)  # the run lies on a disk that cannot be written: what was found is told all the same
    return Report(explanation, judged, path, unwritten)


def _same_search(one: Run, other: Run) -> bool:
    mine, its = (run.settings.model_dump(exclude=FREE) for run in (one, other))
    return mine == its and one.data.fingerprint == other.data.fingerprint


def _same_problem(one: Run, other: Run) -> bool:
    keys: Sequence[str] = ("space", "space_options", "data")
    same = all(getattr(one.settings, key) == getattr(other.settings, key) for key in keys)
    return same and one.data.fingerprint == other.data.fingerprint


def write_page(text: str, path: str | Path) -> Path:
    """Write a page; a folder gets it as report.html."""
    place = Path(path)
    if place.is_dir():
        place = place / NAME
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(place, text.encode())
    return place
