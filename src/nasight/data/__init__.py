"""Data sets: what a search learns from, checked on the way in and handed out in batches."""

from nasight.data._augment import Augment, augment
from nasight.data._dataset import Dataset
from nasight.data._download import get
from nasight.data._files import Available, available, load
from nasight.data._loader import Loader, Prepared, batches, prepare
from nasight.data._rows import Rows, rows
from nasight.data._split import generator_for, split_indices

__all__ = [
    "Augment",
    "Available",
    "Dataset",
    "Loader",
    "Prepared",
    "Rows",
    "augment",
    "available",
    "batches",
    "generator_for",
    "get",
    "load",
    "prepare",
    "rows",
    "split_indices",
]
