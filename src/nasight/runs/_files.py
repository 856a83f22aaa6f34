"""Files that are written at once or not at all, and read with one sentence for whatever is wrong with them.

A write never leaves the run that it belongs to: a link inside a run folder that leads out of it is refused.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nasight.errors import RequestError, RunError
from nasight.memory import bytes_text, check_room
from nasight.runs._faults import first_fault, short

ABOUT = "run.json"
MOST_BYTES = 2**26
"""Of a JSON file; run.json, the largest that people write by hand, has a few thousand."""
MOST_LINES = 2**29
"""Bytes of a file of lines."""
MOST_DEPTH = 64
"""Of values within values in a JSON file."""
GROWN = 12
"""Memory that a JSON text takes once it is read, as a multiple of its length: a list of small numbers has most."""

Schema = TypeVar("Schema", bound=BaseModel)
T = TypeVar("T")


def check_inside(path: Path) -> None:
    """Refuse to write where a link inside a run folder leads out of it; links to the folder itself are the user's."""
    whole = path.absolute()
    roots = [folder for folder in whole.parents if (folder / ABOUT).is_file()]
    if not roots:
        return
    root = roots[-1]
    place = root
    for part in whole.relative_to(root).parts:
        place = place / part
        if place.is_symlink() and not _leads_into(place, root):
            raise RequestError(f"{place} is a link that leads out of {root}; nothing is written through it")


def _leads_into(link: Path, root: Path) -> bool:
    try:
        return link.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # it leads to itself
        return False


def write_atomic(path: Path, content: bytes) -> None:
    """Replace `path` by `content` at once or not at all."""
    check_inside(path.parent)
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with _new_file(beside) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        # On a disk that has become read-only the half file cannot be removed either; the first reason counts.
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise RunError(f"cannot write {path}: {error.strerror}; what was there before is intact") from error


def _new_file(path: Path) -> Any:
    """A new file to write, never one that a link of this name leads to."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb")


def flush_folder(folder: Path) -> None:
    """Make sure that a new name is on disk too; Windows has no way to ask for it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def append(path: Path, content: bytes) -> None:
    """Add whole lines to the end of a file, and have them on disk; a line that a kill cut off is dropped first."""
    check_inside(path)
    try:
        if path.exists() and (path.is_symlink() or path.stat().st_nlink > 1):
            # The content may be shared with another name, whose file is not ours to change.
            write_atomic(path, path.read_bytes())
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(path, flags, 0o666), "r+b") as file:
            _drop_half_line(file)
            end = file.tell()
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                # Half a line on a full disk is taken back, so that the file stays whole.
                with suppress(OSError):
                    os.ftruncate(file.fileno(), end)
                raise
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}; what was there before is intact") from error


def _drop_half_line(file: Any) -> None:
    """Leave the file at its end, behind its last whole line."""
    end = file.seek(0, os.SEEK_END)
    if not end:
        return
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    content = file.read()
    file.seek(content.rfind(b"\n") + 1)
    file.truncate()


def shorten(path: Path, size: int) -> None:
    """Leave the first `size` bytes of a file."""
    if path.exists() and path.stat().st_size > size:
        write_atomic(path, read_bytes(path, MOST_LINES)[:size])


def write_json(path: Path, value: object) -> None:
    """Replace a file by a value as JSON."""
    write_atomic(path, (json.dumps(value, indent=2) + "\n").encode())


def read_bytes(path: Path, most: int | None = MOST_BYTES) -> bytes:
    """The content of a plain file of at most this size; a missing file, a device and a pipe are refused."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise RequestError(f"{path} is damaged: it is not a plain file")
        if most is not None and about.st_size > most:
            raise RequestError(
                f"{path} is damaged: it has {bytes_text(about.st_size)}, and at most {bytes_text(most)} are read"
            )
        check_room(about.st_size, f"{path}")
        return path.read_bytes()
    except FileNotFoundError:
        raise RequestError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def parse_json(content: bytes, what: object) -> Any:
    """The value of a JSON text; `what` names it where it is damaged."""
    try:
        check_room(GROWN * len(content) if len(content) > 2**20 else 0, f"{what}")
        value = json.loads(content)
    except RecursionError:
        raise RequestError(f"{what} is damaged: its values lie more than {MOST_DEPTH} deep in each other") from None
    except MemoryError:
        raise RequestError(f"{what} needs more memory than there is: its text has {bytes_text(len(content))}") from None
    except ValueError as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError(f"{what} is damaged: {error}") from error
    if _deeper(value, MOST_DEPTH):
        raise RequestError(f"{what} is damaged: its values lie more than {MOST_DEPTH} deep in each other")
    return value


def _deeper(value: Any, most: int) -> bool:
    """Whether lists and objects lie deeper in each other than this."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inside = (inner for each in layer for inner in (each.values() if isinstance(each, dict) else each))
        layer = [inner for inner in inside if isinstance(inner, dict | list)]
        if not layer:
            return False
    return True


def read_json(path: Path, *, most: int = MOST_BYTES) -> Any:
    """The value in a JSON file; a missing or damaged one is refused."""
    return parse_json(read_bytes(path, most), path)


def read_object(path: Path, schema: type[BaseModel] | None = None) -> dict[str, Any]:
    """The object in a JSON file, as it stands there, once it is known to fit its schema."""
    return checked_object(read_json(path), schema, path)


def checked_object(value: Any, schema: type[BaseModel] | None, what: object) -> dict[str, Any]:
    """A value from a file, as it is, if it is an object that fits the schema."""
    if not isinstance(value, dict):
        raise RequestError(f"{what} is damaged: it holds no object but {short(value)}")
    if schema is not None:
        try:
            schema.model_validate(value)
        except (ValidationError, RecursionError) as error:
            raise RequestError(f"{what} is damaged: {first_fault(error)}") from None
    return value


def read_lines(path: Path, check: Callable[[Any, str], T], *, content: bytes | None = None) -> list[T]:
    """What `check` makes of each line's value; a last line that a kill cut off is left out."""
    content = read_bytes(path, MOST_LINES) if content is None else content
    rows = []
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
        what = f"{path}, line {number},"
        if len(line) > MOST_BYTES:
            raise RequestError(f"{what} is damaged: it has {bytes_text(len(line))}")
        rows.append(check(parse_json(line, what), what))
    return rows
