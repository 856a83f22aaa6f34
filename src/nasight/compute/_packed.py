"""A function on its way to other processes: pickled once, unpickled once in each of them."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from nasight.errors import RequestError

Item = TypeVar("Item")
Result = TypeVar("Result")
KEPT = 2
"""Functions that a process keeps; with one may go a whole data set."""
SMALL = 100_000
"""Bytes that may travel with every item."""
_functions: OrderedDict[str, Callable[..., Any]] = OrderedDict()


def packed(function: Callable[..., Any]) -> tuple[bytes, str]:
    """The function as bytes, and their digest."""
    try:
        content = pickle.dumps(function)
    except Exception as error:
        raise RequestError(
            f"the work cannot be sent to other processes ({error}); use 1 worker, or functions and classes of a module"
        ) from error
    return content, hashlib.sha256(content).hexdigest()


def unpacked(digest: str, content: Callable[[], bytes]) -> Callable[..., Any]:
    """The function of this digest; its bytes are asked for where this process has not seen it lately."""
    if digest not in _functions:
        _functions[digest] = pickle.loads(content())
        while len(_functions) > KEPT:
            _functions.popitem(last=False)
    return _functions[digest]


@dataclass(frozen=True)
class FromFile:
    """Calls a function that lies in a file."""

    path: str
    digest: str

    def __call__(self, item: Any) -> Any:
        return unpacked(self.digest, Path(self.path).read_bytes)(item)


@contextmanager
def shipped(function: Callable[[Item], Result], executor: Executor) -> Iterator[Callable[[Item], Result]]:
    """The function as it is submitted: for processes of this machine a large one goes through a file, once each."""
    if not isinstance(executor, ProcessPoolExecutor):
        yield function
        return
    content, digest = packed(function)
    if len(content) <= SMALL:
        yield function
        return
    with tempfile.TemporaryDirectory(prefix="nasight-work-") as folder:
        path = Path(folder) / "function"
        path.write_bytes(content)
        del content
        yield FromFile(str(path), digest)
