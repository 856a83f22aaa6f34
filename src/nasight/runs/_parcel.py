"""A run folder that another machine has written, sent home."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from nasight.errors import RunError
from nasight.runs._files import read_json
from nasight.runs._folder import RunFolder

Value = TypeVar("Value")


@dataclass(frozen=True)
class Parcel(Generic[Value]):
    """What a piece of work gave, and the files of the run folder that it wrote."""

    value: Value
    files: dict[str, bytes]

    def unpack(self, place: str | Path) -> Value:
        """Write the folder, at once or not at all, in place of an unfinished one; its result names the new place."""
        place = Path(place)
        beside = place.with_name(f".{place.name}.{os.getpid()}.new")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        for name, content in self.files.items():
            if Path(name).name != name:
                raise RunError(f"a worker sent a file with the name {name!r}, which is none of a run")
            (beside / name).write_bytes(content)
        result = beside / "result.json"
        if result.exists() and "run" in (kept := read_json(result)):
            # Tied to its checkpoint by a checksum, so it is written as a run writes it.
            RunFolder(beside).write_result({**kept, "run": str(place)})
        shutil.rmtree(place, ignore_errors=True)
        beside.replace(place)
        return self.value


def parcel(work: Callable[[Path], Value]) -> Parcel[Value]:
    """What `work` gives when it is called with a folder to write, and that folder's files."""
    with tempfile.TemporaryDirectory(prefix="nasight-") as scratch:
        place = Path(scratch) / "run"
        value = work(place)
        found = list(place.iterdir()) if place.is_dir() else []  # work that could not begin writes nothing
        files = {file.name: file.read_bytes() for file in found if file.is_file() and file.name != ".lock"}
    return Parcel(value, files)
