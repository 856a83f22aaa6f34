"""The sections of a report, one file each, and the names under which they are found."""

from __future__ import annotations

from nasight.errors import RequestError
from nasight.registry import Registry
from nasight.report._section import Section
from nasight.report.sections import anatomy, answer, compare, kernels, reproduce, search, trust
from nasight.report.sections.anatomy import AnatomyValues, LandscapeValues, PlacedCell
from nasight.report.sections.answer import AnswerValues, RetrainedAccuracy
from nasight.report.sections.compare import ComparedRun, CompareValues, MethodSummary
from nasight.report.sections.kernels import KernelsValues, ScoredMetric
from nasight.report.sections.reproduce import ReproduceValues
from nasight.report.sections.search import SearchValues
from nasight.report.sections.trust import JudgedDecision, TrustValues

__all__ = [
    "SECTIONS",
    "AnatomyValues",
    "AnswerValues",
    "CompareValues",
    "ComparedRun",
    "JudgedDecision",
    "KernelsValues",
    "LandscapeValues",
    "MethodSummary",
    "PlacedCell",
    "ReproduceValues",
    "RetrainedAccuracy",
    "ScoredMetric",
    "SearchValues",
    "TrustValues",
    "register",
]


def _checked(name: str, thing: object) -> Section:
    if not isinstance(thing, Section):
        raise RequestError(f"report section {name!r} must be a nasight.report.Section, got {type(thing).__name__}")
    if thing.name != name:
        raise RequestError(f"report section {name!r} calls itself {thing.name!r}; both must be the same")
    return thing


_BUILT_IN = (answer, trust, search, anatomy, kernels, compare, reproduce)
SECTIONS: Registry[Section] = Registry(
    "report section", "nasight.sections", {room.SECTION.name: room.SECTION for room in _BUILT_IN}, check=_checked
)
"""Name -> section, in the order of the page: the built-in ones, and those that were registered."""


def register(section: Section, *, replace: bool = False) -> None:
    """Show a section of your own in every report of this process, behind the others.

    It needs a `gather` that takes its values from the run; a name that is taken is refused unless `replace`.
    """
    SECTIONS.add(section.name, section, replace=replace)
