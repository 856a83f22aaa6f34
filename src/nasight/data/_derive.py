"""Data sets made from others: some of the rows, smaller images; those of mapped files are mapped files too."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from nasight.data._cache import Site, cached
from nasight.data._dataset import Dataset
from nasight.data._maps import chunks, is_mapped, open_map, take
from nasight.notes import progress

Change = Callable[[Tensor], Tensor]


def select_rows(data: Dataset, train: Tensor, test: Tensor | None = None) -> Dataset:
    """The data set with some of its training rows, in this order.

    Parameters
    ----------
    data : the data set.
    train : the numbers of the training rows that stay.
    test : the numbers of training rows that become the test part; by default the test part stays as it is. How the
        columns of a table become numbers is then decided again, by the rows in `train` alone.

    >>> from nasight.data import load
    >>> small = select_rows(load("digits"), torch.arange(300), torch.arange(300, 400))
    >>> len(small.train_y), len(small.test_y)
    (300, 100)
    """
    changes: dict[str, Any] = {"train_y": data.train_y[train]}
    wanted = {"train_x": train}
    if test is not None:
        changes["test_y"], wanted["test_x"] = data.train_y[test], test
        if data.table is not None:
            layout, x = data.table.refitted(data.train_x.numpy(), train.numpy())
            data = replace(data, table=layout, train_x=torch.from_numpy(x))
    if not is_mapped(data.train_x):
        return replace(data, **changes | {name: data.train_x[rows] for name, rows in wanted.items()})
    digest = hashlib.sha256(b";".join(rows.numpy().tobytes() for rows in wanted.values())).hexdigest()
    what = {"rows": digest, "of": data.fingerprint, "parts": sorted(wanted)}

    def fill(site: Site) -> dict[str, Any]:
        for name, rows in wanted.items():
            _write(site, name, data.train_x, rows, lambda x: x)
        return {}

    place, _ = cached(what, f"{data.source} ({len(train):,} rows)", fill)
    return replace(data, **changes | {name: open_map(place / f"{name}.npy") for name in wanted})


def resized(data: Dataset, resolution: int | None, *, test: bool = True) -> Dataset:
    """The data set with images of `resolution` pixels per side (area averages).

    Parameters
    ----------
    data : the data set; vectors, and images of that size, stay as they are.
    resolution : pixels per side; None leaves the images.
    test : whether the test part is kept; a search needs none.
    """
    if resolution is None or len(data.inputs) != 3 or data.inputs[1:] == (resolution, resolution):
        return data

    def shrink(x: Tensor) -> Tensor:
        small = functional.adaptive_avg_pool2d(x.float(), resolution)
        return small.round().to(torch.uint8) if x.dtype == torch.uint8 else small

    old = data.augmentation
    # A shift keeps its proportion to the image.
    new = None if old is None else replace(old, crop=round(old.crop * resolution / min(data.inputs[1:])))
    names = ["train_x", "test_x"] if test and data.test_x is not None else ["train_x"]
    parts = {name: getattr(data, name) for name in names}
    small: dict[str, Any] = {} if test else {"test_x": None, "test_y": None}
    if is_mapped(data.train_x):
        place, _ = cached(
            {"resolution": resolution, "of": data.fingerprint, "parts": names},
            f"{data.source} at {resolution}x{resolution}",
            lambda site: {name: _write(site, name, x, None, shrink) for name, x in parts.items()},
        )
        small |= {name: open_map(place / f"{name}.npy") for name in names}
    else:
        small |= {name: torch.cat([shrink(part) for part in chunks(x, most=4096)]) for name, x in parts.items()}
    return replace(data, augmentation=new, **small)


def _write(site: Site, name: str, x: Tensor, rows: Tensor | None, change: Change) -> int:
    """Write the rows of an array, or those named, changed, some at a time; how many."""
    count, done = len(x) if rows is None else len(rows), 0
    example = change(take(x, slice(0, 1)))
    kind = str(example.dtype).removeprefix("torch.")
    writer = site.rows(name, (count, *example.shape[1:]), kind)
    for piece in chunks(x, rows):
        writer.write(done, change(piece).numpy())
        done += len(piece)
        progress("writing rows", done, count)
    return count
