"""Tabular benchmarks: every architecture's accuracies and costs, looked up instead of trained, and races on them."""

from nasight.tables._race import Race, race
from nasight.tables._racers import RACERS, Racer
from nasight.tables._registry import TABLES, load, register
from nasight.tables._summary import RaceCurve, RaceStanding
from nasight.tables._table import DATASETS, Table, TableRow

__all__ = [
    "DATASETS",
    "RACERS",
    "TABLES",
    "Race",
    "RaceCurve",
    "RaceStanding",
    "Racer",
    "Table",
    "TableRow",
    "load",
    "race",
    "register",
]
