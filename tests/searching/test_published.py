"""`--preset paper` is the published protocol of a method on a space."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import nasight
from command import run as command
from nasight.data import load as load_data
from nasight.notes import listening
from nasight.searching import METHODS, PROTOCOLS, PUBLISHED, UNPUBLISHED, Run, published_training, resolve
from nasight.searching._streams import Streams
from nasight.spaces import load
from nasight.studies import trainable

SPACES = {"nasbench201": "nasbench201", "darts": "darts", "nasbench1shot1": "nasbench1shot1-1"}


@pytest.mark.parametrize(
    ("preset", "method", "family"), [(preset, *pair) for preset in PROTOCOLS for pair in sorted(PROTOCOLS[preset])]
)
def test_every_published_protocol_is_a_valid_search_with_a_source(preset: str, method: str, family: str) -> None:
    found = resolve(METHODS[method], load(SPACES[family]), data="cifar-10", preset=preset)
    row = PROTOCOLS[preset][method, family]
    wanted = dict(row.settings)
    for key in ("none", "space_options"):
        wanted.pop(key, None)
    assert {key: getattr(found, key) for key in wanted} == wanted
    assert row.source


def test_gaea_darts_on_nasbench201_is_that_of_appendix_c_3() -> None:
    found = resolve(METHODS["gaea-darts"], load("nasbench201", none=False), data="cifar-10", preset="paper")
    assert (found.epochs, found.schedule_epochs, found.batch_size, found.arch_lr) == (25, 50, 64, 0.1)
    assert (found.size, found.objective, found.validation, found.warmup) == (
        {"channels": 16, "cells": 5}, "erm", 0.0, 0,
    )  # fmt: skip
    assert (found.weight_decay, found.nesterov, found.examples) == (3e-4, False, None)
    # The released schedule's rate of the last epoch.
    last = found.lr_min + (found.lr - found.lr_min) * (1 + math.cos(math.pi * 24 / 50)) / 2
    assert last == pytest.approx(0.013753, abs=1e-6)


def test_gdas_runs_250_epochs_with_none_and_nesterov_on_nasbench201() -> None:
    found = resolve(METHODS["gdas"], load("nasbench201"), data="cifar-10", preset="paper")
    assert (found.epochs, found.schedule_epochs, found.nesterov, found.weight_decay) == (250, 250, True, 5e-4)
    assert PUBLISHED["gdas", "nasbench201"].settings["none"] is True
    assert PUBLISHED["darts", "nasbench201"].settings["none"] is False


def test_enas_alternates_epochs_and_controller_phases_on_nasbench201() -> None:
    found = resolve(METHODS["enas"], load("nasbench201"), data="cifar-10", preset="paper")
    assert (found.epochs, found.schedule_epochs, found.batch_size, found.objective) == (250, 10, 128, "reinforce-phase")
    assert (found.lr, found.lr_min, found.arch_lr) == (0.05, 0.0005, 1e-3)
    # Half of 50,000 images; the published rate is also the default's at the published number of steps.
    steps = METHODS["enas"].objective(found.objective).phase(25_000 // 128)
    assert steps == 50
    assert METHODS["enas"].geometry.default_lr(steps * found.epochs) == pytest.approx(1e-3)


def test_the_order_of_the_two_steps_is_that_of_each_released_code() -> None:
    """Shared weights first in DARTS-V1.py, GDAS.py and SETN.py, not in DARTS-V2.py nor in GAEA's train_search.py."""
    orders = {
        method: resolve(METHODS[method], load("nasbench201"), data="cifar-10", preset="paper").weights_first
        for method, family in PUBLISHED
        if family == "nasbench201" and METHODS[method].objectives[0].weights_first is not None
    }
    assert orders == {
        "darts": True, "gdas": True, "setn": True, "darts-2nd": False, "gaea-darts": False, "gaea-gdas": False,
    }  # fmt: skip
    # GAEA's fork of PC-DARTS turns the order of PC-DARTS's own search on ImageNet round.
    pairs = [PROTOCOLS["imagenet"][method, "darts"] for method in ("pc-darts", "gaea-pc-darts")]
    images = [pair.settings.get("weights_first") for pair in pairs]
    assert images == [None, True]


