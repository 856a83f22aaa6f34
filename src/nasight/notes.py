"""What reading data has to say on the way: sentences, and how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    """Who hears of the reading of data."""

    def note(self, text: str) -> None:
        """A sentence for the user."""

    def progress(self, what: str, done: int, total: int) -> None:
        """So many of all pieces of a work are done; told when it begins and when it ends, too."""


_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell the listener what `load` does while the block lasts.

    Parameters
    ----------
    listener : any object with `note(text)` and `progress(what, done, total)`.

    >>> class Printed:
    ...     def note(self, text): print(text)
    ...     def progress(self, what, done, total): pass
    >>> with listening(Printed()):
    ...     heard = note("3 files")
    3 files
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def note(text: str) -> bool:
    """Say a sentence; whether somebody listens."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.note(text)
    return listener is not None


def progress(what: str, done: int, total: int) -> None:
    """Say how far a work is."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.progress(what, done, total)
