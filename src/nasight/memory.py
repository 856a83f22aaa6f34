"""How much memory there is, asked before any is taken."""

from __future__ import annotations

import os
from pathlib import Path

from nasight.errors import RequestError

KEPT = 0.9
"""The part of the free memory that one array may take."""


def available_bytes() -> int | None:
    """Memory that this process may still take: what the machine has free, or its own limit; None where unknown."""
    found = [size for size in (_machine(), _limit()) if size is not None]
    return min(found) if found else None


def check_room(size: int, what: str) -> None:
    """Refuse what does not fit into memory, before it is read; `what` begins the sentence."""
    room = available_bytes()
    if room is not None and size > KEPT * room:
        raise RequestError(f"{what} needs {bytes_text(size)} of memory, and {bytes_text(room)} are free")


def check_mapped(size: int, what: str) -> None:
    """Refuse a file that is mapped, not read, where the process may not have so many addresses (`ulimit -v`)."""
    room = _limit()
    if room is not None and size > KEPT * room:
        raise RequestError(f"{what} needs {bytes_text(size)} of memory addresses, and {bytes_text(room)} are free")


def bytes_text(size: int) -> str:
    """A number of bytes with a unit.

    >>> bytes_text(3_400_000_000)
    '3.4 GB'
    """
    for unit, name in ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


def _machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _limit() -> int | None:
    """What is left of the limit that a shell's `ulimit -v` sets."""
    if os.name != "posix":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return limit
    return max(0, limit - pages * resource.getpagesize())
