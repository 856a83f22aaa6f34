"""Tabular benchmarks: every architecture's accuracies and costs, looked up instead of trained, and races on them."""

from nasight.tables._cluster import ClusterRun, ClusterSettings, Job, Policy, run_on_cluster
from nasight.tables._module_table import ModuleTable
from nasight.tables._modules import Module
from nasight.tables._policies import POLICIES
from nasight.tables._race import DEFAULT_RACERS, Race, race
from nasight.tables._racers import RACERS, Racer
from nasight.tables._registry import TABLES, load, register
from nasight.tables._regret import Regret, RegretCurve, regret
from nasight.tables._summary import RaceCurve, RaceStanding
from nasight.tables._table import DATASETS, Table, TableRow
from nasight.tables._trials import RaceProblem

__all__ = [
    "DATASETS",
    "DEFAULT_RACERS",
    "POLICIES",
    "RACERS",
    "TABLES",
    "ClusterRun",
    "ClusterSettings",
    "Job",
    "Module",
    "ModuleTable",
    "Policy",
    "Race",
    "RaceCurve",
    "RaceProblem",
    "RaceStanding",
    "Racer",
    "Regret",
    "RegretCurve",
    "Table",
    "TableRow",
    "load",
    "race",
    "register",
    "regret",
    "run_on_cluster",
]
