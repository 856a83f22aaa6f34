"""Data sets: what a search learns from, checked on the way in and handed out in batches."""

from nasight.data._arrays import examples, from_arrays
from nasight.data._augment import Augment, augment
from nasight.data._dataset import Dataset
from nasight.data._download import get
from nasight.data._files import Available, available, load
from nasight.data._loader import Batches, Loader, Prepared, batches, prepare
from nasight.data._maps import chunks, extent, is_mapped, open_map, take
from nasight.data._registry import REGISTERED as FORMATS
from nasight.data._registry import DataFormat, formats, register
from nasight.data._rows import Rows, rows
from nasight.data._sent import SentData
from nasight.data._sources import data_folder
from nasight.data._split import split_indices
from nasight.data._unlabeled import holds_rows, image_files, read_image, read_rows

__all__ = [
    "FORMATS",
    "Augment",
    "Available",
    "Batches",
    "DataFormat",
    "Dataset",
    "Loader",
    "Prepared",
    "Rows",
    "SentData",
    "augment",
    "available",
    "batches",
    "chunks",
    "data_folder",
    "examples",
    "extent",
    "formats",
    "from_arrays",
    "get",
    "holds_rows",
    "image_files",
    "is_mapped",
    "load",
    "open_map",
    "prepare",
    "read_image",
    "read_rows",
    "register",
    "rows",
    "split_indices",
    "take",
]
