"""Whole finds, with a budget in trainings: no clock decides."""

import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import nasight
from nasight.data import Dataset, SentData
from nasight.data import load as load_data
from nasight.errors import RequestError, RunError
from nasight.runs import RunFolder
from nasight.runs._aside import own_files
from nasight.searching import Diverged as SearchDiverged
from nasight.spaces import PlainSpace, Space, load, multiply_adds
from nasight.studies import Answer, trainable
from nasight.studies.finding import Budget, Outcome, Recipe, Request, Trainings, _find, _leg, _stages, _tuning, shared
from nasight.studies.finding._finder import NOTHING, add_budget, has_ended, legs
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._plan import SEEDS
from nasight.studies.finding._planning import TooSmall
from nasight.studies.finding._work import AUGMENTATIONS
from nasight.studies.finding._workers import Searches, SearchFailed, SearchRequest
from nasight.training import Diverged, Job

pytestmark = pytest.mark.slow
TINY: dict[str, Any] = {"space": "nasbench201", "trainings": 26, "epochs": 1, "workers": 1}
TIMES = ("seconds", "training_seconds", "run", "page")
"""What differs between two finds that come to the same."""
KEYS = {
    "run", "space", "data", "architecture", "parameters", "multiply_adds", "accuracy", "accuracies", "baseline",
    "difference", "interval", "level", "better", "proposed_by", "trainings", "seconds", "front", "target",
}  # fmt: skip
MINE = """
from torch import nn
from nasight import Choice


def build():
    wide = Choice({"three": nn.Conv2d(1, 4, 3, padding=1), "one": nn.Conv2d(1, 4, 1)}, name="first")
    end = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, name="second")
    return nn.Sequential(wide, end, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 10))
"""


