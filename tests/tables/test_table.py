"""NAS-Bench-201 as a table: its published counts, ranks and best accuracies, and the prices of its trainings."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

from nasight.errors import RequestError
from nasight.spaces.mlp import Mlp
from nasight.spaces.nasbench201 import NasBench201
from nasight.tables import DATASETS, Table

SKIPS = "|skip_connect~0|+|skip_connect~0|skip_connect~1|+|skip_connect~0|skip_connect~1|skip_connect~2|"


def test_the_canonical_form_of_every_cell_is_the_published_one(csv_path: Path) -> None:
    space = NasBench201()
    with gzip.open(csv_path, "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(space)
    assert [space.canonical(space.parse(row["arch"])) for row in rows] == [row["unique"] for row in rows]


def test_of_15625_cells_6466_have_distinct_forms() -> None:
    space = NasBench201()
    assert len({space.canonical(arch) for arch in space}) == 6_466


def test_a_space_without_a_canonical_form_gives_every_architecture_its_own() -> None:
    space = Mlp(layers=2)
    assert len({space.canonical(arch) for arch in space}) == len(space)


def test_the_best_test_accuracies_are_the_published_ones(published: Table) -> None:
    assert [round(published.optimum(d), 2) for d in DATASETS] == [94.37, 73.51, 47.31]


def test_the_all_skip_cell_has_the_published_accuracies(published: Table) -> None:
    row = published.query(SKIPS)
    assert [round(row.datasets[d]["test200"] or 0, 2) for d in DATASETS] == [54.30, 15.61, 16.32]


def test_ranks_are_those_of_scipy_with_ties_sharing_the_better(published: Table) -> None:
    column = published.column("c10_test200")
    expected = rankdata(-column, method="min")
    assert len(np.unique(expected)) < len(expected), "there are ties to rank"
    assert [published.rank(i, "c10_test200") for i in range(len(published))] == expected.tolist()


def test_sizes_follow_from_the_convolutions(published: Table) -> None:
    def parameters(options: list[str]) -> int:
        return 73_306 + 243_040 * options.count("nor_conv_3x3") + 28_000 * options.count("nor_conv_1x1")

    expected = [parameters([option for _, option in arch]) / 1e6 for arch in published.space]
    np.testing.assert_allclose(published.column("params_M"), expected, atol=6e-6)


def test_multiply_adds_are_the_operations_of_the_file_less_those_of_other_layers(csv_path: Path) -> None:
    space, pixels = NasBench201(), 5 * (16 * 32**2 + 32 * 16**2 + 64 * 8**2)
    count = space.multiply_adds((3, 32, 32), 10, channels=16, cells=5)
    with gzip.open(csv_path, "rt") as file:
        rows = list(csv.DictReader(file))
    (reductions,) = {float(row["flops_M_c10_naslib"]) for row in rows if row["arch"] == SKIPS}
    others = reductions - (count(space.parse(SKIPS)) or 0) / 1e6
    for row in rows:
        options = [option for _, option in space.parse(row["arch"])]
        # The file counts two operations of a norm and one of a ReLU for each pixel, and nine of a pool.
        layers = 3 * sum(option.startswith("nor_conv") for option in options) + 9 * options.count("avg_pool_3x3")
        found = (count(space.parse(row["arch"])) or 0) / 1e6 + layers * pixels / 1e6 + others
        assert found == pytest.approx(float(row["flops_M_c10_naslib"]), abs=2e-5)


def test_multiply_adds_of_a_row_are_those_of_the_network_that_has_its_parameters(published: Table) -> None:
    row = published.query("|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|skip_connect~2|")
    assert (row.parameters, row.multiply_adds) == (pytest.approx(0.559386, abs=1e-5), 78_561_920)
    other = Table(published.space, {"params_M": published.column("params_M") + 0.01})
    assert other.query(SKIPS).multiply_adds is None
    assert Table(Mlp(2), {"params_M": [1.0] * 5}).query("relu").multiply_adds is None


def test_a_row_lists_the_other_cells_of_its_form_and_is_listed_by_them(published: Table) -> None:
    row = published.query("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|skip_connect~1|none~2|")
    assert len(row.same) == 274
    assert row.architecture in published.query(row.same[0]).same


def test_index_and_architecture_are_inverse_for_every_place(small: Table) -> None:
    assert [small.index(arch) for arch in small.space] == list(range(len(small)))
    assert small.architecture(1234) == list(small.space)[1234]


def test_a_training_costs_its_share_of_200_epochs_and_one_validation_pass(small: Table) -> None:
    full = small.column("c10_traintime200_s")
    # CIFAR-10 validates on as many images as it trains on; forward alone is a third of a training step.
    np.testing.assert_allclose(small.cost("c10", 12), full * (12 + 1 / 3) / 200)
    np.testing.assert_allclose(small.cost("c10", 200), full * (200 + 1 / 3) / 200)
    np.testing.assert_allclose(small.cost("c100", 12), full * (12 + 1 / 30) / 200)


def test_measured_times_are_the_price_where_a_table_has_them(small: Table) -> None:
    times = {"c10_traintime12_s": np.full(len(small), 7.0), "c10_validtime_s": np.full(len(small), 2.0)}
    table = Table(small.space, small.columns | times)
    assert set(table.cost("c10", 12)) == {9.0}
    np.testing.assert_allclose(table.cost("c10", 200), small.column("c10_traintime200_s") + 2)


def test_a_number_that_a_table_lacks_is_none_and_named(small: Table) -> None:
    row = small.query(SKIPS)
    assert row.datasets["c10"]["latency_ms"] is None
    assert "c10_latency_ms" in small.lacks
    with pytest.raises(RequestError, match="'synthetic' has no column 'c10_latency_ms'; it has params_M"):
        small.column("c10_latency_ms")


def test_a_column_of_another_length_is_refused(small: Table) -> None:
    with pytest.raises(RequestError, match="'params_M' has 3 numbers, the space 4096 architectures"):
        Table(small.space, {"params_M": [1, 2, 3]})
