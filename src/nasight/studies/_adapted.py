"""Published cells beside their widest forms and random connections, all trained alike (Cells, Table 1 and Figure 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import nn

from nasight.anatomy import Design, variants, widest
from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.spaces import known_multiply_adds, load
from nasight.studies._convergence import Comparison, compare_cells
from nasight.studies._protocol import Protocol
from nasight.studies.finding import Difference, Outcome, difference
from nasight.training import TrainingCurve

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class AdaptedRow:
    """One line of Table 1: test errors in percent, and parameters as trained, the auxiliary head among them.

    Multiply-adds are per example and without that head, which answers nothing.
    """

    name: str
    lr: float
    error: float
    adapted_error: float
    difference: Difference | None
    """Adapted less original, paired by seeds, with a 95 % interval; None where there is one seed."""
    parameters: int
    adapted_parameters: int
    multiply_adds: int | None
    adapted_multiply_adds: int | None
    diverged: int
    """Trainings of both that did."""


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """One point of Figure 9: index 0 is the original, the random connections follow from the narrowest on."""

    name: str
    lr: float
    index: int
    cell: str
    width: float
    depth: int
    accuracy: float
    difference: Difference | None
    """Less the original, paired by seeds; None for the original, and where there is one seed."""


@dataclass(frozen=True)
class AdaptedComparison:
    """Originals, each followed by its widest form and its random connections, trained alike."""

    compared: Comparison
    each: int
    """Designs for each original: itself, the widest, and the random connections."""
    parameters: tuple[int, ...]
    """Of the network of each design, as trained."""
    multiply_adds: tuple[int | None, ...]
    """Of each of them, per example."""

    @property
    def names(self) -> tuple[str, ...]:
        """The originals."""
        return tuple(design.name for design in self.compared.designs[:: self.each])

    def rows(self) -> list[AdaptedRow]:
        """Table 1: original and adapted side by side."""
        return [self._row(first, lr) for lr in self.compared.lrs for first in self._firsts()]

    def accuracies(self) -> list[AccuracyRow]:
        """Figure 9: the original and its random connections."""
        return [
            self._point(first, index, lr)
            for lr in self.compared.lrs
            for first in self._firsts()
            for index in range(self.each - 1)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The tables and every training as plain values."""
        return {
            "adapted": [asdict(row) for row in self.rows()],
            "accuracies": [asdict(row) for row in self.accuracies()] if self.each > 2 else [],
            **self.compared.to_dict(),
        }

    def _firsts(self) -> range:
        return range(0, len(self.compared.designs), self.each)

    def _row(self, first: int, lr: float) -> AdaptedRow:
        original, adapted = self.compared.of(first, lr), self.compared.of(first + 1, lr)
        return AdaptedRow(
            self.compared.designs[first].name,
            lr,
            100 - mean(t.accuracy for t in original),
            100 - mean(t.accuracy for t in adapted),
            _difference(original, adapted),  # errors: adapted less original is the original's accuracy less the other
            self.parameters[first],
            self.parameters[first + 1],
            self.multiply_adds[first],
            self.multiply_adds[first + 1],
            sum(t.diverged for t in (*original, *adapted)),
        )

    def _point(self, first: int, index: int, lr: float) -> AccuracyRow:
        place = first if index == 0 else first + 1 + index
        design, runs = self.compared.designs[place], self.compared.of(place, lr)
        graph = design[design.main]
        against = None if index == 0 else _difference(runs, self.compared.of(first, lr))
        accuracy = mean(t.accuracy for t in runs)
        name = self.compared.designs[first].name
        return AccuracyRow(name, lr, index, design.name, graph.width, graph.depth, accuracy, against)


def compare_adapted(
    designs: Sequence[Design],
    data: Any,
    *,
    random: int = 0,
    protocol: Protocol | None = None,
    lrs: Sequence[float] = (0.025,),
    seeds: Sequence[int] = (0, 1, 2),
    variant_seed: int = 0,
    out: str | Path | None = None,
    data_folder: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> AdaptedComparison:
    """Train cells, their widest forms and `random` random connections of each under one protocol.

    The folder and the other arguments are those of `compare_cells`: an interrupted call resumes, and one with more
    cells, connections, learning rates or seeds trains only what is missing.
    """
    if not designs or len({design.name for design in designs}) < len(designs):
        raise RequestError(f"give one or more different cells, got {', '.join(d.name for d in designs) or 'none'}")
    if random < 0:
        raise RequestError(f"the number of random connections must be at least 0, got {random}")
    protocol = protocol or Protocol()
    dataset = load_data(data, folder=data_folder)
    every = [made for design in designs for made in _family(design, random, variant_seed)]
    networks = [_network(design, dataset, protocol) for design in every]
    compared = compare_cells(
        every,
        dataset,
        protocol=protocol,
        lrs=lrs,
        seeds=seeds,
        out=out,
        executor=executor,
        workers=workers,
        device=device,
        progress=progress,
    )
    parameters = tuple(sum(p.numel() for p in network.parameters()) for network in networks)
    products = tuple(known_multiply_adds(network, dataset.inputs) for network in networks)
    return AdaptedComparison(compared, random + 2, parameters, products)


def _family(design: Design, random: int, seed: int) -> list[Design]:
    drawn = variants(design, random, seed=seed) if random else []
    main = design.main
    return [design, widest(design), *sorted(drawn, key=lambda d: (d[main].width, -d[main].depth))]


def _network(design: Design, data: Dataset, protocol: Protocol) -> nn.Module:
    """What a training of this protocol builds, without memory for its weights."""
    space = load(design.space)
    job = protocol.job(space, design.architecture(), data, lr=1.0, seed=0)
    extra = {"auxiliary": True} if job.settings.auxiliary else {}
    with torch.device("meta"):
        return space.network(job.arch, data.inputs, data.n_classes, **extra, **job.settings.size)


def _difference(a: Sequence[TrainingCurve], b: Sequence[TrainingCurve]) -> Difference | None:
    """The accuracy of a less that of b, paired by seeds."""
    if len(a) < 2:
        return None
    return difference([Outcome(t.accuracy) for t in a], [Outcome(t.accuracy) for t in b], LEVEL)
