"""The sections of the page of a find, one file each."""

from __future__ import annotations

from nasight.report._section import Section
from nasight.report.finding import answer, cost, front, proposals, race, recipe, untried
from nasight.report.finding._candidate import RacedCandidate, proposer_words
from nasight.report.finding.answer import FoundValues, TrainedSide
from nasight.report.finding.cost import CostValues, Stage
from nasight.report.finding.front import FrontPoint, FrontValues
from nasight.report.finding.proposals import ProposalsValues, ProposerSummary, ProposingSearch
from nasight.report.finding.race import FindRaceValues, RungAgreement
from nasight.report.finding.recipe import RecipeValues, TriedRecipe
from nasight.report.finding.untried import UntriedValues

__all__ = [
    "FIND_SECTIONS",
    "CostValues",
    "FindRaceValues",
    "FoundValues",
    "FrontPoint",
    "FrontValues",
    "ProposalsValues",
    "ProposerSummary",
    "ProposingSearch",
    "RacedCandidate",
    "RecipeValues",
    "RungAgreement",
    "Stage",
    "TrainedSide",
    "TriedRecipe",
    "UntriedValues",
    "proposer_words",
]

FIND_SECTIONS: dict[str, Section] = {
    room.SECTION.name: room.SECTION for room in (answer, race, front, proposals, recipe, untried, cost)
}
"""Name -> section, in the order of the page of a find."""
