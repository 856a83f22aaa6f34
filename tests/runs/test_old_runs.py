"""Run folders that version 0.1 wrote are read, judged and resumed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import nasight
from nasight.errors import RequestError
from nasight.runs import RunFolder, versions
from nasight.spaces import load
from nasight.studies import exportable, write_export
from nasight.training import load_trained, train

OLD = Path(__file__).parent / "version_0_1"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The folders, as if this Python and this torch had begun them: both refuse to finish what others began."""
    shutil.copytree(OLD, tmp_path / "old")
    for file in (tmp_path / "old").glob("*/run.json"):
        about = json.loads(file.read_text())
        file.write_text(json.dumps({**about, "versions": versions()}))
    return tmp_path / "old"


def test_a_finished_search_is_read_explained_and_trained(copied: Path) -> None:
    run = nasight.Run(copied / "search")
    assert run.finished
    assert run.architecture in run.space
    assert nasight.explain(run).decisions
    assert run.supernet().groups == run.space.groups()
    assert run.load_data().name == "digits"


def test_names_that_came_to_mean_something_else_keep_their_old_meaning(copied: Path) -> None:
    assert nasight.Run(copied / "search").settings.objective == "erm-joint"
    for before, after in (
        ({"objective": "erm-alternating"}, {"objective": "erm"}),
        ({"objective": "bilevel"}, {"objective": "bilevel"}),
        ({"method": "gaea-gdas"}, {"method": "gaea-gdas-drawn"}),
        ({"method": "gdas", "edition": 2}, {"method": "gdas"}),
    ):
        file = copied / "search" / "run.json"
        about = json.loads(file.read_text())
        file.write_text(json.dumps({**about, "settings": {**about["settings"], **before}}))
        settings = nasight.Run(copied / "search").settings.model_dump()
        assert {key: settings[key] for key in after} == after


@pytest.mark.parametrize(
    ("method", "edition"),
    [("snas", 1), ("snas", 3), ("asng", 1), ("asng", 2), ("enas", 1), ("enas", 2)],
)
def test_a_search_whose_method_has_changed_is_not_finished_in_another_way(
    copied: Path, method: str, edition: int
) -> None:
    for name, more in (("search-half", {}), ("search", {"epochs": 30})):
        file = copied / name / "run.json"
        about = json.loads(file.read_text())
        settings = {**about["settings"], "method": method, "edition": edition}
        file.write_text(json.dumps({**about, "settings": settings}))
        before = {each: each.read_bytes() for each in (copied / name).iterdir() if each.is_file()}
        with pytest.raises(RequestError, match=f"begun with the '{method}' of an earlier version"):
            nasight.resume(copied / name, **more)
        # One that has ended is still what it was.
        assert {each: each.read_bytes() for each in (copied / name).iterdir() if each.is_file()} == before


def test_an_interrupted_search_ends_as_the_finished_one_did(copied: Path) -> None:
    resumed = nasight.resume(copied / "search-half")
    whole = nasight.Run(copied / "search")
    # Other processors round otherwise, so not to the last bit.
    for mine, its in zip(resumed.history, whole.history, strict=True):
        assert mine["train_loss"] == pytest.approx(its["train_loss"], rel=1e-4)
    for name, weights in whole.weights.items():
        torch.testing.assert_close(resumed.weights[name], weights, atol=1e-4, rtol=1e-3)
    assert resumed.result["architecture"] == whole.result["architecture"]


def test_an_interrupted_search_for_a_cell_is_resumed(copied: Path) -> None:
    resumed = nasight.resume(copied / "cell-half")
    assert len(resumed.history) == 2
    assert resumed.architecture in load("nasbench201", none=False)


def test_a_finished_search_whose_supernet_has_changed_since_is_read_trained_and_exported(copied: Path) -> None:
    run = nasight.Run(copied / "1shot1")
    assert len(run.history) == 2
    assert run.architecture in run.space
    assert run.weights["operations"].shape == (4, 3)
    size = {"channels": 2, "cells": 1}
    train(run.space, run.architecture, "digits", out=copied / "trained", epochs=1, examples=60, size=size, threads=1)
    assert load_trained(copied / "trained") is not None
    write_export(exportable(copied / "1shot1"), python=copied / "net.py")
    assert "class Network" in (copied / "net.py").read_text()


@pytest.mark.parametrize("read", [nasight.explain, lambda run: run.supernet(), lambda run: nasight.rank(run, sample=8)])
def test_where_the_shared_weights_are_needed_a_changed_supernet_is_one_sentence(copied: Path, read: Any) -> None:
    with pytest.raises(RequestError, match=r"supernet of this space has changed since.* run the search again$"):
        read(nasight.Run(copied / "1shot1"))


def test_an_interrupted_search_whose_supernet_has_changed_since_is_one_sentence(copied: Path) -> None:
    with pytest.raises(RequestError, match=r"supernet of this space has changed since.* run the search again$"):
        nasight.resume(copied / "1shot1-half")


def test_an_interrupted_training_ends_as_the_finished_one_did(copied: Path) -> None:
    settings = {"preset": "tiny", "epochs": 2, "examples": 60, "batch_size": 16, "size": {"width": 4}, "threads": 1}
    resumed = train("mlp", "relu,relu,relu/0,0", "digits", out=copied / "train-half", seed=5, **settings)
    whole = RunFolder.open(copied / "train", kind="train").result
    assert whole is not None
    assert resumed.loss == pytest.approx(whole["loss"], rel=1e-4)
    assert load_trained(copied / "train") is not None