@pytest.fixture(scope="module")
def answer(few_digits: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    torch.set_num_threads(1)
    return nasight.find(few_digits, out=tmp_path_factory.mktemp("find") / "a", **TINY)


def untimed(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what a clock said, and without its place."""
    kept = {key: value for key, value in result.items() if key not in TIMES}
    return {**kept, "front": [{**point, "latency": None, "best_latency": None} for point in kept["front"]]}


def proposers(line: dict[str, Any]) -> list[str]:
    """All who proposed a candidate, the first one first."""
    return [line["proposed_by"], *line["also"]]


def test_the_result_has_what_was_promised(answer: Answer) -> None:
    result = answer.result
    assert set(result) >= KEYS
    assert len(result["accuracies"]) == len(result["baseline"]["accuracies"]) == 3
    assert result["interval"][0] <= result["difference"] <= result["interval"][1]
    assert result["better"] in (True, False, None)
    assert all(set(point) >= {"architecture", "parameters", "latency", "accuracy"} for point in result["front"])
    assert result["trainings"] <= TINY["trainings"]
    assert (answer.path / "report.html").is_file()
    taken = result if result["figures_of"] == result["architecture"] else result["baseline"]
    # The figures are of one network, and its score is beside them: that of a side is a mean over seeds.
    assert result["figures"]["score"] == pytest.approx(taken["accuracies"][0], abs=0.001)
    assert result["figures_network"].endswith(f"seed 1 of 3: {result['figures']['score']:.2f} %")
    assert len(result["race"]["agreements"]) == len(result["race"]["rungs"]) - 1
    json.dumps(result, allow_nan=False)


def test_multiply_adds_are_those_of_the_networks_that_were_raced(answer: Answer) -> None:
    result, space = answer.result, load("nasbench201")
    size = result["target"]["size"]

    def products(text: str) -> int:
        known = PlainSpace() if text == "plain" else space
        arch = known.parse(text)
        return multiply_adds(known.network(arch, (1, 8, 8), 10, **({} if text == "plain" else size)), (1, 8, 8))

    sized = [result, result["baseline"], *result["front"], *result["race"]["lines"]]
    assert {row["architecture"]: row["multiply_adds"] for row in sized} == {
        row["architecture"]: products(row["architecture"]) for row in sized
    }
    assert [point.multiply_adds for point in answer.front] == [p["multiply_adds"] for p in result["front"]]


def test_every_candidate_says_who_proposed_it_and_controls_run_along(answer: Answer) -> None:
    lines = answer.result["race"]["lines"]
    proposers = {line["proposed_by"].split(" ")[0] for line in lines}
    assert {"reference", "plain", "search", "chance"} <= proposers
    assert [line["architecture"] for line in lines if line["control"]][1:] == ["plain"]
    assert all(any(a is not None for a in line["accuracies"]) for line in lines)


def test_the_answer_predicts_and_its_model_needs_nothing_else(answer: Answer, few_digits: Dataset) -> None:
    assert few_digits.test_x is not None
    assert few_digits.test_y is not None
    predicted = answer.predict(few_digits.test_x)
    right = sum(few_digits.classes[y] == p for y, p in zip(few_digits.test_y.tolist(), predicted, strict=True))
    taken = answer.result if answer.better else answer.baseline
    assert 100 * right / len(predicted) == pytest.approx(taken["accuracies"][0], abs=0.01)
    assert isinstance(answer.network, nn.Module)
    assert {f.name for f in (answer.path / "model").iterdir()} >= {"model.json", "network.py", "weights.safetensors"}


def test_no_training_of_the_recipe_stands_for_the_reference_in_the_race_or_in_the_answer(answer: Answer) -> None:
    keys = [key.split() for key in Journal(answer.path) if key.startswith("training space")]
    seeds = [int(word.removeprefix("seed=")) for key in keys for word in key if word.startswith("seed=")]
    tuned, others = seeds[: len(answer.result["recipes"])], seeds[len(answer.result["recipes"]) :]
    assert len(set(tuned)) == 1  # paired: they differ by the recipe alone
    assert others
    assert not set(tuned) & set(others)


def test_reading_the_data_counts_in_the_time_of_a_find(
    few_digits_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = _find.load_data

    def slow(*given: Any, **settings: Any) -> Dataset:
        time.sleep(1.5)
        return read(*given, **settings)

    monkeypatch.setattr(_find, "load_data", slow)
    with pytest.raises(KeyboardInterrupt):
        nasight.find(few_digits_file, out=tmp_path / "a", progress=stop_at("plan"), budget=3_600.0, workers=1)
    journal = Journal(tmp_path / "a")
    assert journal["began 0"] == 0.0
    assert journal["planned 0"] <= 3_600 - 1.5


def stop_at(wanted: str) -> Callable[[str, Any], None]:
    """Progress that stops a find at an event or a stage."""

    def stop(event: str, values: Any) -> None:
        if wanted in (event, values.get("stage")):
            raise KeyboardInterrupt

    return stop


def test_more_time_before_the_race_is_planned_anew(few_digits_file: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        nasight.find(few_digits_file, out=tmp_path / "a", progress=stop_at("propose"), budget=600.0, workers=1)
    plans = [Journal(tmp_path / "a")["plan 0"]]
    with pytest.raises(KeyboardInterrupt):
        nasight.resume_find(tmp_path / "a", budget="+10h", progress=stop_at("plan"))
    journal = Journal(tmp_path / "a")
    plans.append(journal["plan 0"])
    assert journal["began 0"] == 0.0
    assert journal["planned 0"] > 36_000
    assert plans[0]["places"][0] < plans[1]["places"][0]


def test_more_time_in_the_race_is_shared_with_the_answer(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for key, value in (("budget 0", asdict(Budget(60.0))), ("planned 0", 56.0), ("proposals 0", []), ("places 0 0", 8)):
        journal.put(key, value)
    add_budget(journal, Budget(20.0, more=True))
    again = Journal(tmp_path)
    assert (again["budget 0"]["seconds"], again["planned 0"], again["places 0 0"]) == (80.0, 76.0, 8)


def test_a_smaller_point_of_the_front_is_picked_without_searching_again(answer: Answer) -> None:
    sizes = sorted(point.parameters for point in answer.front)
    assert answer.within(max_params=sizes[0]).parameters == sizes[0]
    with pytest.raises(RequestError, match="within these limits"):
        answer.within(max_params=1)


def test_long_trainings_of_a_race_are_kept_and_come_to_the_same(
    answer: Answer, few_digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_leg, "KEPT_SECONDS", 0.0)
    kept = nasight.find(few_digits, out=tmp_path / "a", **TINY)
    assert untimed(kept.result) == untimed(answer.result)
    folders = [len(list((path / "trainings").iterdir())) for path in (answer.path, kept.path)]
    assert folders[1] > folders[0] + 5


def test_the_first_trainings_are_kept_where_nothing_says_how_long_they_take(answer: Answer) -> None:
    kept = [folder.name for folder in (answer.path / "trainings").iterdir()]
    tried = [name for name in kept if f"-{_tuning.TUNING_SEED}-" in name]
    assert len(tried) == len(AUGMENTATIONS)  # all three began at once; after them it is known
    assert len(kept) == len(tried) + 2 * SEEDS


def test_a_training_that_was_resumed_took_the_seconds_of_before_too(few_digits: Dataset, tmp_path: Path) -> None:
    with shared(few_digits) as folder:
        work = Trainings({"space": load("nasbench201")}, folder)
        space = work.space("space")
        size = tuple(sorted((space.train_size("tiny") or {}).items()))
        asked = Request(space.format(space.reference), "space", 8, 0, Recipe(), size=size, place=str(tmp_path / "a"))
        first = work(asked)
        # A kill before its line was in the journal: the folder is read, which takes no time, and all epochs count.
        again = work(asked)
        assert isinstance(first, Outcome)
        assert isinstance(again, Outcome)
        assert again.accuracy == first.accuracy
        assert again.seconds >= json.loads((tmp_path / "a" / "result.json").read_text())["seconds"] > 0.0


def test_a_race_without_time_for_its_last_rung_keeps_the_rungs_that_were_run(
    few_digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stages, "affordable", lambda leg, race, rung: 1)
    found = nasight.find(few_digits, out=tmp_path / "a", **TINY | {"trainings": 27, "epochs": 3})
    race = found.result["race"]
    assert race["rungs"] == [1]
    assert race["planned"]["rungs"] == [1, 3]
    assert len(race["rows"]) == 1
    assert all(len(line["accuracies"]) == 1 and line["accuracies"][0] is not None for line in race["lines"])
    page = " ".join((found.path / "report.html").read_text().split())
    assert "The winner's longest training in the race had 1 epoch, those of the answer 3." in page
    assert "; planned and not reached: " in page


def test_a_second_find_of_the_same_seed_is_the_same(answer: Answer, few_digits: Dataset, tmp_path: Path) -> None:
    again = nasight.find(few_digits, out=tmp_path / "b", **TINY)
    assert untimed(again.result) == untimed(answer.result)


def test_a_finished_find_is_read_and_more_time_begins_another_leg(answer: Answer, few_digits: Dataset) -> None:
    assert nasight.resume_find(answer.path).result == answer.result
    with pytest.raises(RequestError, match=r"to give it more time, write --budget \+20m"):
        nasight.resume_find(answer.path, budget="20m", data=few_digits)


def test_the_result_of_an_earlier_leg_is_not_the_end_of_a_later_one_that_was_killed(
    answer: Answer, tmp_path: Path
) -> None:
    shutil.copy(answer.path / "journal.jsonl", tmp_path)
    journal = Journal(tmp_path)
    assert has_ended(answer.result, journal)
    journal.put("budget 1", asdict(Budget(seconds=1_200.0, more=True)))
    assert not has_ended(answer.result, journal)
    assert has_ended({**answer.result, "legs": 2}, journal)
    journal.put("budget 1", asdict(NOTHING))  # as of one that was too small for anything
    assert has_ended(answer.result, journal)


def resumed_until_planned(answer: Answer, data: Dataset, place: Path, **changed: Any) -> dict[str, Any]:
    """The plan of a later leg of ten minutes, after a first one whose plan was `changed`."""
    copy = Path(shutil.copytree(answer.path, place))
    journal = Journal(copy)
    journal.put("plan 0", journal["plan 0"] | changed)
    with pytest.raises(KeyboardInterrupt):
        nasight.resume_find(copy, budget="+10m", data=data, progress=stop_at("plan"))
    return dict(Journal(copy)["plan 1"])


def test_where_trainings_of_a_later_leg_are_far_longer_whole_ones_compare_random_changes_again(
    answer: Answer, few_digits: Dataset, tmp_path: Path
) -> None:
    # Trainings of one epoch chose, and ten minutes have time for a hundred.
    again = resumed_until_planned(answer, few_digits, tmp_path / "a")
    assert again["recipe_whole"]
    assert list(again["seconds"]) == ["recipe", "propose", "race", "answer"]
    assert sum(again["seconds"].values()) <= 600
    kept = resumed_until_planned(answer, few_digits, tmp_path / "b", recipe_whole=False, recipe_epochs=90)
    assert list(kept["seconds"]) == ["propose", "race", "answer"]


def test_more_time_that_is_refused_does_not_withhold_the_answer_that_was_begun(
    few_digits_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        nasight.find(few_digits_file, out=tmp_path / "a", progress=stop_at("answer"), **TINY)
    assert "epochs 0" not in Journal(tmp_path / "a")
    with pytest.raises(TooSmall):
        nasight.resume_find(tmp_path / "a", budget="+1s")
    found = Answer(tmp_path / "a")
    assert len(found.result["accuracies"]) == 3
    assert found.network is not None
    assert nasight.resume_find(tmp_path / "a").result == found.result


def test_a_later_leg_keeps_the_front_of_the_earlier_one_and_says_that_the_test_part_judged_before(
    answer: Answer, few_digits: Dataset, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(answer.path, tmp_path / "copy"))
    later = nasight.resume_find(copy, trainings=20, data=few_digits)
    result = later.result
    assert (result["legs"], result["answers"], result["recipes"]) == (2, 2, [])
    assert result["trainings"] <= answer.result["trainings"] + 20
    raced = {line["architecture"]: line for line in result["race"]["lines"]}
    again = [line for line in raced.values() if "an earlier leg" in line["also"]]
    assert len(again) == 5  # of ten places
    first = {line["architecture"]: line for line in answer.result["race"]["lines"]}
    for line in again:
        by, *also = (re.sub(r"^(search \d+)$", r"\1 of leg 1", name) for name in proposers(first[line["architecture"]]))
        assert line["proposed_by"] == by
        assert proposers(line)[: len(also) + 2] == [by, *also, "an earlier leg"]
    assert list(raced.values())[2:7] == again  # they enter first, after the controls
    assert [kept[:2] for kept in Journal(copy)["proposals 1"][:5]] == [
        [line["architecture"], line["proposed_by"]] for line in again
    ]
    before, after = ({point.architecture: point for point in each.front} for each in (answer, later))
    assert set(before) <= set(after)
    assert set(after) - set(before) <= set(raced)
    rungs = len(result["race"]["rungs"])
    for name, point in after.items():
        ended = name in raced and raced[name]["accuracies"][rungs - 1] is not None
        assert point.estimated == (not ended)
    both = [name for name in before if name in raced]
    gain = sum(after[name].accuracy - before[name].accuracy for name in both) / len(both)
    for name in set(before) - set(raced):
        assert after[name].accuracy - before[name].accuracy == pytest.approx(gain)
    assert answer.cautions == []
    assert "has judged 2 answers of this find" in later.cautions[0]
    assert "The test part has judged 2 answers" in (copy / "report.html").read_text()


def test_a_model_in_a_file_is_found_from_beginning_to_end_in_the_folder_of_its_data(
    few_digits_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    found = nasight.find(str(few_digits_file), augment="shift", **TINY | {"space": "mine.py:build"})
    assert found.path == Path("runs/find-few-npz-0")
    assert "first options" in {line["proposed_by"] for line in found.result["race"]["lines"] if line["control"]}
    searched = json.loads((found.path / "searches" / "0-0" / "run.json").read_text())
    assert searched["data"]["augmentation"].startswith("shift")


def test_the_reference_is_trained_although_searches_leave_one_of_its_options_out(
    answer: Answer, few_digits: Dataset, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(answer.path, tmp_path / "copy"))
    reference = load("nasbench201").format(load("nasbench201").reference)
    assert "none" in reference
    taken = {**answer.baseline, "kind": "reference", "architecture": reference}
    result = {**answer.result, "take": reference, "better": None, "baseline": taken}
    (copy / "result.json").write_text(json.dumps(result))
    what = trainable(copy, data=few_digits)
    assert what.arch == reference
    assert isinstance(what.space, Space)
    assert what.space.parse(what.arch) == what.space.reference


def in_the_end(job: Job) -> bool:
    """Whether a training is one of the answer's: the test part judges it."""
    return job.settings.validation == "test"


def test_where_the_winner_diverges_in_the_end_the_next_best_is_trained(
    few_digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, refused = Trainings._kept, list[str]()

    def diverging(self: Trainings, job: Job, place: str) -> tuple[torch.Tensor, float]:
        text = job.space.format(job.arch)
        if in_the_end(job) and job.space.name == "nasbench201" and (not refused or text in refused):
            refused.append(text)
            raise Diverged("the loss became nan")
        return kept(self, job, place)

    monkeypatch.setattr(Trainings, "_kept", diverging)
    found = nasight.find(few_digits, out=tmp_path / "a", **TINY)
    assert refused
    assert refused[0] not in (found.architecture, found.baseline["architecture"])
    again = nasight.resume_find(found.path, data=few_digits)
    assert again.result == found.result


def test_a_full_disk_is_no_failure_of_a_candidate_and_the_find_goes_on_later(
    few_digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Trainings._kept

    def full(self: Trainings, job: Job, place: str) -> tuple[torch.Tensor, float]:
        if in_the_end(job):
            raise RunError("cannot write: no space left")
        return kept(self, job, place)

    with monkeypatch.context() as patch:
        patch.setattr(Trainings, "_kept", full)
        with pytest.raises(RunError, match="no space left"):
            nasight.find(few_digits, out=tmp_path / "a", **TINY)
    journal = Journal(tmp_path / "a")
    assert "epochs 0" in journal  # the answer had begun
    assert not any(" judged=test " in key for key in journal)
    resumed = nasight.resume_find(tmp_path / "a", data=few_digits)
    assert len(resumed.result["accuracies"]) == 3


def test_a_search_that_diverges_proposes_nothing_and_is_not_tried_again(
    few_digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, kept, tried = Searches._found, Trainings._kept, list[str]()

    def diverging(self: Searches, request: SearchRequest) -> str:
        tried.append(Path(request.out).name)
        if tried[-1] == "0-0":
            raise SearchDiverged("the loss became nan")
        return search(self, request)

    def stopped(self: Trainings, job: Job, place: str) -> tuple[torch.Tensor, float]:
        if in_the_end(job):
            raise RunError("stopped here")
        return kept(self, job, place)

    monkeypatch.setattr(Searches, "_found", diverging)
    monkeypatch.setattr(Trainings, "_kept", stopped)
    with pytest.raises(RunError, match="stopped here"):
        nasight.find(few_digits, out=tmp_path / "a", **TINY)
    assert tried == ["0-0", "0-1"]
    monkeypatch.undo()
    found = nasight.resume_find(tmp_path / "a", data=few_digits)
    proposers = {line["proposed_by"] for line in found.result["race"]["lines"]}
    assert "search 1" in proposers | {also for line in found.result["race"]["lines"] for also in line["also"]}
    assert not (tmp_path / "a" / "searches" / "0-0").exists()


def test_rows_that_are_too_few_for_a_search_are_raced_without_one_and_that_is_said(tmp_path: Path) -> None:
    y = torch.arange(15) % 3
    x = torch.randn(15, 6, generator=torch.Generator().manual_seed(0)) + y[:, None]
    notes = list[str]()

    def tell(event: str, values: Any) -> None:
        notes.extend([values["text"]] if event == "note" else [])

    found = nasight.find((x.numpy(), y.numpy()), out=tmp_path / "a", progress=tell, **TINY | {"space": None})
    assert [note.partition(": the split")[0] for note in notes] == [
        "2 of 2 searches propose nothing: 12 training rows are too few for 3 classes"
    ]
    assert "chance" in {line["proposed_by"] for line in found.result["race"]["lines"]}
    assert not list((found.path / "searches").glob("*"))


def test_a_search_that_cannot_begin_on_another_machine_is_one_that_failed_too(tmp_path: Path) -> None:
    y = torch.arange(12) % 3
    np.savez(tmp_path / "few.npz", x=torch.randn(12, 6).numpy(), y=y.numpy())
    searches = Searches(("mlp", {}), SentData.of(load_data(tmp_path / "few.npz")))
    sent = searches(SearchRequest(str(tmp_path / "a"), {"method": "gaea-darts", "preset": "tiny", "device": "cpu"}))
    assert sent.files == {}
    assert isinstance(sent.value, SearchFailed)
    assert "12 training rows are too few for 3 classes" in sent.value.why


def test_what_a_find_gets_besides_is_kept_only_when_nothing_is_in_the_way(
    few_digits_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    found = nasight.find(str(few_digits_file), **TINY | {"space": "mine.py:build"})
    with pytest.raises(RequestError, match=r"mine\.py:build"):
        nasight.resume_find(found.path, trainings=20)
    assert legs(Journal(found.path)) == 1


def test_more_time_before_the_answer_has_begun_is_time_of_the_same_leg(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.put("budget 0", asdict(Budget(seconds=60.0)))
    add_budget(journal, Budget(seconds=30.0, more=True))
    assert (legs(journal), journal["budget 0"]["seconds"]) == (1, 90.0)
    add_budget(journal, Budget(trainings=20, more=True))
    assert (legs(journal), journal["budget 1"]["trainings"]) == (2, 20)
    journal.put("epochs 1", 6)
    add_budget(journal, Budget(seconds=30.0, more=True))
    assert (legs(journal), journal["budget 2"]["seconds"]) == (3, 30.0)


def test_a_page_that_a_kill_prevented_is_written_when_the_find_is_read_again(answer: Answer, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(answer.path, tmp_path / "copy"))
    (copy / "report.html").unlink()
    assert nasight.resume_find(copy).result == answer.result
    assert "<html" in (copy / "report.html").read_text()


def test_limits_hold_for_every_candidate(few_digits: Dataset, tmp_path: Path) -> None:
    found = nasight.find(few_digits, out=tmp_path / "a", max_params="30k", **TINY)
    lines = found.result["race"]["lines"]
    assert max(line["parameters"] for line in lines) <= 30_000
    # The space's reference is larger than that, so another architecture stands for it, under its own name.
    assert "reference" not in {line["proposed_by"] for line in lines}
    assert "stand-in" in {line["proposed_by"] for line in lines if line["control"]}


def test_a_find_that_replaces_another_is_kept_from_its_first_training_on(
    answer: Answer, few_digits: Dataset, tmp_path: Path
) -> None:
    place = tmp_path / "a"
    shutil.copytree(answer.path, place)

    def begin_until(event: str) -> None:
        with pytest.raises(KeyboardInterrupt):
            nasight.find(few_digits, out=place, overwrite=True, progress=stop_at(event), **TINY, seed=1)

    begin_until("plan")  # nothing was trained: the old one is there
    assert Answer(place).result["architecture"] == answer.architecture
    assert not (place / ".replaced").exists()
    begin_until("training")
    assert RunFolder(place).result is None
    assert nasight.resume_find(place, data=few_digits).result["seed"] == 1
    assert not (place / ".replaced").exists()


def test_every_file_of_a_find_moves_aside_when_another_replaces_it(answer: Answer) -> None:
    files = {path.relative_to(answer.path) for path in answer.path.rglob("*") if path.is_file()}
    assert files - set(own_files(answer.path)) == {Path(".lock")}


def test_a_find_killed_before_its_first_line_is_resumed(answer: Answer, few_digits: Dataset, tmp_path: Path) -> None:
    shutil.copy(answer.path / "run.json", tmp_path)
    assert untimed(nasight.resume_find(tmp_path, data=few_digits).result) == untimed(answer.result)


def test_a_find_without_any_budget_gets_none_besides(answer: Answer, few_digits: Dataset, tmp_path: Path) -> None:
    about = json.loads((answer.path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({key: value for key, value in about.items() if key != "budget"}))
    for more, said in ((None, "never had a budget"), ("+20m", "has no budget to add to")):
        with pytest.raises(RequestError, match=said):
            nasight.resume_find(tmp_path, data=few_digits, budget=more)


def test_vectors_are_searched_in_the_space_of_fully_connected_networks(few_digits: Dataset, tmp_path: Path) -> None:
    data = (few_digits.train_x.flatten(1).float(), few_digits.train_y)
    found = nasight.find(data, out=tmp_path / "a", **TINY | {"space": None})
    assert found.result["space"] == "mlp"
    assert math.isfinite(found.accuracy)


def stage_of(folder: Path) -> str:
    """How far a find has come, by its journal."""
    keys = [key.split() for key in Journal(folder)] if (folder / "journal.jsonl").exists() else []
    first = {(words[0], words[-1]) for words in keys if words[0] != "training"}
    trainings = sum(words[0] == "training" for words in keys)
    if ("began", "1") in first:
        return "second leg" if trainings else "start"
    passed = [
        ("done", "end"), ("epochs", "answer"), ("places 1", "rung 1"), ("proposals", "rung 0"),
    ]  # fmt: skip
    for key, stage in passed:
        if any(" ".join(words[:-1]) == key and words[-1] == "0" for words in keys):
            return stage
    return "start" if not trainings else "propose" if (folder / "searches").exists() else "recipe"


def test_a_kill_in_every_stage_leaves_the_answer_as_it_would_have_been(few_digits_file: Path, tmp_path: Path) -> None:
    chance = random.Random(0)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def begin(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "nasight", "find", "--workers", "2", "--json", *arguments]
        return subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)

    def legs_of(folder: Path, stages: list[str]) -> list[str]:
        """Both legs of a find, killed in these stages; the stages in which kills came."""
        first = ("--data", str(few_digits_file), "--trainings", "40", "--epochs", "3", "--out", str(folder))
        hit = list[str]()
        for arguments, wanted in (
            (first, [stage for stage in stages if stage != "second leg"]),
            (("--resume", str(folder), "--trainings", "20"), [stage for stage in stages if stage == "second leg"]),
        ):
            for stage in [*wanted, None]:
                process = begin(*arguments)
                while process.poll() is None:
                    if stage is not None and stage_of(folder) == stage:
                        time.sleep(chance.uniform(0, 0.1))
                        hit.append(stage_of(folder))
                        os.killpg(process.pid, signal.SIGKILL)
                    time.sleep(0.01)
                if (folder / "run.json").exists():
                    arguments = ("--resume", str(folder))
            assert process.returncode == 0
        return hit

    stages = ["recipe", "propose", "rung 0", "rung 1", "answer", "second leg"]
    assert legs_of(tmp_path / "whole", []) == []
    hit = legs_of(tmp_path / "killed", stages)
    assert set(hit) & set(stages) == set(stages)
    first, second = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "killed"))
    assert first["answers"] == 2
    assert untimed(first) == untimed(second)
