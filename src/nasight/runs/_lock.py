"""Only one process writes a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from nasight.errors import RequestError

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Inside, no other process writes this folder; the lock goes with the process, however it ends."""
    lock = FileLock(folder / NAME, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise RequestError(f"another process is writing {folder}") from None
    try:
        yield
    finally:
        lock.release()
