"""Equal time: a slower network has fewer epochs, in the race and in the answer."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from on_paper import ROW, OnPaper, least_seconds, leg_of

import nasight
from nasight.data import Dataset
from nasight.spaces import load
from nasight.studies import Answer
from nasight.studies.finding import (
    Budget,
    Candidate,
    Entry,
    Outcome,
    Plan,
    Race,
    Recipe,
    Request,
    Speed,
    _stages,
    paced_epochs,
    plan,
)
from nasight.studies.finding import _leg as leg_module
from nasight.studies.finding._answering import Lengths, makespan
from nasight.studies.finding._finder import add_budget
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._leg import Leg, LegResult
from nasight.studies.finding._lengths import PER_TRAINING, SLACK
from nasight.studies.finding._names import split_name
from nasight.studies.finding._planning import ANSWERED, FEWEST_RACED, JUDGING, KEPT_EPOCH, SHARES, TooSmall

TESTS = 500
TRAINING = re.compile(r"training space (\S+) epochs=(\d+) seed=(\d+) .*rows=(\d+) judged=(\S+) ")


def paced_leg(folder: Path, budget: float, rows: int, paces: dict[str, float]) -> Leg:
    """A leg whose plan gives all trainings of a rung the same time; the reference takes ROW seconds per row."""
    speed = Speed(ROW / 0.8, 2 * ROW, 0.06, reference=0.8, slower=1.5)
    leg = leg_of(folder, budget, rows, speed, paced=True)
    for name, pace in paces.items():
        leg.journal.put(f"pace 0 {name}", pace)
    leg.timed_paces = lambda names, *how: {name: leg.pace(name) for name in names}  # type: ignore[method-assign]
    return leg


class PacedOnPaper(OnPaper):
    def slow(self, name: str) -> float:
        return self.leg.pace(name)


@pytest.mark.parametrize("leaders", [0.6, 1.0, 1.6, 2.5])
@pytest.mark.parametrize(("budget", "rows"), [(60, 1_437), (90, 1_437), (180, 5_000), (900, 8_000)])
def test_a_race_of_whole_trainings_ends_in_its_time_however_slow_leaders_are(
    tmp_path: Path, budget: float, rows: int, leaders: float
) -> None:
    paces = {f"leader{i}": leaders for i in range(1_000)} | {f"other{i}": 1.3 for i in range(1_000)}
    leg = paced_leg(tmp_path, budget, rows, paces)
    paper = PacedOnPaper(leg, reference=1.0, leaders=leaders)
    raced = paper.run()
    # All candidates are trained as long as the answer trains the reference, and there are enough of them.
    assert leg.plan.rungs == (leg.plan.epochs,)
    assert raced[0] >= FEWEST_RACED
    assert paper.clock < (1 - 0.9 * SHARES["answer"]) * budget
    # What learns takes the time of the reference, up to half an epoch; the rows that judge come on top.
    for request, outcome in leg.context.seen[paper.tuned :]:
        pace, taught = leg.pace(request.architecture), request.examples or 0
        usual = [ROW * n * taught for n, has in zip(leg.plan.rungs, leg.plan.rung_rows, strict=True) if has == taught]
        learned = outcome.seconds - ROW * pace * JUDGING * leg.plan.judge_share * rows
        assert min(abs(learned - seconds) for seconds in usual) <= ROW * taught * pace * 0.5001


def ended_race(leg: Leg, names: list[str]) -> Race:
    """A race whose last rung took what the paces say."""
    race = Race([9] * len(leg.plan.rungs))
    race.rung = len(leg.plan.rungs) - 1
    race.enter(Candidate(name, "somebody", 1) for name in names)
    paper = PacedOnPaper(leg, 1.0, 1.0)
    for name in names:
        race.tell(Entry(name, race.rung, 0), paper.train(name, race.rung))
    return race


@pytest.mark.parametrize("pace", [0.5, 1.0, 1.7, 3.0])
def test_both_sides_of_an_answer_take_the_same_time_and_use_what_is_left(tmp_path: Path, pace: float) -> None:
    leg = paced_leg(tmp_path, 180, 5_000, {"leader0": pace})
    leg.context.data.test_y = torch.zeros(TESTS)
    leg.context.clock = lambda: 120.0  # type: ignore[method-assign, assignment, return-value]
    names = ["leader0", "reference"]
    race = ended_race(leg, names)
    epochs, seeds = Lengths(leg, race, names).decided()
    each = {n: leg.plan.examples * ROW * p + KEPT_EPOCH for n, p in zip(names, (pace, 1.0), strict=True)}
    took = {n: epochs[n] * each[n] for n in names}
    assert abs(took["leader0"] - took["reference"]) <= max(each.values()) * 0.5001
    tested = {n: took[n] + JUDGING * TESTS * ROW * p for n, p in zip(names, (pace, 1.0), strict=True)}
    whole = makespan(sorted((t for t in tested.values() for _ in range(seeds)), reverse=True), 2)
    assert whole <= ANSWERED * 60 < whole + 4 * max(each.values())
    # Where one side diverges, the next has the same seconds.
    leg.journal.put("pace 0 other0", 2 * pace)
    race.enter([Candidate("other0", "somebody", 1)])
    race.tell(Entry("other0", race.rung, 0), PacedOnPaper(leg, 1.0, 1.0).train("other0", race.rung))
    again, _ = Lengths(leg, race, ["other0", "reference"]).decided()
    assert again["reference"] == epochs["reference"]
    assert again["other0"] == pytest.approx(epochs["leader0"] / 2, abs=0.76)


@pytest.mark.parametrize(("pace", "left"), [(0.5, 600.0), (0.2, 600.0), (0.25, 2.0), (20.0, 2.0)])
def test_a_fast_winner_does_not_shorten_the_answer_and_a_slow_side_has_two_epochs(
    tmp_path: Path, pace: float, left: float
) -> None:
    leg = paced_leg(tmp_path, 900, 1_437, {"leader0": pace})
    leg.context.clock = lambda: 900 - left  # type: ignore[method-assign, assignment, return-value]
    names = ["leader0", "reference"]
    epochs, _ = Lengths(leg, ended_race(leg, names), names).decided()
    # In ten minutes there is time for the longest trainings, 100 epochs of the reference.
    assert epochs["reference"] == 100 if left > 2 else min(epochs.values()) >= 2
    assert epochs["leader0"] == pytest.approx(epochs["reference"] / pace, rel=0.26)


@pytest.mark.parametrize(("length", "left"), [(30.0, 5.0), (30.0, 600.0), (120.0, 600.0)])
def test_an_answer_of_a_later_leg_is_not_shorter_than_the_one_before(
    tmp_path: Path, length: float, left: float
) -> None:
    leg = paced_leg(tmp_path, 900, 1_437, {"leader0": 0.5})
    leg.context.clock = lambda: 900 - left  # type: ignore[method-assign, assignment, return-value]
    leg.previous = LegResult(Race([1]), leg.plan, {"legs": 1})
    leg.number = 1
    for key in ("planned", "speed"):
        leg.journal.put(f"{key} 1", leg.journal[f"{key} 0"])
    leg.journal.put("length 0", length)
    leg.journal.put("epochs 0", 2 * length)
    names = ["leader0", "reference"]
    epochs, _ = Lengths(leg, ended_race(leg, names), names).decided()
    assert epochs["reference"] == (length if left < 600 else max(length, 100))
    assert epochs["leader0"] == 2 * epochs["reference"]


def test_parts_of_a_later_leg_divide_the_share_of_the_recipe_and_an_answer_keeps_its_time(tmp_path: Path) -> None:
    leg = paced_leg(tmp_path, 180, 5_000, {})
    assert leg.shares == SHARES
    usual = leg.until("race")
    leg.plan = replace(leg.plan, seconds={k: v for k, v in leg.plan.seconds.items() if k != "recipe"})
    leg.previous = LegResult(Race([1]), leg.plan, {"legs": 1})
    assert leg.shares["recipe"] == 0
    assert sum(leg.shares.values()) == pytest.approx(1)
    assert leg.shares["race"] / leg.shares["answer"] == pytest.approx(SHARES["race"] / SHARES["answer"])
    assert leg.until("race") == pytest.approx(180 * (1 - leg.shares["answer"])) != usual
    leg.plan = replace(leg.plan, seconds={**leg.plan.seconds, "answer": 100.0})
    assert leg.until("race") == pytest.approx(180 - 100 / SLACK)


def test_paces_are_those_of_the_leg_or_of_the_last_that_measured_them(tmp_path: Path) -> None:
    leg = paced_leg(tmp_path, 180, 5_000, {"leader0": 2.0})
    leg.number = 1
    assert (leg.pace("leader0"), leg.pace("reference")) == (2.0, 1.0)
    leg.journal.put("pace 1 leader0", 0.5)
    assert leg.pace("leader0") == 0.5


def test_a_find_that_is_planned_anew_measures_paces_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.put("budget 0", {"seconds": 60.0, "trainings": None, "more": False})
    journal.put("pace 0 baseline:", 6.0)
    add_budget(journal, Budget(seconds=7_200.0, more=True))
    assert "pace 0 baseline:" not in journal


@pytest.mark.parametrize("own", [2.0, 4.0, 40.0])
def test_all_trainings_are_as_long_as_two_epochs_of_an_own_baseline_that_is_slow(own: float) -> None:
    # Half of the trainings that answer are those of the baseline, and it has two epochs however slow it is.
    speed = Speed(ROW, 2 * ROW, 0.06, controls=1 + own, own=own).paced(2)
    how: dict[str, Any] = {
        "workers": 2,
        "rows": 8_000,
        "classes": 10,
        "whole": True,
        "paced": True,
        "own": max(1.0, own / 3),
    }
    found = plan(speed, 300, **how)
    assert found.epochs >= max(6, 2 * own)
    assert paced_epochs(found.epochs, own) * own <= found.epochs + own / 2
    assert sum(found.seconds.values()) <= 300
    assert own < 4 or found.rungs == (found.epochs,)
    with pytest.raises(TooSmall) as refused:
        plan(speed, 2.0, **how)
    assert plan(speed, least_seconds(str(refused.value)), **how).epochs >= 2 * own


def test_a_candidate_whose_two_epochs_take_far_longer_than_a_training_is_not_trained(tmp_path: Path) -> None:
    leg = paced_leg(tmp_path, 180, 5_000, {"slow": 1e3, "leader0": 2.0, "own": 1e3})
    race, trained = Race([9]), list[str]()

    def train(requests: list[Request]) -> list[Outcome]:
        trained.extend(request.architecture for request in requests)
        return [Outcome(80.0, seconds=1.0) for _ in requests]

    leg.context.folder = SimpleNamespace(path=tmp_path)  # type: ignore[assignment]
    leg.context.workers = SimpleNamespace(train=train)  # type: ignore[assignment]
    leg.measure_paces = lambda names: None  # type: ignore[method-assign]
    race.enter([Candidate("slow", "x", 1), Candidate("leader0", "x", 1), Candidate("own", "x", 1, control=True)])
    _stages._train(leg, race)
    assert sorted(set(trained)) == ["leader0", "own"]
    assert race.left["slow"].reason == "time"


def test_gradient_boosting_has_fewer_rounds_where_all_take_far_longer_than_other_trainings(tmp_path: Path) -> None:
    leg = paced_leg(tmp_path, 180, 5_000, {})
    usual = PER_TRAINING + leg.plan.epochs * leg.plan.examples * ROW
    rounds = {}
    for times in (0.0, 1.0, 1.9, 10.0, 1e6):
        leg.journal.put("speed 0", leg.journal["speed 0"] | {"boosting": times * usual * 5_000 / leg.plan.examples})
        rounds[times] = leg.request("boosting", "boosting", 6, 7, Recipe()).epochs
    # One stands for all of them.
    assert rounds == {0.0: 1, 1.0: 1, 1.9: 1, 10.0: 20, 1e6: 10}
    # Where chance plays no role one training serves all seeds.
    assert leg.request("boosting", "boosting", 1, 7, Recipe()).seed == leg.seed


def test_gradient_boosting_has_no_epochs_and_does_not_set_the_time(tmp_path: Path) -> None:
    leg = paced_leg(tmp_path, 180, 5_000, {"leader0": 2.0})
    leg.context.data.test_y = torch.zeros(TESTS)
    leg.context.clock = lambda: 120.0  # type: ignore[method-assign, assignment, return-value]
    race = ended_race(leg, ["leader0"])
    race.enter([Candidate("boosting:", "boosting", 0, control=True)])
    race.tell(Entry("boosting:", race.rung, 0), Outcome(80.0, seconds=0.1))
    epochs, _ = Lengths(leg, race, ["leader0", "boosting:"]).decided()
    alone = leg.plan.examples * ROW * 2.0 + KEPT_EPOCH
    assert 3 * epochs["leader0"] * alone / 2 <= ANSWERED * 60 < 3 * (epochs["leader0"] + 1) * alone


def test_a_find_of_an_earlier_version_keeps_its_epochs(tmp_path: Path) -> None:
    leg = paced_leg(tmp_path, 180, 5_000, {"leader0": 2.0})
    kept = leg.plan.to_dict()
    del kept["paced"]
    leg.plan = Plan.from_dict(kept)
    assert not leg.plan.paced
    assert leg.epochs_of("leader0", 0) == leg.plan.rungs[0]
    assert leg.speed.reference == 0.8
    leg.journal.put("epochs 0", 7)
    assert Lengths(leg, ended_race(leg, ["leader0"]), ["leader0"]).decided() == ({"leader0": 7}, 3)


def quickest(data: Dataset, out: Path) -> Answer:
    """A find with the least budget of time that this machine has a use for."""
    try:
        return nasight.find(data, budget=15, workers=1, out=out)
    except TooSmall as error:
        return nasight.find(data, budget=1.5 * least_seconds(str(error)), workers=1, out=out)


@pytest.mark.slow
def test_in_a_find_with_a_clock_the_epochs_of_every_training_follow_from_its_pace(
    few_digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = load("convnet")
    products = space.multiply_adds((1, 8, 8), 10)
    usual = products(space.reference) or 0

    class Probe:
        """Paces that no clock decides."""

        def __init__(self, *how: Any) -> None:
            pass

        def __call__(self, request: Request) -> float:
            return (products(space.parse(request.architecture)) or 0) / usual

    monkeypatch.setattr(leg_module, "PaceProbe", Probe)
    torch.set_num_threads(1)
    found = quickest(few_digits, tmp_path / "a")
    result, journal = found.result, Journal(tmp_path / "a")
    assert result["equal"] == "seconds"
    plan = Plan.from_dict(journal["plan 0"])
    raced = [m.groups() for key in journal if (m := TRAINING.match(key)) and m[5] != "test" and int(m[3]) < 50]
    assert len({name for name, *_ in raced}) > 5
    slow = 0
    for name, epochs, _, rows, _ in raced:
        pace = round((products(space.parse(split_name(name)[1])) or 0) / usual, 3)
        rungs = {paced_epochs(plan.rungs[r], pace) for r in range(len(plan.rungs)) if plan.rows(r) == int(rows)}
        assert int(epochs) in rungs
        slow += int(epochs) < plan.rungs[0]
    assert slow > 0
    took, base = result["training_seconds"], result["baseline"]
    assert (result["epochs"] == base["epochs"]) or took["winner"] > 0
    lines = {line["architecture"]: line for line in result["race"]["lines"]}
    assert lines[base["architecture"]]["epochs"] == list(plan.rungs[: len(result["race"]["rungs"])])
    page = " ".join((tmp_path / "a" / "report.html").read_text().split())
    assert f"All trainings take about as long as those of the answer: as {plan.epochs} epochs of the reference" in page
    assert f"{base['epochs']} epochs in {took['baseline']:.3g} s" in page
