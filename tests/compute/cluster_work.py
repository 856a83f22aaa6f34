"""What the workers of a test cluster do."""

from __future__ import annotations

import os
import time
from pathlib import Path


def slow(place: str) -> int:
    """Leave a note of who works on it, and take a while where it is the first to."""
    first = not Path(place).exists()
    Path(place).write_text(str(os.getpid()))
    if first and place.endswith("0"):
        time.sleep(60)
    return os.getpid()


def deadly(number: int) -> None:
    os._exit(3)


def wrong(number: int) -> None:
    raise ZeroDivisionError(f"item {number}")
