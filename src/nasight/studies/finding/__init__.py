"""Find: proposals, a race of real trainings, and an answer with a baseline beside it."""

from nasight.studies.finding._answer import Answer
from nasight.studies.finding._answering import answer_seeds
from nasight.studies.finding._budget import Budget, read_budget, time_text
from nasight.studies.finding._difference import Difference, difference, variances
from nasight.studies.finding._find import find, resume_find
from nasight.studies.finding._front import Point, best_point
from nasight.studies.finding._journal import kept_outcomes, outcome_from_json, outcome_to_json
from nasight.studies.finding._lengths import paced_epochs
from nasight.studies.finding._pace import PaceProbe
from nasight.studies.finding._page import find_page
from nasight.studies.finding._plan import Plan, Speed
from nasight.studies.finding._plan_only import PlannedFind, find_plan
from nasight.studies.finding._planning import plan
from nasight.studies.finding._race import Agreement, Candidate, Entry, Outcome, Race
from nasight.studies.finding._settings import with_test_part
from nasight.studies.finding._simulated import FindPolicy, TableFind
from nasight.studies.finding._used import used_seconds
from nasight.studies.finding._work import Recipe, Request, Trainings, shared

__all__ = [
    "Agreement",
    "Answer",
    "Budget",
    "Candidate",
    "Difference",
    "Entry",
    "FindPolicy",
    "Outcome",
    "PaceProbe",
    "Plan",
    "PlannedFind",
    "Point",
    "Race",
    "Recipe",
    "Request",
    "Speed",
    "TableFind",
    "Trainings",
    "answer_seeds",
    "best_point",
    "difference",
    "find",
    "find_page",
    "find_plan",
    "kept_outcomes",
    "outcome_from_json",
    "outcome_to_json",
    "paced_epochs",
    "plan",
    "read_budget",
    "resume_find",
    "shared",
    "time_text",
    "used_seconds",
    "variances",
    "with_test_part",
]