@pytest.mark.parametrize("preset", ["tiny", "small", "medium"])
def test_other_presets_keep_the_architecture_first_and_one_batch_for_all_candidates(preset: str) -> None:
    for method in ("darts", "gdas", "setn", "rs-ws", "enas"):
        found = resolve(METHODS[method], load("nasbench201"), data="cifar-10", preset=preset)
        assert (found.weights_first, found.candidate_rows) == (False, None)


def test_rs_ws_trains_on_one_half_and_judges_each_candidate_on_rows_of_the_other() -> None:
    for space, rows in (("nasbench201", 512), ("nasbench1shot1-2", 640)):
        found = resolve(METHODS["rs-ws"], load(space), data="cifar-10", preset="paper")
        assert (found.validation, found.candidate_rows, found.batch_size) == (0.5, rows, 64)
    assert (found.clip, found.candidates, found.epochs, found.lr, found.lr_min) == (0.25, 1000, 100, 0.025, 0.001)


def test_rs_ws_on_nasbench1shot1_sums_the_inputs_under_paper_alone(tmp_path: Path) -> None:
    flags = {"epochs": 1, "examples": 80, "size": {"channels": 4, "cells": 1}, "threads": 1, "candidates": 3}
    for preset, options in (("paper", {"sums": True}), ("medium", {}), ("tiny", {})):
        run = nasight.search("nasbench1shot1-1", "rs-ws", "digits", out=tmp_path / preset, preset=preset, **flags)
        assert run.settings.space_options == options
        assert run.space.options == options


def test_p_darts_has_three_stages_of_25_epochs_with_5_11_and_17_cells() -> None:
    found = resolve(METHODS["p-darts"], load("darts"), data="cifar-10", preset="paper")
    assert (found.epochs, found.size["cells"], found.warmup, found.batch_size) == (75, 5, 30, 96)
    depths = [round(stage.depth * found.size["cells"]) for stage in METHODS["p-darts"].schedule.stages]
    assert depths == [5, 11, 17]


def test_what_is_given_wins_and_other_epochs_have_the_published_parts_of_warm_up_and_cosine() -> None:
    found = resolve(METHODS["gaea-pc-darts"], load("darts"), data="cifar-10", preset="paper", epochs=10, lr=0.05)
    assert (found.epochs, found.schedule_epochs, found.warmup, found.lr) == (10, 10, 2, 0.05)
    space = load("nasbench201", none=False)
    lengths = {"gaea-darts": (50, 100, 0), "gaea-gdas": (15, 15, 5), "gdas": (25, 25, 0), "enas": (25, 10, 0)}
    for method, (epochs, cosine, warmup) in lengths.items():
        found = resolve(METHODS[method], space, data="cifar-10", preset="paper", epochs=epochs)
        assert (found.epochs, found.schedule_epochs, found.warmup) == (epochs, cosine, warmup), method


def test_the_published_number_of_epochs_means_the_published_warm_up_whether_given_or_not() -> None:
    found = [resolve(METHODS["gaea-pc-darts"], load("darts"), data="d", preset="paper", epochs=e) for e in (None, 50)]
    assert found[0] == found[1]
    assert found[0].warmup == 10


def test_bilevel_halves_hold_nothing_out_and_erm_measures_a_fifth_of_what_it_learned_from() -> None:
    data = load_data("digits")
    rows = len(data.train_y)
    halves = resolve(METHODS["darts"], load("nasbench201"), data="digits", validation=0.0, examples=rows)
    streams = Streams(halves, data, halves=True)
    sizes = [len(streams.loaders[name].y) for name in ("weights", "architecture")]
    assert sum(sizes) == rows
    assert abs(sizes[0] - sizes[1]) <= 1
    assert sum(len(y) for _, y in streams.validation) == sizes[1]
    whole = Streams(halves, data, halves=False)
    assert len(whole.loaders["weights"].y) == rows
    assert sum(len(y) for _, y in whole.validation) == rows // 5


def test_a_search_that_holds_nothing_out_is_explained_with_a_warning(tmp_path: Path) -> None:
    found = nasight.search(
        "mlp", "gaea-darts", "digits", preset="tiny", epochs=1, examples=100, validation=0.0, out=tmp_path / "run"
    )
    assert any("learned from" in note for note in nasight.explain(found).notes)


def test_a_paper_search_takes_none_from_the_protocol(tmp_path: Path) -> None:
    flags = {"preset": "paper", "epochs": 1, "examples": 60, "size": {"channels": 4, "cells": 1}, "threads": 1}
    run: Run = nasight.search("nasbench201", "gdas", "digits", out=tmp_path / "a", batch_size=16, **flags)
    assert run.settings.space_options == {"none": True}
    run = nasight.search("nasbench201", "gaea-darts", "digits", out=tmp_path / "b", batch_size=16, **flags)
    assert run.settings.space_options == {"none": False}
    assert run.settings.objective == "erm"


