"""Data that a Python program has in its hands: arrays, frames, torch's data sets and loaders, `datasets.Dataset`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import Dataset as TorchDataset

from nasight.data._arrays import from_arrays
from nasight.data._dataset import Dataset
from nasight.data._frames import is_frame, read_columns
from nasight.data._tables import table_set
from nasight.errors import RequestError


def load_object(source: Any, label: str | None = None, task: str | None = None) -> Dataset:
    """The data set of a Python value.

    Parameters
    ----------
    source : arrays (x, y) or (x, y, x_test, y_test); a frame, a `torch.utils.data.Dataset`, a `DataLoader` or a
        `datasets.Dataset`, or a pair of them, the second to test with; or a frame x and a column y.
    label, task : as in `load`.
    """
    parts = list(source) if isinstance(source, (tuple, list)) else [source]
    if parts and is_frame(parts[0]):
        return _from_frames(parts, label, task)
    if parts and _is_hub(parts[0]):
        return _from_hub(parts, label, task)
    if label is not None:
        raise RequestError(f"label {label!r} names a column of a table, and these data are none")
    if parts and isinstance(parts[0], (TorchDataset, DataLoader)):
        return _from_torch(parts, task)
    if not isinstance(source, (tuple, list)):
        raise RequestError(
            "data must be a name, a path, arrays (x, y), a frame or a torch Dataset or DataLoader, "
            f"got a {type(source).__name__}"
        )
    return from_arrays("arrays", tuple(parts), source="arrays", task=task)


def _from_frames(parts: list[Any], label: str | None, task: str | None) -> Dataset:
    """One frame, a pair to train and to test with, or frames with their labels beside them: (x, y)."""
    if len(parts) > 1 and not all(is_frame(part) for part in parts[:2]):
        parts = [_joined(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        label = label or "label"
    tables = [part if isinstance(part, dict) else read_columns(part) for part in parts]
    if len(tables) > 2:
        raise RequestError(f"frames are one, or two of which the second tests, got {len(tables)}")
    return table_set("frame", "a frame", tables[0], tables[1] if len(tables) > 1 else None, label, task)


def _joined(x: Any, y: Any) -> dict[str, Any]:
    """A frame and the labels beside it as one table."""
    from nasight.data._frames import of_values

    columns = read_columns(x)
    values = y.to_list() if hasattr(y, "to_list") else np.asarray(y).tolist()
    if "label" in columns:
        raise RequestError("the frame has a column 'label' besides the labels that are given")
    if columns and len(values) != len(next(iter(columns.values()))):
        raise RequestError(
            f"the frame has {len(next(iter(columns.values())))} rows, but there are {len(values)} labels"
        )
    return {**columns, "label": of_values(values, "label")}


def _from_torch(parts: list[Any], task: str | None) -> Dataset:
    """Data sets and loaders of torch, read once from the first row to the last; random changes in them happen once."""
    if len(parts) > 2 or not all(isinstance(part, (TorchDataset, DataLoader)) for part in parts):
        raise RequestError("torch data is one Dataset or DataLoader, or two of which the second tests")
    arrays: list[Any] = []
    for part in parts:
        arrays += _stacked(_rows(part), type(part).__name__)
    inner = parts[0].dataset if isinstance(parts[0], DataLoader) else parts[0]
    given = getattr(inner, "classes", None)
    names = [name for name in given if isinstance(name, str)] if isinstance(given, (list, tuple)) else []
    y = arrays[1]
    known = names and y.ndim == 1 and y.dtype.kind in "iu" and y.max(initial=0) < len(names)
    classes = tuple(names) if known else None
    name = type(inner).__name__.lower()
    return from_arrays(name, tuple(arrays), source=f"a torch {type(inner).__name__}", classes=classes, task=task)


def _rows(part: Any) -> Iterator[tuple[Any, Any]]:
    """The rows (x, y) of a data set, in its order; of a loader those of its data set."""
    if isinstance(part, DataLoader):
        if isinstance(part.dataset, IterableDataset) and part.batch_size is not None:
            for batch in part:
                x, y = _pair(batch)
                yield from zip(x, y, strict=True)
            return
        part = part.dataset
    items: Iterable[Any] = part if isinstance(part, IterableDataset) else (part[i] for i in range(len(part)))
    for item in items:
        yield _pair(item)


def _pair(item: Any) -> tuple[Any, Any]:
    if isinstance(item, dict) and len(item) == 2:
        item = tuple(item.values())
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise RequestError(f"rows of a torch Dataset must be pairs (x, y), got a {type(item).__name__}")
    return item[0], item[1]


def _stacked(rows: Iterable[tuple[Any, Any]], what: str) -> list[Any]:
    """The arrays x and y of rows."""
    xs, ys = list[Any](), list[Any]()
    for x, y in rows:
        array = x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
        if xs and array.shape != xs[0].shape:
            raise RequestError(
                f"row {len(xs)} of the {what} has shape {array.shape}, row 0 has {xs[0].shape}; all must have one "
                "(resize them in the data set)"
            )
        xs.append(array)
        ys.append(y.detach().cpu().numpy() if isinstance(y, Tensor) else y)
    if not xs:
        raise RequestError(f"the {what} has no rows")
    return [np.stack(xs), _label_array(ys)]


def _label_array(ys: Sequence[Any]) -> Any:
    try:
        return np.asarray(ys)
    except ValueError:
        raise RequestError("the labels of a torch Dataset must all have one shape") from None


def _is_hub(value: Any) -> bool:
    """Whether a value is a `datasets.Dataset`, without importing that package."""
    return type(value).__module__.split(".")[0] == "datasets" and hasattr(value, "features")


def _from_hub(parts: list[Any], label: str | None, task: str | None) -> Dataset:
    """A `datasets.Dataset`: a column of images with a label, or a table."""
    features, first = parts[0].features, parts[0]
    images = [name for name, kind in features.items() if type(kind).__name__ == "Image"]
    target = label or next((name for name in ("label", "labels", "fine_label") if name in features), None)
    if not images:
        tables = [read_columns(part.data.table if hasattr(part.data, "table") else part.to_pandas()) for part in parts]
        test = tables[1] if len(tables) > 1 else None
        return table_set("dataset", "a datasets.Dataset", tables[0], test, target, task)
    if target is None:
        raise RequestError(f"the label of a datasets.Dataset must be named: label=, of {', '.join(first.column_names)}")
    arrays: list[Any] = []
    for part in parts:
        arrays += _stacked(((row[images[0]], row[target]) for row in part), "datasets.Dataset")
    names = getattr(features[target], "names", None)
    return from_arrays(
        "dataset", tuple(arrays), source="a datasets.Dataset", classes=tuple(names) if names else None, task=task
    )
