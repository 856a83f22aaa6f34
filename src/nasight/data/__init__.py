"""Data sets: what a search learns from, checked on the way in and handed out in batches."""

from nasight.data._arrays import examples, from_arrays
from nasight.data._augment import EARLIER, Augment, augment, augment_text, read_augment
from nasight.data._cache import CacheEntry, cache_entries, cache_folder, clear_cache
from nasight.data._dataset import Dataset
from nasight.data._decode import read_image
from nasight.data._derive import resized, select_rows
from nasight.data._download import get
from nasight.data._figures import figure_lines, figures, majority_warning, telling_lines
from nasight.data._files import Available, available, holds_photos, load, with_label
from nasight.data._frames import holds_table, is_frame, read_columns
from nasight.data._inputs import input_record
from nasight.data._layout import Column, TableLayout
from nasight.data._loader import Batches, Loader, Prepared, Transform, batches, prepare
from nasight.data._maps import chunks, extent, is_mapped, map_of, open_map, take
from nasight.data._photo_list import image_files
from nasight.data._registry import REGISTERED as FORMATS
from nasight.data._registry import DataFormat, formats, register
from nasight.data._rows import Rows, rows
from nasight.data._sent import SentData
from nasight.data._sources import data_folder
from nasight.data._split import split_indices
from nasight.data._task import KINDS, METRICS, Task, Units
from nasight.data._told import tell_augmentation
from nasight.data._unlabeled import holds_rows, read_rows
from nasight.data._usual import PhotoDefaults, load_at, photo_defaults
from nasight.notes import listening, note

__all__ = [
    "EARLIER",
    "FORMATS",
    "KINDS",
    "METRICS",
    "Augment",
    "Available",
    "Batches",
    "CacheEntry",
    "Column",
    "DataFormat",
    "Dataset",
    "Loader",
    "PhotoDefaults",
    "Prepared",
    "Rows",
    "SentData",
    "TableLayout",
    "Task",
    "Transform",
    "Units",
    "augment",
    "augment_text",
    "available",
    "batches",
    "cache_entries",
    "cache_folder",
    "chunks",
    "clear_cache",
    "data_folder",
    "examples",
    "extent",
    "figure_lines",
    "figures",
    "formats",
    "from_arrays",
    "get",
    "holds_photos",
    "holds_rows",
    "holds_table",
    "image_files",
    "input_record",
    "is_frame",
    "is_mapped",
    "listening",
    "load",
    "load_at",
    "majority_warning",
    "map_of",
    "note",
    "open_map",
    "photo_defaults",
    "prepare",
    "read_augment",
    "read_columns",
    "read_image",
    "read_rows",
    "register",
    "resized",
    "rows",
    "select_rows",
    "split_indices",
    "take",
    "tell_augmentation",
    "telling_lines",
    "with_label",
]
