"""What is wrong with a value, in words."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from pydantic import ValidationError

WHOLE = ("value_error", "json_invalid")
"""Kinds of pydantic's errors whose message is a sentence of its own."""


def first_fault(error: ValidationError | RecursionError, kind: str = "", known: Collection[str] = ()) -> str:
    """The first thing that is wrong with a value, as a sentence in which the value is "it".

    Parameters
    ----------
    error : what pydantic raised.
    kind : what the entries of the value are called, such as "setting".
    known : the names of all entries, for a name that is none of them.
    """
    if isinstance(error, RecursionError):
        return "its values lie too deep in each other"
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"][:4])[:80]
    if first["type"] == "missing":
        return f"it lacks {_named(kind, name)}"
    if first["type"] == "extra_forbidden":
        return _unknown(name, kind, known) if known else f"it has {_named(kind, name)}, which is unknown here"
    message = first["msg"].removeprefix("Value error, ")
    if not name and first["type"] in WHOLE:
        return message
    place, got = _named(kind, name) if name else "it", f"got {short(first['input'])}"
    if message.startswith("Input should"):
        return f"{place} {message.removeprefix('Input ')}, {got}"
    return f"{place}: {message[0].lower()}{message[1:]}, {got}"


def _named(kind: str, name: str) -> str:
    return f"{kind} {name!r}".lstrip()


def _unknown(name: str, kind: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no {_named(kind, name)}, only {', '.join(known)}{hint}"


def short(value: object) -> str:
    """A value as a message shows it, at most 60 characters."""
    try:
        return f"{value!r:.60}"
    except ValueError:  # a number of more digits than Python prints
        return "a number of thousands of digits"
