"""Run folders: what was asked for, how far it is, what was found, and whose data it is about."""

from nasight.runs._code import is_code, named_again
from nasight.runs._data import DataRecord, data_of, found_again
from nasight.runs._faults import first_fault
from nasight.runs._files import (
    append,
    check_inside,
    checked_object,
    parse_json,
    read_bytes,
    read_json,
    read_lines,
    read_object,
    write_atomic,
    write_json,
)
from nasight.runs._folder import RunFolder, versions
from nasight.runs._journal_schema import JournalLine
from nasight.runs._parcel import Parcel, parcel
from nasight.runs._schemas import ScoreLine, ScoreRequest, TrialsFile, TrustFile
from nasight.runs._together import same_data, writing
from nasight.runs._weights import check_weights, load_optimizer, load_weights

__all__ = [
    "DataRecord",
    "JournalLine",
    "Parcel",
    "RunFolder",
    "ScoreLine",
    "ScoreRequest",
    "TrialsFile",
    "TrustFile",
    "append",
    "check_inside",
    "check_weights",
    "checked_object",
    "data_of",
    "first_fault",
    "found_again",
    "is_code",
    "load_optimizer",
    "load_weights",
    "named_again",
    "parcel",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_lines",
    "read_object",
    "same_data",
    "versions",
    "write_atomic",
    "write_json",
    "writing",
]
