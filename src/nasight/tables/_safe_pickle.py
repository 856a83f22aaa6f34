"""Pickles of plain numbers and texts, read without giving them a chance to run anything."""

from __future__ import annotations

import bz2
import pickle
from pathlib import Path
from typing import Any

from nasight.errors import RequestError

# What dictionaries of numbers are made of; nothing here does more than build a value.
ALLOWED = {
    ("collections", "OrderedDict"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
}


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no plain number")
        return super().find_class(module, name)


def read_pickle(path: Path) -> Any:
    """The value in a pickle (.pbz2: compressed); one that names a function or a class is refused."""
    try:
        with bz2.open(path) if path.suffix == ".pbz2" else path.open("rb") as file:
            return _Plain(file).load()
    except FileNotFoundError:
        raise RequestError(f"{path} does not exist") from None
    except Exception as error:  # a damaged pickle can raise anything
        raise RequestError(f"{path} cannot be read as a table of plain numbers: {error}") from error
