"""The size of a find's networks, its target, and the shares of its budget."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import nasight
from nasight.data import Dataset
from nasight.errors import RequestError
from nasight.notes import listening
from nasight.runs import write_json
from nasight.spaces import load
from nasight.studies import train_found, trainable
from nasight.studies.finding import answer_seeds
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._lengths import LEAST_SEARCH, search_length, training_seconds
from nasight.studies.finding._plan import Speed
from nasight.studies.finding._planning import SHARES, plan
from nasight.studies.finding._settings import divided, read_shares
from nasight.studies.finding._size import ENOUGH, Size, choose_size

TINY, SMALL, PAPER = ({"channels": c, "cells": n} for c, n in ((8, 1), (16, 2), (16, 5)))
ROWS = 1_000
SHORT: dict[str, Any] = {"trainings": 26, "epochs": 1, "workers": 1}


def context(target: str | None = None, max_params: int | None = None) -> Any:
    space = load("nasbench201")
    limits = SimpleNamespace(target=target, max_params=max_params, max_latency=None)
    data = SimpleNamespace(inputs=(3, 32, 32), n_classes=10)
    return SimpleNamespace(space=space, settings=limits, data=data, trainings=SimpleNamespace(space=lambda key: space))


def costing(*seconds: float) -> Callable[[Mapping[str, int]], float]:
    """Seconds per row at the three sizes; one that must not be measured has none."""
    known = dict(zip(("8 1", "16 2", "16 5"), seconds, strict=False))
    return lambda size: known[f"{size['channels']} {size['cells']}"]


def test_the_largest_size_with_enough_epochs_is_taken() -> None:
    per_row = (1e-4, 5e-4, 1e-3)
    for size, cost in zip((TINY, SMALL, PAPER), per_row, strict=True):
        found = choose_size(context(), 1.01 * ENOUGH * ROWS * cost, ROWS, costing(*per_row))
        assert found == Size(size)


def test_a_size_that_is_far_too_slow_is_not_measured() -> None:
    # The multiply-adds of 16 channels and two cells are more than seven times those of the smallest.
    assert choose_size(context(), 1.5 * ENOUGH * ROWS * 1e-4, ROWS, costing(1e-4)) == Size(TINY)


def test_networks_do_not_grow_beyond_a_limit_or_the_target() -> None:
    space, per_row = load("nasbench201"), (1e-4, 2e-4, 4e-4)
    most = space.parameters((3, 32, 32), 10, **SMALL)(space.reference)
    assert choose_size(context(max_params=most), 1e6, ROWS, costing(*per_row)) == Size(SMALL)
    assert choose_size(context(max_params=most - 1), 1e6, ROWS, costing(*per_row)) == Size(TINY)
    assert choose_size(context("small"), 1e6, ROWS, costing(*per_row)) == Size(SMALL, 12)


def test_a_target_is_reached_where_its_epochs_can_be_trained() -> None:
    per_row = (1e-4, 2e-4, 4e-4)
    enough = 200 * ROWS * per_row[2]
    assert choose_size(context("paper"), 1.01 * enough, ROWS, costing(*per_row)) == Size(PAPER, 200)
    assert choose_size(context("paper"), 0.99 * enough, ROWS, costing(*per_row)) == Size(PAPER)


def test_parts_without_a_share_of_their_own_divide_the_rest() -> None:
    shares = divided({"race": 0.5})
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["race"] == 0.5
    assert shares["recipe"] / shares["answer"] == pytest.approx(SHARES["recipe"] / SHARES["answer"])
    assert list(shares) == list(SHARES)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("race", "are written race=0.5"),
        ("rice=0.5", "no part 'rice'"),
        ("race=1.5", "between 0 and 1"),
        ("race=0.6,answer=0.4", "nothing for the other parts"),
        ("recipe=0.1,propose=0.2,race=0.3,answer=0.3", "must add up to 1"),
    ],
)
def test_shares_that_cannot_be_are_refused(text: str, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        read_shares(text)


def test_the_plan_follows_the_shares_and_the_epochs_of_the_target() -> None:
    speed = Speed(1e-4, 2e-4, 0.05)
    how: dict[str, Any] = {"workers": 1, "rows": ROWS, "classes": 10}
    usual = plan(speed, 600, **how)
    raced = plan(speed, 600, shares={"recipe": 0.1, "propose": 0.1, "race": 0.7, "answer": 0.1}, **how)
    assert raced.seconds["race"] > 1.5 * usual.seconds["race"]
    assert raced.epochs < usual.epochs
    assert plan(speed, 600, most_epochs=8, **how).epochs == 8
    assert training_seconds(600, 2, 0.3) == pytest.approx(0.3 * 2 * 0.93 * 600 / 6 - 0.4)


def test_a_search_without_time_for_its_epochs_has_fewer_rows() -> None:
    slow = plan(Speed(1e-4, 0.04, 0.05), 1_000, workers=2, rows=ROWS, classes=10)
    assert slow.search_epochs == LEAST_SEARCH
    assert slow.search_rows is not None
    passes = 0.8 * SHARES["propose"] * 1_000 * 0.93
    assert 0.9 * passes <= LEAST_SEARCH * slow.search_rows * 0.04 <= passes
    assert search_length(10, ROWS, 400) == (LEAST_SEARCH, 400)


@pytest.mark.slow
def test_without_a_target_a_find_is_trained_as_it_was_in_the_find(few_digits: Dataset, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    how = SHORT | {"class_weights": "balanced"}
    found = nasight.find(few_digits, space="convnet", augment="shift", out=tmp_path / "a", **how)
    what = trainable(found.path, data=few_digits)
    assert dict(what.settings["size"]) == found.result["target"]["size"] == {"channels": 32}
    assert (what.preset, what.settings["class_weights"]) == ("small", "balanced")
    assert "says" not in found.result["target"]
    # The same seeds come to the same accuracies; with a preset of one's own, rates and epochs are those of the preset.
    again = train_found(what, seeds=answer_seeds(found.result["seed"]), workers=1, threads=1)
    side = found.result if what.arch == found.architecture else found.baseline
    assert list(again.accuracy) == pytest.approx(side["accuracies"], abs=1e-4)
    assert set(trainable(found.path, data=few_digits, preset="tiny").settings) == {"augment", "class_weights"}
    smallest = min(found.front, key=lambda point: point.parameters)
    assert trainable(found.path, data=few_digits, max_params=smallest.parameters).settings["epochs"] == smallest.epochs


@pytest.mark.slow
def test_a_point_that_left_early_is_trained_as_long_as_its_accuracy_says_on_the_rows_of_the_find(
    few_digits: Dataset, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    found = nasight.find(few_digits, space="nasbench201", out=tmp_path / "a", **SHORT)
    result = dict(found.result)
    sides = (found.architecture, found.baseline["architecture"])
    point = next(p for p in result["front"] if p["architecture"] not in sides)
    line = next(each for each in result["race"]["lines"] if each["architecture"] == point["architecture"])
    front = [
        {**p, "estimated": p is point, "parameters": 1 if p is point else p["parameters"]} for p in result["front"]
    ]
    point["epochs"], line["epochs"] = 2, [2, None]
    result["race"]["rungs"] = [3, 9]
    write_json(found.path / "result.json", {**result, "front": front, "examples": 100})
    what = trainable(found.path, data=few_digits, max_params=1)
    assert what.arch == point["architecture"]
    assert (what.settings["epochs"], what.settings["examples"]) == (6, 100)
    # A training of another length is on all rows.
    assert "examples" not in what.changed(epochs=50).settings
    assert what.changed(seeds=2).settings["examples"] == 100


@pytest.mark.slow
def test_a_find_by_a_named_metric_is_trained_by_it_and_functions_of_ones_own_are_named(
    few_digits: Dataset, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    found = nasight.find(
        few_digits, space="nasbench201", out=tmp_path / "a", metric="balanced accuracy", loss=F.cross_entropy, **SHORT
    )
    notes = list[str]()
    with listening(SimpleNamespace(note=notes.append)):  # type: ignore[arg-type]
        what = trainable(found.path, data=few_digits)
    assert what.settings["metric"] == "balanced accuracy"
    assert "loss" not in what.settings
    assert any("your own loss, which this training does not have" in text for text in notes)


@pytest.mark.parametrize(
    ("key", "value"), [("pace 0 k3", 0), ("answer pace 0 k3", 1e-9), ("length 0", -1.0), ("timing 0", "soon")]
)
def test_a_harmed_journal_cannot_ask_for_work_without_end(tmp_path: Path, key: str, value: object) -> None:
    (tmp_path / "journal.jsonl").write_text(json.dumps({"key": key, "value": value}) + "\n")
    with pytest.raises(RequestError, match="that cannot be one"):
        Journal(tmp_path)


def test_a_journal_that_kept_the_epochs_of_its_searches_alone_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text(
        '{"key": "search epochs 0", "value": 26}\n{"key": "search length 1", "value": [4, 500]}\n'
    )
    journal = Journal(tmp_path)
    assert (journal["search epochs 0"], journal["search length 1"]) == (26, [4, 500])
