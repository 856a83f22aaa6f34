"""Run folders: what was asked for, how far it is, what was found, and whose data it is about."""

from nasight.runs._data import DataRecord, data_of, found_again
from nasight.runs._files import read_json, write_atomic, write_json
from nasight.runs._folder import RunFolder, versions

__all__ = [
    "DataRecord",
    "RunFolder",
    "data_of",
    "found_again",
    "read_json",
    "versions",
    "write_atomic",
    "write_json",
]
