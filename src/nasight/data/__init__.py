"""Data sets: what a search learns from, checked on the way in and handed out in batches."""

from nasight.data._arrays import examples, from_arrays
from nasight.data._augment import Augment, augment
from nasight.data._dataset import Dataset
from nasight.data._download import get
from nasight.data._figures import figure_lines, figures, majority_warning
from nasight.data._files import Available, available, load, with_label
from nasight.data._frames import holds_table, is_frame, read_columns
from nasight.data._layout import Column, TableLayout
from nasight.data._loader import Batches, Loader, Prepared, Transform, batches, prepare
from nasight.data._maps import chunks, extent, is_mapped, open_map, take
from nasight.data._registry import REGISTERED as FORMATS
from nasight.data._registry import DataFormat, formats, register
from nasight.data._rows import Rows, rows
from nasight.data._sent import SentData
from nasight.data._sources import data_folder
from nasight.data._split import split_indices
from nasight.data._task import KINDS, METRICS, Task, Units
from nasight.data._unlabeled import holds_rows, image_files, read_image, read_rows

__all__ = [
    "FORMATS",
    "KINDS",
    "METRICS",
    "Augment",
    "Available",
    "Batches",
    "Column",
    "DataFormat",
    "Dataset",
    "Loader",
    "Prepared",
    "Rows",
    "SentData",
    "TableLayout",
    "Task",
    "Transform",
    "Units",
    "augment",
    "available",
    "batches",
    "chunks",
    "data_folder",
    "examples",
    "extent",
    "figure_lines",
    "figures",
    "formats",
    "from_arrays",
    "get",
    "holds_rows",
    "holds_table",
    "image_files",
    "is_frame",
    "is_mapped",
    "load",
    "majority_warning",
    "open_map",
    "prepare",
    "read_columns",
    "read_image",
    "read_rows",
    "register",
    "rows",
    "split_indices",
    "take",
    "with_label",
]
