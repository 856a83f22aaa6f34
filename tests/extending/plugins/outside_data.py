"""A data format from outside: text files ending in .pgmset, one image per line, `label side pixel pixel ...`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nasight.data import DataFormat, Dataset
from nasight.data import load as load_data


def read(path: Path) -> Dataset:
    """The images of the file; all are squares of one size."""
    rows = [line.split() for line in path.read_text().splitlines() if line.strip()]
    side = int(rows[0][1])
    x = np.array([[float(value) for value in row[2:]] for row in rows], np.float32).reshape(-1, 1, side, side)
    return load_data((x, np.array([int(row[0]) for row in rows])))


FORMAT = DataFormat("pgmset", lambda path: path.suffix == ".pgmset", read)
