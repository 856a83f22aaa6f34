"""Data sets: what a search learns from, checked on the way in and handed out in batches."""

from nasight.data._arrays import from_arrays
from nasight.data._augment import Augment, augment
from nasight.data._dataset import Dataset
from nasight.data._download import get
from nasight.data._files import Available, available, load
from nasight.data._loader import Loader, Prepared, batches, prepare
from nasight.data._registry import REGISTERED as FORMATS
from nasight.data._registry import DataFormat, formats, register
from nasight.data._rows import Rows, rows
from nasight.data._sources import data_folder
from nasight.data._split import split_indices

__all__ = [
    "FORMATS",
    "Augment",
    "Available",
    "DataFormat",
    "Dataset",
    "Loader",
    "Prepared",
    "Rows",
    "augment",
    "available",
    "batches",
    "data_folder",
    "formats",
    "from_arrays",
    "get",
    "load",
    "prepare",
    "register",
    "rows",
    "split_indices",
]
