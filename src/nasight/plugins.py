"""One call for everything that can be added from outside."""

from __future__ import annotations

from typing import Any

from nasight import data, kernels, report, searching, spaces, studies, tables
from nasight.errors import RequestError


def register(thing: Any, name: str | None = None) -> None:
    """Let a thing of your own be found by its name in this process, by every function and command.

    A package does the same for all who install it by an entry point: in the groups "nasight.spaces",
    "nasight.methods", "nasight.scores", "nasight.tables", "nasight.data" and "nasight.sections".

    Parameters
    ----------
    thing : a `Space`, its class or a function that makes one (`name` is then needed); a `nasight.Method`; a
        `nasight.kernels.Score`; a `nasight.tables.Table`; a `nasight.data.DataFormat`; a `nasight.report.Section`.
    name : the name, if not the thing's own.

    >>> from nasight.kernels import Score
    >>> register(Score("layers", lambda network, x, y: len(list(network.modules()))))
    """
    if isinstance(thing, spaces.Space) or (isinstance(thing, type) and issubclass(thing, spaces.Space)):
        spaces.register(thing, name)
    elif isinstance(thing, searching.Method):
        if (name or thing.name) in studies.TRAIN_FREE_METHODS:
            raise RequestError(f"{name or thing.name!r} is the name of a method without training; choose another name")
        searching.register(thing, name)
    elif isinstance(thing, kernels.Score):
        kernels.register(thing)
    elif isinstance(thing, tables.Table):
        tables.register(thing, name)
    elif isinstance(thing, data.DataFormat):
        data.register(thing)
    elif isinstance(thing, report.Section):
        report.register(thing)
    elif callable(thing) and name is not None:
        spaces.register(thing, name)
    else:
        raise RequestError(
            f"register takes a Space, a Method, a Score, a Table, a DataFormat or a Section, got {type(thing).__name__}"
        )
