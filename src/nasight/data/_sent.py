"""A data set on its way to another machine: what it is called and what it is, not its rows."""

from __future__ import annotations

import pickle
import socket
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nasight.data._augment import NOTHING, augment_text
from nasight.data._dataset import Dataset
from nasight.data._files import load
from nasight.data._registry import registered_names
from nasight.data._sources import SOURCES
from nasight.errors import RequestError

KEPT = 4
_loaded: OrderedDict[tuple[str, str, bytes], Dataset] = OrderedDict()
"""Of this process, the data sets that came last."""


@dataclass(frozen=True)
class SentData:
    """Where a data set can be found again, and its fingerprint; each process that gets this loads the rows once.

    Parameters
    ----------
    name, fingerprint : of the data set.
    tries : (name or path, data folder) pairs under which it may be on another machine.
    then : what is made of it there; a function that can be pickled.
    reading : how photos were read: resolution and fit.
    augment : the random changes of its images, in words.
    """

    name: str
    fingerprint: str
    tries: tuple[tuple[str, str | None], ...]
    then: Callable[[Dataset], Dataset] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    augment: str = NOTHING

    @classmethod
    def of(cls, data: Dataset, then: Callable[[Dataset], Dataset] | None = None) -> SentData:
        """The data set as it is sent; one that has neither a name nor a file is refused.

        >>> SentData.of(load("digits")).load().inputs
        (1, 8, 8)
        """
        tries: list[tuple[str, str | None]] = []
        source = Path(data.origin or data.source).expanduser()
        if data.name in SOURCES or data.name in registered_names():
            tries = [(data.name, None), *([(data.name, str(source.resolve().parent))] if source.is_dir() else [])]
        elif source.exists():
            tries = [(str(source.resolve()), None)]
        if not tries:
            raise RequestError(
                f"data set {data.name!r} has neither a name nor a file that workers of a cluster could load: save it, "
                "for example as an .npz file"
            )
        reading, changes = dict(data.reading), augment_text(data.augmentation)
        return cls(data.name, data.fingerprint, tuple(tries), then, reading, changes)

    def load(self) -> Dataset:
        """The rows, loaded here and compared; other data under the same name is refused."""
        key = self.fingerprint, self.augment, pickle.dumps(self.then)
        if key not in _loaded:
            found = self._found()
            _loaded[key] = found if self.then is None else self.then(found)
            while len(_loaded) > KEPT:
                _loaded.popitem(last=False)
        return _loaded[key]

    def _found(self) -> Dataset:
        wrong = ""
        for what, folder in self.tries:
            try:
                data = load(what, folder=folder, augment=self.augment, **self.reading)
            except RequestError as error:
                wrong = wrong or str(error)
                continue
            if data.fingerprint == self.fingerprint:
                return data
            wrong = f"{what!r} has the fingerprint {data.fingerprint[:12]} there, {self.fingerprint[:12]} here"
        raise RequestError(f"the worker on {socket.gethostname()} does not have the data {self.name!r}: {wrong}")
