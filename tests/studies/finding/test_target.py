"""A find for a longer training than its budget has time for: what races, what decides, and how it is trained then."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from on_paper import least_seconds
from torch import nn

import nasight
from command import run
from nasight.data import Dataset
from nasight.errors import RequestError
from nasight.runs import write_json
from nasight.studies import Answer, trainable
from nasight.studies.finding import Plan
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._planning import FEWEST_RACED, TooSmall

TINY, SMALL = {"channels": 8, "cells": 1}, {"channels": 16, "cells": 2}
SHORT: dict[str, Any] = {"trainings": 26, "epochs": 1, "workers": 1}


def small_network() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(10))


@pytest.fixture(scope="module")
def answer(few_digits_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    torch.set_num_threads(1)
    place = tmp_path_factory.mktemp("target") / "a"
    return nasight.find(str(few_digits_file), space="nasbench201", out=place, target="small", **SHORT)


@pytest.mark.slow
def test_it_says_what_decided_and_how_well_such_trainings_agree(answer: Answer) -> None:
    target = answer.result["target"]
    assert (target["preset"], target["epochs"], target["size"], target["reached"]) == ("small", 12, SMALL, False)
    assert target["decided_at"]["size"] == TINY
    assert "12 epochs, channels 16, cells 2" in target["says"]
    assert "the race was decided by trainings of 1 epoch, the answer" in target["says"]
    assert "the answer by trainings of 1 epoch, channels 8, cells 1" in target["says"]
    assert target["says"] in (answer.path / "report.html").read_text().replace("&#39;", "'")
    assert answer.baseline["kind"] == "reference"
    lines = answer.result["race"]["lines"]
    # A plain network has no larger size; and of 4,096 cells the largest is always there, whoever proposed it.
    assert [line["proposed_by"] for line in lines if line["control"]] == ["reference"]
    cell = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|"
    assert cell in [line["architecture"] for line in lines]


@pytest.mark.slow
def test_a_later_leg_has_proposals_besides_the_leaders_and_what_is_near_the_reference(
    answer: Answer, tmp_path: Path
) -> None:
    shutil.copytree(answer.path, tmp_path / "a")
    again = nasight.resume_find(tmp_path / "a", trainings=SHORT["trainings"])
    lines = again.result["race"]["lines"]
    assert {"largest", "chance"} <= {name for line in lines for name in (line["proposed_by"], *line["also"])}


@pytest.mark.slow
def test_a_find_of_an_earlier_version_that_decided_otherwise_is_not_finished_by_this_one(
    answer: Answer, tmp_path: Path
) -> None:
    shutil.copytree(answer.path, tmp_path / "a")
    about = json.loads((tmp_path / "a" / "run.json").read_text())
    assert about["settings"].pop("edition") == 2
    write_json(tmp_path / "a" / "run.json", about)
    assert nasight.resume_find(tmp_path / "a").architecture == answer.architecture
    with pytest.raises(RequestError, match=r"earlier version, which decided otherwise .* begin it anew"):
        nasight.resume_find(tmp_path / "a", trainings=30)
    about["settings"]["target"] = None
    write_json(tmp_path / "a" / "run.json", about)
    with pytest.raises(TooSmall):
        nasight.resume_find(tmp_path / "a", trainings=1)


@pytest.mark.slow
def test_ones_own_network_does_not_run_along_where_a_larger_one_is_meant(few_digits: Dataset, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    found = nasight.find(
        few_digits, space="nasbench201", out=tmp_path / "a", target="small", baseline=small_network, **SHORT
    )
    assert found.baseline["kind"] == "reference"
    assert found.result["missing"] == "it has no larger size to train later"
    assert [line["proposed_by"] for line in found.result["race"]["lines"] if line["control"]] == ["reference"]


@pytest.mark.slow
def test_with_a_clock_all_are_trained_as_long_as_the_answer_where_a_longer_training_is_meant(
    few_digits: Dataset, tmp_path: Path
) -> None:
    torch.set_num_threads(1)

    def found(budget: float) -> Answer:
        how: dict[str, Any] = {"budget": budget, "workers": 1, "space": "nasbench201", "target": "paper"}
        return nasight.find(few_digits, out=tmp_path / "a", **how)

    try:
        answer = found(15)
    except TooSmall as error:
        answer = found(1.5 * least_seconds(str(error)))
    made = Plan.from_dict(Journal(answer.path)["plan 0"])
    assert (made.whole, made.paced, len(made.rungs), made.rungs[0]) == (True, False, 1, made.epochs)
    race, target = answer.result["race"], answer.result["target"]
    assert {tuple(line["epochs"]) for line in race["lines"] if line["left"] is None} == {made.rungs}
    assert len(race["lines"]) >= FEWEST_RACED
    assert "all had one length, so nobody knows how well they predict longer ones" in target["says"]
    page = " ".join((answer.path / "report.html").read_text().split())
    assert f"All trainings have {made.rungs[0]} epochs. Short trainings favor what starts fast" in page


@pytest.mark.slow
def test_what_was_found_is_trained_as_meant(answer: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what = trainable(answer.path)
    assert (what.preset, what.arch) == ("small", answer.result["take"])
    # A file without a test part got one, which is the same here.
    assert what.data.test_y is not None
    smallest = min(point.parameters for point in answer.front)
    chosen = trainable(answer.path, max_params=smallest)
    assert chosen.arch == answer.within(max_params=smallest).architecture
    assert chosen.out != what.out
    # Trainings on other data lie beside those on the find's own.
    assert trainable(answer.path, data="digits").out.parent == what.out
    short = ("--preset", "tiny", "--epochs", "1", "--seeds", "1", "--out", str(tmp_path))
    assert run("train", str(answer.path), *short) == 0
    told = capsys.readouterr()
    assert answer.result["take"] in told.out
    assert f"what is trained of {answer.path} is {answer.advised()[1]}" in told.err


@pytest.mark.slow
def test_limits_are_for_the_front_of_a_find(answer: Answer) -> None:
    with pytest.raises(RequestError, match="front of a find"):
        trainable(space="nasbench201", arch=answer.architecture, max_params="30k")
    with pytest.raises(RequestError, match="within these limits"):
        trainable(answer.path, max_params=1)
