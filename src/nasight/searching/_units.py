"""Numbers as people write them."""

from __future__ import annotations

import re

from nasight.errors import RequestError


def read_count(text: str | int) -> int:
    """'300k', '1.5M' or '300000' -> a number of parameters.

    >>> read_count("300k"), read_count("1.5M"), read_count("300000")
    (300000, 1500000, 300000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgG]?)\s*", str(text).replace(",", "").replace("_", ""))
    if match is None or not (count := round(float(match[1]) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[match[2].lower()])):
        raise RequestError(f"a number of parameters is written as 300k, 1.5M or 300000, got {text!r}")
    return count


def read_milliseconds(text: str | float) -> float:
    """'5', '2.5' or '5ms' -> milliseconds.

    >>> read_milliseconds("5"), read_milliseconds("2.5 ms")
    (5.0, 2.5)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:ms)?\s*", str(text))
    if match is None or not float(match[1]):
        raise RequestError(f"a latency is written in milliseconds above 0, as 5 or 2.5, got {text!r}")
    return float(match[1])
