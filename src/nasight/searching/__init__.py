"""Search: one shared-weights network, every method a row, GAEA a column."""

from nasight.options import SearchOptions
from nasight.searching import methods
from nasight.searching._constraint import LogProbability
from nasight.searching._latency import Latency
from nasight.searching._loop import Interrupted, entropies
from nasight.searching._objectives import Objective
from nasight.searching._progress import Progress
from nasight.searching._published import (
    FAMILIES,
    PROTOCOLS,
    PUBLISHED,
    UNPUBLISHED,
    Published,
    published_objective,
    published_training,
)
from nasight.searching._questions import Policy
from nasight.searching._relaxations import Mixture, Relaxation, StepContext
from nasight.searching._run import TRAIN_FREE, Run
from nasight.searching._search import DEFAULT_METHOD, chosen_space, resume, search
from nasight.searching._selection import Selection
from nasight.searching._settings import SearchSettings, checked, read_settings, resolve
from nasight.searching._stages import Stage
from nasight.searching._step import SearchState, Step
from nasight.searching._tally import Diverged
from nasight.searching._units import read_count, read_milliseconds
from nasight.searching.methods import METHODS, Method, Schedule, gaea, method_row, register

__all__ = [
    "DEFAULT_METHOD",
    "FAMILIES",
    "METHODS",
    "PROTOCOLS",
    "PUBLISHED",
    "TRAIN_FREE",
    "UNPUBLISHED",
    "Diverged",
    "Interrupted",
    "Latency",
    "LogProbability",
    "Method",
    "Mixture",
    "Objective",
    "Policy",
    "Progress",
    "Published",
    "Relaxation",
    "Run",
    "Schedule",
    "SearchOptions",
    "SearchSettings",
    "SearchState",
    "Selection",
    "Stage",
    "Step",
    "StepContext",
    "checked",
    "chosen_space",
    "entropies",
    "gaea",
    "method_row",
    "methods",
    "published_objective",
    "published_training",
    "read_count",
    "read_milliseconds",
    "read_settings",
    "register",
    "resolve",
    "resume",
    "search",
]
