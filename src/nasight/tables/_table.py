"""A tabular benchmark in memory: one array per column, in the order in which its space lists its architectures."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces import MultiplyAdds, Parameters, Space

Numbers = NDArray[np.float64]

DATASETS = {"c10": "CIFAR-10", "c100": "CIFAR-100", "in16": "ImageNet-16-120"}
MEASURES = {
    "val12": "validation accuracy after 12 epochs, %",
    "test12": "test accuracy after 12 epochs, %",
    "val200": "validation accuracy after 200 epochs, mean over seeds, %",
    "val200_std": "its standard deviation over seeds",
    "test200": "test accuracy after 200 epochs, mean over seeds, %",
    "nseeds": "seeds behind these means",
    "traintime12_s": "seconds of training for 12 epochs",
    "traintime200_s": "seconds of training for 200 epochs",
    "validtime_s": "seconds of one pass over the validation images",
    "latency_ms": "latency of a batch, milliseconds",
}
PARAMETERS = "params_M"
ROUNDED = 0.001
"""Millions of parameters by which a rounded number may be off."""
IMAGE, CLASSES = (3, 32, 32), 10
"""Of CIFAR-10."""
COLUMNS = (PARAMETERS, *(f"{dataset}_{measure}" for dataset in DATASETS for measure in MEASURES))

# Validation images over training images of an epoch (NAS-Bench-201, Section 2.2).
VALIDATION_SHARE = {"c10": 25_000 / 25_000, "c100": 5_000 / 50_000, "in16": 3_000 / 151_700}
FORWARD_SHARE = 1 / 3
"""A forward pass beside a training step: the backward pass costs two forward passes."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """What a table knows of one architecture; a number it lacks is None."""

    architecture: str
    canonical: str
    parameters: float | None
    """Millions, of the network for CIFAR-10."""
    multiply_adds: int | None
    """Of the same network for one image; counted, not measured, and None where the space cannot build that network."""
    datasets: dict[str, dict[str, float | None]]
    ranks: dict[str, int | None]
    """By test accuracy after the full training, 1 the best; architectures that tie share the better rank."""
    of: int
    same: tuple[str, ...]
    """The other architectures of the same canonical form."""
    seeds: dict[str, list[float]] = field(default_factory=dict)
    """Validation accuracies after 200 epochs seed by seed, where the table has them."""


class Table:
    """Accuracies and costs of every architecture of a space.

    Parameters
    ----------
    space : the space whose architectures the table lists.
    columns : names such as "c10_test200" -> one number per architecture, in the order of `for arch in space`. A name
        is "params_M", or a data set (c10, c100, in16) and a measure: val12, test12, val200, val200_std, test200,
        nseeds, traintime12_s, traintime200_s, validtime_s, latency_ms.
    name : what the table is called in messages.
    source : where its numbers come from.
    per_seed : data sets -> the validation accuracies of each architecture, one list per architecture.

    >>> from nasight.spaces.mlp import Mlp
    >>> table = Table(Mlp(2), {"c10_test200": [90.0, 91.0, 89.0, 92.0, 90.5]}, name="five")
    >>> table.optimum("c10"), table.text(3)
    (92.0, 'tanh')
    """

    def __init__(
        self,
        space: Space,
        columns: Mapping[str, Any],
        *,
        name: str = "table",
        source: str = "memory",
        per_seed: Mapping[str, list[list[float]]] | None = None,
    ) -> None:
        self._space, self.name, self.source = space, name, source
        self.columns: dict[str, Numbers] = {key: np.asarray(v, dtype=np.float64) for key, v in columns.items()}
        self.per_seed = dict(per_seed or {})
        lengths = {key: len(v) for key, v in self.columns.items()} | {key: len(v) for key, v in self.per_seed.items()}
        for key, length in lengths.items():
            if length != len(space):
                raise RequestError(f"column {key!r} has {length} numbers, the space {len(space)} architectures")

    lengths: tuple[int, ...] = (12, 200)
    """The trainings that it has, in epochs; the last one judges."""
    seen: int = 12
    """The training whose validation accuracy a search sees."""
    published: bool = True
    """Whether the published figures of the races are about this table."""

    @property
    def space(self) -> Space:
        """The space whose architectures it lists."""
        return self._space

    @property
    def full(self) -> int:
        """Epochs of the training that judges."""
        return self.lengths[-1]

    @property
    def measures(self) -> tuple[str, ...]:
        """What it may have of a data set."""
        return tuple(MEASURES)

    def covers(self, space: str) -> bool:
        """Whether what a search in this space finds can be looked up here."""
        return space == self.space.name

    def __len__(self) -> int:
        return len(self.space)

    def __repr__(self) -> str:
        return f"Table({self.name!r}: {len(self)} architectures of {self.space.name}, {len(self.columns)} columns)"

    @property
    def has(self) -> tuple[str, ...]:
        """The columns of this table."""
        return tuple(self.columns)

    @property
    def lacks(self) -> tuple[str, ...]:
        """The columns that other tables have and this one has not."""
        return tuple(column for column in COLUMNS if column not in self.columns)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets of which this table has anything."""
        return tuple(d for d in DATASETS if any(c.startswith(f"{d}_") for c in self.columns))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of options of each decision."""
        return tuple(len(d.options) for d in self.space.decisions)

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of all the numbers: two tables with the same one are the same."""
        digest = hashlib.sha256()
        for key in sorted(self.columns):
            digest.update(key.encode() + self.columns[key].tobytes())
        return digest.hexdigest()[:16]

    def column(self, name: str) -> Numbers:
        """One number per architecture; a `RequestError` says what a table without it has."""
        if name not in self.columns:
            raise RequestError(f"table {self.name!r} has no column {name!r}; it has {', '.join(self.has)}")
        return self.columns[name]

    def index(self, arch: Architecture | str) -> int:
        """The place of an architecture in every column."""
        arch = self.space.checked(self.space.parse(arch) if isinstance(arch, str) else arch)
        places = [d.options.index(arch[d.name]) for d in self.space.decisions]
        return int(np.ravel_multi_index(places, self.sizes))

    def architecture(self, index: int) -> Architecture:
        """The architecture at a place."""
        places = np.unravel_index(index, self.sizes)
        return self.space.architecture(
            {d.name: d.options[int(i)] for d, i in zip(self.space.decisions, places, strict=True)}
        )

    def text(self, index: int) -> str:
        """The text of the architecture at a place."""
        return self.space.format(self.architecture(index))

    def canonical(self, index: int) -> str:
        """The form that equal architectures share."""
        return self.space.canonical(self.architecture(index))

    @cached_property
    def classes(self) -> dict[str, list[int]]:
        """Canonical form -> the places of the architectures that have it."""
        classes: dict[str, list[int]] = {}
        for index, arch in enumerate(self.space):
            classes.setdefault(self.space.canonical(arch), []).append(index)
        return classes

    def rank(self, index: int, column: str) -> int:
        """1 + the number of architectures whose number in this column is larger than that of the one at `index`."""
        values = self.column(column)
        return 1 + int((values > values[index]).sum())

    def optimum(self, dataset: str) -> float:
        """The best test accuracy after the full training on a data set, in %."""
        return float(self.column(f"{dataset}_test{self.full}").max())

    def cost(self, dataset: str, epochs: int) -> Numbers:
        """Seconds to train each architecture for `epochs` (12 or 200) and to validate it once: the benchmark's price.

        A table without 12-epoch times has them as 12/200 of the 200-epoch time: the benchmark trains both with the
        same batches on the same kind of device. One without validation times takes a pass over the validation
        images for a third of the training time of as many images.
        """
        full = f"{dataset}_traintime200_s"
        measured = self.columns.get(f"{dataset}_traintime{epochs}_s")
        train = self.column(full) * (epochs / 200) if measured is None else measured
        validate = self.columns.get(f"{dataset}_validtime_s")
        if validate is None:
            validate = train / epochs * VALIDATION_SHARE[dataset] * FORWARD_SHARE
        return np.asarray(train + validate, dtype=np.float64)

    def multiply_adds(self, index: int) -> int | None:
        """Of the network of the papers for an image of CIFAR-10; None where that has not the table's parameters."""
        if self._counts is None or PARAMETERS not in self.columns:
            return None
        arch, (parameters, products) = self.architecture(index), self._counts
        apart = abs(parameters(arch) / 1e6 - self.columns[PARAMETERS][index])
        return products(arch) if apart <= ROUNDED else None

    @cached_property
    def _counts(self) -> tuple[Parameters, MultiplyAdds] | None:
        """Of networks at the size of the papers; None where the space has no such size."""
        space, size = self.space, self.space.train_size("paper")
        if size is None:
            return None
        return space.parameters(IMAGE, CLASSES, **size), space.multiply_adds(IMAGE, CLASSES, **size)

    def query(self, arch: Architecture | str) -> TableRow:
        """Everything the table knows of one architecture, given as such or as its text."""
        index = self.index(arch)
        canonical, judges = self.canonical(index), f"test{self.full}"

        def number(column: str) -> float | None:
            return float(self.columns[column][index]) if column in self.columns else None

        return TableRow(
            architecture=self.text(index),
            canonical=canonical,
            parameters=number(PARAMETERS),
            multiply_adds=self.multiply_adds(index),
            datasets={d: {m: number(f"{d}_{m}") for m in self.measures} for d in self.datasets},
            ranks={
                d: self.rank(index, f"{d}_{judges}") if f"{d}_{judges}" in self.columns else None for d in self.datasets
            },
            of=len(self),
            same=tuple(self.text(i) for i in self.classes[canonical] if i != index),
            seeds={d: list(self.per_seed[d][index]) for d in self.per_seed},
        )
