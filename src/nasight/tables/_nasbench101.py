"""NAS-Bench-101 from its owner's record files (Ying et al., 2019): 423,624 cells, trained three times each."""

from __future__ import annotations

import base64
import io
import json
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError, RunError
from nasight.runs import write_atomic
from nasight.tables._module_table import ModuleTable
from nasight.tables._modules import Module
from nasight.tables._records import fields, read_records

NAME = "nasbench101"
FILES = ("nasbench_full.tfrecord", "nasbench_only108.tfrecord")
ADDRESS = "https://storage.googleapis.com/nasbench/"
CHECKED = 1000
"""Cells whose hash is computed here and compared with the file's."""


class Training(NamedTuple):
    """One record: a cell trained once."""

    key: str
    module: Module
    epochs: int
    parameters: int
    seconds: float
    validation: float
    test: float


def read_named(folder: Path) -> ModuleTable:
    """The table of the record file in the data folder."""
    for path in (place / file for place in (folder, folder / NAME) for file in FILES):
        if path.is_file():
            return read_nasbench101(path)
    raise RequestError(
        f"the table {NAME} is not in {folder}; put {FILES[0]} (1.95 GB) or {FILES[1]} (0.5 GB) there, which its owner "
        f"has at {ADDRESS}{FILES[1]}, or give --table the path of one"
    )


def read_nasbench101(path: Path) -> ModuleTable:
    """The table in a record file of NAS-Bench-101.

    All records are read and their checksums compared, which takes minutes for the whole benchmark; FILE.npz beside it
    then keeps the table for the next time, where that folder can be written.
    """
    kept = path.with_name(f"{path.name}.npz")
    about = path.stat()
    mark = np.array([about.st_size, about.st_mtime_ns], np.int64)
    arrays = _kept(kept, mark)
    if arrays is None:
        arrays = _collected(read_trainings(path), path)
        _keep(kept, {**arrays, "mark": mark})
    return ModuleTable(arrays, name=NAME, source=str(path))


def read_trainings(path: Path) -> Iterator[Training]:
    """Every record of the file as a training."""
    for number, record in enumerate(read_records(path), 1):
        try:
            yield _training(record)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise RequestError(f"record {number} of {path} is not one of NAS-Bench-101: {error}") from error


def _training(record: bytes) -> Training:
    """A record is JSON: hash, epochs, matrix row by row, operations, and metrics as a protobuf message in base 64."""
    key, epochs, bits, names, metrics = json.loads(record)
    size = round(len(bits) ** 0.5)
    matrix = [[int(bit) for bit in bits[row * size : (row + 1) * size]] for row in range(size)]
    module = Module.of_matrix(matrix, names.split(","))
    parameters, evaluations = 0, list[bytes]()
    for number, value in fields(base64.b64decode(metrics, validate=True)):
        if number == 1 and isinstance(value, bytes):
            evaluations.append(value)
        elif number == 2:
            parameters = int(value)
    if len(evaluations) < 3:
        raise ValueError(f"it has {len(evaluations)} evaluations: before, half way and after training are three")
    last = dict(fields(evaluations[2]))  # 2: seconds, 3: training, 4: validation, 5: test accuracy
    seconds, validation, test = (float(last.get(number, 0.0)) for number in (2, 4, 5))
    return Training(str(key), module, int(epochs), parameters, seconds, validation, test)


def _collected(trainings: Iterator[Training], path: Path) -> dict[str, NDArray[Any]]:
    """Means and deviations over the trainings of each cell and length; cells in the order of their hashes."""
    places: dict[str, int] = {}
    modules: list[Module] = []
    parameters = array("q")
    where, lengths, values = array("q"), array("q"), array("d")
    for one in trainings:
        if one.key not in places:
            if len(places) < CHECKED and one.module.hash() != one.key:
                raise RequestError(
                    f"{path}: the cell {one.module.text} has the hash {one.module.hash()}, not {one.key}"
                )
            places[one.key] = len(places)
            modules.append(one.module)
            parameters.append(one.parameters)
        where.append(places[one.key])
        lengths.append(one.epochs)
        values.extend((one.validation, one.test, one.seconds))
    if not places:
        raise RequestError(f"{path} holds no records")
    order = np.argsort(np.array(list(places)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    found: dict[str, NDArray[Any]] = {
        "hashes": np.array(list(places), "S32")[order],
        "texts": np.array([module.text for module in modules])[order],
        "params_M": np.array(parameters, float)[order] / 1e6,
    }
    rows = rank[np.array(where)]
    for epochs in np.unique(lengths):
        at = np.array(lengths) == epochs
        found |= _columns(int(epochs), rows[at], np.array(values).reshape(-1, 3)[at], len(order), path)
    return found


def _columns(
    epochs: int, rows: NDArray[np.int64], values: NDArray[np.float64], cells: int, path: Path
) -> dict[str, NDArray[np.float64]]:
    count = np.bincount(rows, minlength=cells).astype(float)
    if not count.all():
        raise RequestError(f"{path} lacks a training of {epochs} epochs for {int((count == 0).sum())} of {cells} cells")
    validation, test, seconds = (np.bincount(rows, part, cells) / count for part in values.T)
    away = np.bincount(rows, (values[:, 0] - validation[rows]) ** 2, cells) / count
    return {
        f"c10_val{epochs}": 100 * validation,
        f"c10_val{epochs}_std": 100 * np.sqrt(away),
        f"c10_test{epochs}": 100 * test,
        f"c10_traintime{epochs}_s": seconds,
        "c10_nseeds": count,
    }


def _keep(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write the table beside its file; where that cannot be done, the next call reads the file again."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    with suppress(RunError):
        write_atomic(path, content.getvalue())


def _kept(path: Path, mark: NDArray[np.int64]) -> dict[str, NDArray[Any]] | None:
    """What was kept of this very file, or None."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
    except (OSError, ValueError, KeyError, EOFError):
        return None
    return arrays if np.array_equal(arrays.pop("mark", None), mark) else None
