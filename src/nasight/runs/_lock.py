"""Only one process writes a run."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from nasight.errors import RequestError, RunError

NAME = ".lock"


def acquire(folder: Path) -> FileLock:
    """The lock of a folder, taken; it goes with the process, however that ends.

    It is opened for writing, so what else has its name (a link, a pipe) is refused.
    """
    path = folder / NAME
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            raise RequestError(f"{path} is a link or a device and not the lock of a run; remove it")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RunError(f"cannot lock {folder}: {error.strerror}") from error
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise RequestError(f"another process is writing {folder}") from None
    except OSError as error:
        raise RunError(f"cannot lock {folder}: {error.strerror or error}") from error
    return lock


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Inside, no other process writes this folder."""
    lock = acquire(folder)
    try:
        yield
    finally:
        lock.release()