def test_the_protocols_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("search", "--list", "--preset", "paper") == 0
    shown = capsys.readouterr().out
    assert "gaea-darts on nasbench201" in shown
    assert "epochs 25" in shown
    assert "momentum 0.9, a gradient of the shared weights of norm at most 5; if bilevel, 0.5 of the rows" in shown
    assert "Adam of softmax rows: betas 0.5 and 0.999, weight decay 0.001." in shown
    assert command("search", "--list", "--preset", "paper", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["published"]) == len(PUBLISHED)
    assert found["unpublished"] == dict(UNPUBLISHED)


def test_the_list_says_what_is_in_the_row_of_a_method_and_why_others_have_no_protocol(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command("search", "--list", "--preset", "paper")
    shown = capsys.readouterr().out
    assert "geometry Softmax (adam), stages of cells 5, 11, 17" in shown
    assert "relaxation GumbelConstants, geometry Simplex (entropy, pull 0.01)" in shown
    assert shown.rstrip().endswith("published in ENAS's space with 5 nodes (docs/faithful.md, section G)")
    assert "\n  snas on nasbench201, nasbench1shot1: published in the DARTS space\n" in shown


class Heard(list[str]):
    """The notes of a search."""

    def note(self, text: str) -> None:
        self.append(text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Nothing: progress is not compared."""


def test_a_search_says_that_there_is_no_protocol_to_follow_and_why(tmp_path: Path) -> None:
    flags = {"epochs": 2, "examples": 100, "size": {"channels": 4, "cells": 1}, "threads": 1, "batch_size": 16}
    for place, method, preset, why in (
        ("nasbench201", "snas", "paper", "snas on nasbench201: published in the DARTS space;"),
        ("nasbench201", "snas", "medium", "snas on nasbench201: published in the DARTS space;"),
        ("nasbench1shot1-1", "gdas", "medium", "gdas on nasbench1shot1-1: preset paper does;"),
        ("nasbench201", "gaea-darts", "paper", None),
        ("nasbench201", "gaea-darts", "medium", None),
        ("nasbench201", "snas", "small", None),
    ):
        heard = Heard()
        with listening(heard):
            nasight.search(place, method, "digits", preset=preset, out=tmp_path / "run", overwrite=True, **flags)
        told = [text for text in heard if "published protocol" in text]
        if why is None:
            assert told == []
            continue
        (text,) = told
        assert text.startswith(f"preset {preset} follows no published protocol of {why}")
        assert text.endswith("; the usual settings of the method are taken")


@pytest.mark.parametrize(
    ("method", "space", "size", "epochs", "warmup", "batch", "lr", "lr_min", "decay", "arch_lr", "objective"),
    [
        # Liu et al. 2019, A.1.1; cnn/train_search.py
        ("darts", "darts", (16, 8), 50, 0, 64, 0.025, 0.001, 3e-4, 3e-4, "bilevel"),
        ("darts-2nd", "darts", (16, 8), 50, 0, 64, 0.025, 0.001, 3e-4, 3e-4, "bilevel"),
        # DARTS.config, DARTS-V2.py
        ("darts-2nd", "nasbench201", (16, 5), 50, 0, 64, 0.025, 0.001, 5e-4, 3e-4, "bilevel"),
        # second_order_script.sh, optimizers/darts/train_search.py
        ("darts-2nd", "nasbench1shot1-1", (16, 3), 25, 0, 96, 0.025, 0.001, 3e-4, 3e-4, "bilevel"),
        # Xu et al. 2020; train_search.py
        ("pc-darts", "darts", (16, 8), 50, 15, 256, 0.1, 0.0, 3e-4, 6e-4, "bilevel"),
        # GDAS-NASNet-CIFAR.config, NASNet-space-search-by-GDAS.sh
        ("gdas-drawn", "darts", (16, 8), 250, 0, 256, 0.025, 0.001, 5e-4, 3e-4, "bilevel"),
        # SNAS/train_search.py, README
        ("snas", "darts", (16, 8), 150, 0, 64, 0.025, 0.001, 3e-4, 3e-4, "erm-joint"),
        # baseline_script.sh
        ("darts", "nasbench1shot1-1", (16, 3), 25, 0, 96, 0.025, 0.001, 3e-4, 3e-4, "bilevel"),
        # GAEA, C.2: as Zela et al., but for the rate
        ("gaea-pc-darts", "nasbench1shot1-1", (16, 3), 100, 0, 96, 0.025, 0.001, 3e-4, 0.1, "bilevel"),
    ],
)
def test_a_protocol_has_the_numbers_of_its_publication(
    method: str,
    space: str,
    size: tuple[int, int],
    epochs: int,
    warmup: int,
    batch: int,
    lr: float,
    lr_min: float,
    decay: float,
    arch_lr: float,
    objective: str,
) -> None:
    found = resolve(METHODS[method], load(space), data="cifar-10", preset="paper")
    assert (found.epochs, found.schedule_epochs, found.warmup, found.batch_size) == (epochs, epochs, warmup, batch)
    assert (found.lr, found.lr_min, found.weight_decay, found.arch_lr) == (lr, lr_min, decay, arch_lr)
    assert (found.objective, found.validation, found.examples) == (objective, 0.0, None)
    assert (found.size["channels"], found.size["cells"]) == size


def test_the_released_search_of_snas_takes_117300_steps() -> None:
    """150 epochs of 50,000 images in batches of 64, a short last one among them."""
    assert METHODS["snas"].geometry.steps == 150 * math.ceil(50_000 / 64) == 117_300


def test_medium_is_the_published_protocol_at_a_smaller_size() -> None:
    space = load("nasbench201", none=False)
    found, paper = (
        resolve(METHODS["gaea-darts"], space, data="cifar-10", preset=preset).model_dump()
        for preset in ("medium", "paper")
    )
    assert {key for key in found if found[key] != paper[key]} == {"preset", "size"}
    assert found["size"] == {"channels": 8, "cells": 1}
    gdas = resolve(METHODS["gdas"], space, data="cifar-10", preset="medium")
    assert (gdas.epochs, gdas.schedule_epochs, gdas.arch_lr, gdas.nesterov) == (25, 50, None, True)


def test_an_objective_that_is_asked_for_comes_before_the_published_one() -> None:
    space = load("nasbench201", none=False)
    for objective in ("erm-joint", "bilevel", "block"):
        found = resolve(METHODS["gaea-darts"], space, data="cifar-10", preset="paper", objective=objective)
        assert found.objective == objective


def test_gaea_rows_are_single_level_on_nasbench201_but_for_the_estimators_of_gdas() -> None:
    space = load("nasbench201", none=False)
    rows = {name: resolve(row, space, data="cifar-10").objective for name, row in METHODS.items() if "gaea-" in name}
    bilevel = {name for name, objective in rows.items() if objective == "bilevel"}
    assert bilevel == {"gaea-gdas", "gaea-gdas-drawn", "gaea-gdas-straight"}
    assert {objective for name, objective in rows.items() if name not in bilevel} == {"erm"}


@pytest.mark.parametrize(
    ("name", "differs"),
    [
        ("DARTS_V1", {"drop_path": 0.2}),
        ("DARTS_V2", {"drop_path": 0.2}),
        ("PC_DARTS_cifar10", {"batch_size": 128}),
        ("gaea_pc_darts_cifar10", {"batch_size": 128}),
        ("NASNet", {}),
    ],
)
def test_published_cells_are_trained_as_published_by_their_names_too(name: str, differs: dict[str, float]) -> None:
    assert trainable(space="darts", arch=name, preset="paper").settings == differs
    assert trainable(space="darts", arch=name, preset="small").settings == {}


@pytest.mark.parametrize(
    ("method", "differs"),
    [
        ("darts", {"drop_path": 0.2}),  # Liu et al., A.2; cnn/train.py
        ("darts-2nd", {"drop_path": 0.2}),
        ("pc-darts", {"batch_size": 128}),
        ("p-darts", {"batch_size": 128}),  # train_cifar.py
        ("gaea-pc-darts", {"batch_size": 128}),
        ("gaea-darts", {"batch_size": 128}),
        ("gaea-gdas", {"batch_size": 128}),
        ("rs-ws", {}),
    ],
)
def test_cells_of_the_darts_space_are_trained_as_the_publication_of_their_method_does(
    method: str, differs: dict[str, float]
) -> None:
    assert published_training(method, "darts") == differs
    assert published_training(method, "nasbench201") == {}
