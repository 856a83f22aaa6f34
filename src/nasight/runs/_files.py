"""Files that are written at once or not at all, and read with one sentence for whatever is wrong with them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from nasight.errors import RequestError, RunError


def write_atomic(path: Path, content: bytes) -> None:
    """Replace `path` by `content` at once or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise RunError(f"cannot write {path}: {error.strerror}; what was there before is intact") from error


def _flush_folder(folder: Path) -> None:
    """Make sure that the new name is on disk too; Windows has no way to ask for it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, value: object) -> None:
    """Replace a file by a value as JSON."""
    write_atomic(path, (json.dumps(value, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """The value in a JSON file; a missing or damaged one is refused."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise RequestError(f"{path} does not exist") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"{path} is damaged: {error}") from error
