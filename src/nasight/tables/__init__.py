"""Tabular benchmarks: every architecture's accuracies and costs, looked up instead of trained, and races on them."""

from nasight.tables._methods import METHODS, Method
from nasight.tables._race import Race, race
from nasight.tables._readers import load
from nasight.tables._table import DATASETS, Row, Table

__all__ = ["DATASETS", "METHODS", "Method", "Race", "Row", "Table", "load", "race"]
