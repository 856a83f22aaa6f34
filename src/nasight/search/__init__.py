"""Search: one shared-weights network, every method a row, GAEA a column."""

import sys
from types import ModuleType
from typing import Any

from nasight.search._loop import Interrupted, resume, search
from nasight.search._progress import Progress
from nasight.search._run import Run
from nasight.search.methods import METHODS, Method

__all__ = ["METHODS", "Interrupted", "Method", "Progress", "Run", "resume", "search"]


class _Callable(ModuleType):
    """Lets `nasight.search` be both this room and the call that a user makes: `nasight.search(...)`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Run:
        return search(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
