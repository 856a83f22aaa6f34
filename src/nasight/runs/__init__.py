"""Run folders: what was asked for, how far it is, what was found, and whose data it is about."""

from nasight.runs._data import DataRecord, data_of, found_again
from nasight.runs._files import read_json, write_atomic, write_json
from nasight.runs._folder import RunFolder, versions
from nasight.runs._parcel import Parcel, parcel
from nasight.runs._together import same_data, writing

__all__ = [
    "DataRecord",
    "Parcel",
    "RunFolder",
    "data_of",
    "found_again",
    "parcel",
    "read_json",
    "same_data",
    "versions",
    "write_atomic",
    "write_json",
    "writing",
]
