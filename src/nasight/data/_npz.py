"""An .npz file of plain arrays."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile

from nasight.data._arrays import from_arrays
from nasight.data._dataset import Dataset
from nasight.errors import RequestError

KEYS = ("x", "y", "x_test", "y_test")


def read_npz(path: Path, task: str | None = None) -> Dataset:
    """The data set of the arrays x, y and optionally x_test, y_test in a file; nothing in it is unpickled."""
    try:
        # Opened here, because numpy leaves a file that it cannot read open.
        with path.open("rb") as handle:
            file = np.load(handle, allow_pickle=False)
            names = list(file.files) if isinstance(file, NpzFile) else []
            arrays = {key: file[key] for key in KEYS if key in names}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError) as error:
        raise RequestError(f"{path} cannot be read as an .npz file of plain arrays ({error})") from error
    absent = [key for key in KEYS[: 4 if len(arrays) > 2 else 2] if key not in arrays]
    if absent:
        raise RequestError(f"{path} lacks the array {absent[0]!r}; it holds {', '.join(names) or 'nothing'}")
    return from_arrays(path.stem, tuple(arrays.values()), source=str(path), task=task)
