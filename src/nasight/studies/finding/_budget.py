"""How much a find may spend: seconds of a clock, or a number of trainings."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from nasight.errors import RequestError

UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
PATTERN = re.compile(r"(?:(\d+(?:\.\d+)?)\s*([smhd])\s*)+", re.ASCII)
PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])", re.ASCII)


@dataclass(frozen=True)
class Budget:
    """Seconds, or trainings; `more` says that it comes on top of what an earlier call was given."""

    seconds: float | None = None
    trainings: int | None = None
    more: bool = False


def read_budget(budget: str | float | None, trainings: int | None = None) -> Budget:
    """A budget from a text such as "90s", "30m", "1h30m" or "+20m", or from seconds as a number.

    >>> read_budget("1h30m").seconds
    5400.0
    >>> read_budget("+20m")
    Budget(seconds=1200.0, trainings=None, more=True)
    """
    if trainings is not None:
        if budget is not None:
            raise RequestError("a budget is of time or of trainings, not both")
        if isinstance(trainings, bool) or not isinstance(trainings, int) or trainings < 1:
            raise RequestError(f"trainings must be a whole number of at least 1, got {trainings!r}")
        return Budget(trainings=trainings)
    if budget is None:
        raise RequestError("a find needs a budget: a time such as --budget 30m, or --trainings 60")
    text, more = (budget.strip().lower(), False) if isinstance(budget, str) else (budget, False)
    if isinstance(text, str):
        more = text.startswith("+")
        text = text.removeprefix("+")
        if PATTERN.fullmatch(text):
            found = sum(float(number) * UNITS[unit] for number, unit in PART.findall(text))
            return _checked(found, budget, more)
        raise RequestError(f"a budget is a time such as 90s, 30m, 8h or 1h30m, got {budget!r}")
    if isinstance(text, bool) or not isinstance(text, int | float):
        raise RequestError(f"a budget is a text such as '30m' or seconds, got {type(budget).__name__}")
    return _checked(float(text), budget, more)


def _checked(seconds: float, given: object, more: bool) -> Budget:
    if not 0 < seconds < math.inf:
        raise RequestError(f"a budget must be above 0, got {given!r}")
    return Budget(seconds=seconds, more=more)


def time_text(seconds: float) -> str:
    """A time as a person says it.

    >>> time_text(5400), time_text(95), time_text(4.2)
    ('1 h 30 min', '1 min 35 s', '4 s')
    """
    whole = round(seconds)
    days, hours, minutes, rest = whole // 86_400, whole // 3_600 % 24, whole // 60 % 60, whole % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((i for i, (number, _) in enumerate(parts) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number) or "0 s"
