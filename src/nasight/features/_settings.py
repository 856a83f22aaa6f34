"""What a selection was asked for."""

from __future__ import annotations

import re
import time
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from nasight.errors import RequestError
from nasight.features._methods import CRITERIA, method
from nasight.reproducible import MOST_THREADS
from nasight.runs import first_fault

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
OWN = "own"
"""What settings say of maps and data that have no name."""
MOST = {"configs": 10**6, "dimension": 10**6, "max_calls": 10**9, "threads": MOST_THREADS}
"""More are a mistake: they would be listed, drawn or started before anything else happens."""
UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class SelectSettings(BaseModel):
    """Everything that a selection follows from, beside its rows and a family of the user's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    maps: str
    data: str
    target: str | None = None
    method: str = "fast-weight-sharing"
    configs: int
    dimension: int = 10_000
    validation: float | int | str | None = None
    examples: int | None = None
    score: str = "accuracy"
    max_calls: int | None = None
    max_seconds: float | None = None
    clock: str = "wall"
    seed: int = 0
    oracle: bool = False
    memory: int | None = None
    penalty: float = 0.5
    threads: int
    published: bool = False


def resolve(**given: Any) -> SelectSettings:
    """Settings with the method's own number of configurations, checked."""
    given["configs"] = method(given["method"]).configs if given.get("configs") is None else given["configs"]
    threads = torch.get_num_threads() if given.get("threads") is None else given["threads"]
    return checked({**given, "memory": memory_bytes(given.get("memory")), "threads": threads})


def checked(values: dict[str, Any]) -> SelectSettings:
    try:
        settings = SelectSettings(**values)
    except ValidationError as error:
        raise RequestError(first_fault(error, "setting", SelectSettings.model_fields)) from None
    if settings.score not in CRITERIA:
        raise RequestError(f"there is no score {settings.score!r}; there are {', '.join(CRITERIA)}")
    if settings.clock not in CLOCKS:
        raise RequestError(f"there is no clock {settings.clock!r}; there are {', '.join(CLOCKS)}")
    for name in ("configs", "dimension", "max_calls", "max_seconds", "examples", "penalty", "threads"):
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise RequestError(f"{name} is more than 0, got {value}")
        if value is not None and value > MOST.get(name, value):
            raise RequestError(f"{name} is at most {MOST[name]:,}, got {value}")
    if settings.seed < 0:
        raise RequestError(f"seed is at least 0, got {settings.seed}")
    return settings


def memory_bytes(size: int | str | None) -> int | None:
    """Bytes from '4G', '500M' or a number.

    >>> memory_bytes("1.5K")
    1536
    """
    if size is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([BKMGT]?)(?:I?B)?", str(size).strip().upper())
    if match is None or float(match[1]) <= 0:
        raise RequestError(f"memory is a number of bytes like 4G or 500M, got {size!r}")
    return int(float(match[1]) * UNITS[match[2]])
