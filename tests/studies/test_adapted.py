"""Published cells beside their widest forms: the paper's parameter counts, and trainings that are paired by seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch
from scipy import stats

from nasight.anatomy import read_cells, widest
from nasight.data import Augment, Dataset
from nasight.errors import RequestError
from nasight.spaces import load, multiply_adds
from nasight.studies import Protocol, compare_adapted
from nasight.studies._adapted import _family, _network

TABLE_1 = {
    "NASNet": ((4.29, 4.32), (4.42, 4.45)),
    "AmoebaNet": ((3.60, 3.60), (3.71, 3.71)),
    "ENAS": ((4.32, 4.32), (4.45, 4.45)),
    "DARTS_V2": ((3.83, 3.90), (3.95, 4.03)),
    "SNAS": ((3.14, 3.19), (3.26, 3.31)),
}
"""Millions of parameters of the original and the adapted network, on CIFAR-10 and on CIFAR-100 (Cells, Table 1)."""
MOVES = {"NASNet": 26_352, "AmoebaNet": 0, "ENAS": 0, "DARTS_V2": 79_056, "SNAS": 52_704}
"""What the widest form adds; Table 1 prints +.03, 0, 0, +.07, +.05 million."""
PAPER = Protocol(channels=36, cells=20, regularize=True)
TINY = Protocol(epochs=1, batch_size=16, channels=2, cells=3)


def images(classes: int, side: int = 32, count: int = 100) -> Dataset:
    x = torch.zeros(count, 3, side, side, dtype=torch.uint8)
    y = torch.arange(count) % classes
    names = tuple(map(str, range(classes)))
    return Dataset("made", x, y, x[:classes], y[:classes], names, "a test", augmentation=Augment())


@pytest.mark.parametrize("name", TABLE_1)
def test_parameters_of_original_and_adapted_networks_are_those_of_table_1(name: str) -> None:
    designs = _family(read_cells(name), 0, 0)
    for classes, printed in zip((10, 100), TABLE_1[name], strict=True):
        networks = [_network(design, images(classes), PAPER) for design in designs]
        found = [sum(p.numel() for p in network.parameters()) / 1e6 for network in networks]
        assert [round(millions, 2) for millions in found] == list(printed)
        assert round(1e6 * (found[1] - found[0])) == MOVES[name]


@pytest.fixture(scope="module")
def shapes() -> Dataset:
    g = torch.Generator().manual_seed(0)
    y = torch.arange(80) % 2
    x = torch.randn(80, 1, 8, 8, generator=g) + y[:, None, None, None]
    return Dataset("bright", x[:48], y[:48], x[48:], y[48:], ("dark", "bright"), "a test")


@pytest.mark.slow
def test_differences_are_paired_by_seeds_and_a_wider_call_trains_only_what_is_missing(
    shapes: Dataset, tmp_path: Path
) -> None:
    counted: list[int] = []
    cells = [read_cells("SNAS")]

    def call(**more: object) -> object:
        counted.clear()
        return compare_adapted(
            cells,
            shapes,
            protocol=TINY,
            out=tmp_path / "a",
            workers=1,
            progress=lambda n, _: counted.append(n),
            **more,  # type: ignore[arg-type]
        )

    call(seeds=(0, 1))
    assert counted == [1, 2, 3, 4]
    found = call(seeds=(0, 1, 2), random=1)
    assert counted == [5, 6, 7, 8, 9]  # of nine
    (row,), (original, other) = found.rows(), found.accuracies()  # type: ignore[attr-defined]
    of = {d.name: found.compared.of(i, 0.025) for i, d in enumerate(found.compared.designs)}  # type: ignore[attr-defined]
    pairs = [a.accuracy - b.accuracy for a, b in zip(of["SNAS"], of["SNAS widest"], strict=True)]
    assert row.difference.mean == pytest.approx(mean(pairs))
    assert row.difference.mean == pytest.approx(row.adapted_error - row.error)
    reach = stats.t.ppf(0.975, 2) * stdev(pairs) / 3**0.5
    assert row.difference.high - row.difference.mean == pytest.approx(reach)
    assert (original.index, original.difference, other.index) == (0, None, 1)
    assert original.accuracy == pytest.approx(100 - row.error)
    space = load("darts")
    for design, counted in ((cells[0], row.multiply_adds), (widest(cells[0]), row.adapted_multiply_adds)):
        network = space.network(design.architecture(), (1, 8, 8), 2, channels=2, cells=3)
        assert counted == multiply_adds(network, (1, 8, 8))


def test_what_cannot_be_compared_is_refused_before_anything_is_trained(shapes: Dataset) -> None:
    with pytest.raises(RequestError, match="images that may be augmented, not into 'bright'"):
        compare_adapted([read_cells("SNAS")], shapes, protocol=replace(TINY, regularize=True))
    with pytest.raises(RequestError, match="different cells, got SNAS, SNAS"):
        compare_adapted([read_cells("SNAS")] * 2, shapes, protocol=TINY)
    with pytest.raises(RequestError, match="too small for the auxiliary head"):
        compare_adapted([read_cells("SNAS")], images(2, 12), protocol=replace(TINY, regularize=True))
