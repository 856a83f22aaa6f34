"""Races: the same trials on any executor, kept through a real kill, summed up rightly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import synthetic_table

from nasight.errors import RequestError
from nasight.runs import RunFolder
from nasight.tables import Table, race

QUICK: dict[str, Any] = {"methods": ["rs", "rea"], "budget": 500, "trials": 25, "workers": 1}
KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from synthetic import synthetic_table
from nasight.tables import race
race(["rs"], table=synthetic_table(), budget=3_000, trials=500, workers=1, out=sys.argv[2])
"""


def test_the_executor_does_not_change_the_outcome(small: Table) -> None:
    with ThreadPoolExecutor(3) as executor:
        assert race(**QUICK, table=small, executor=executor) == race(**QUICK, table=small)


def test_another_seed_is_another_race(small: Table) -> None:
    assert race(**QUICK, table=small, seed=1).standings != race(**QUICK, table=small).standings


@pytest.mark.slow
def test_a_killed_race_goes_on_and_ends_as_if_it_had_not_been_killed(tmp_path: Path) -> None:
    script = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(tmp_path / "killed")]
    process = subprocess.Popen(script)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "killed").glob("trials/rs-*.json"))) < 5:
        assert process.poll() is None, "killed before it ends"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "race.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").glob("trials/*.json")}
    table = synthetic_table()
    counts: list[int] = []
    settings: dict[str, Any] = {"table": table, "budget": 3_000, "trials": 500, "workers": 1}
    resumed = race(["rs"], **settings, out=tmp_path / "killed", progress=lambda done, total: counts.append(done))
    assert counts[0] == 10 * len(kept), "what was finished is not done again"
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())
    assert resumed == race(["rs"], **settings)


def test_more_trials_and_methods_can_be_asked_for_later(small: Table, tmp_path: Path) -> None:
    race(**QUICK, table=small, out=tmp_path / "a")
    larger = QUICK | {"methods": ["rea", "rs", "sh"], "trials": 40}
    grown = race(**larger, table=small, out=tmp_path / "a")
    assert grown == race(**larger, table=small)


@pytest.mark.parametrize(("key", "value"), [("budget", 600), ("dataset", "c100"), ("seed", 9)])
def test_a_folder_of_another_race_is_refused(small: Table, tmp_path: Path, key: str, value: Any) -> None:
    race(**QUICK, table=small, out=tmp_path / "a")
    with pytest.raises(RequestError, match=f"holds a race with {key} .*; choose another --out"):
        race(**QUICK | {key: value}, table=small, out=tmp_path / "a")


def test_means_and_spreads_are_those_of_the_cells_found(small: Table, tmp_path: Path) -> None:
    outcome = race(**QUICK, table=small, out=tmp_path / "a")
    trials = [t for p in (tmp_path / "a").glob("trials/rs-*.json") for t in json.loads(p.read_text())["trials"]]
    accuracies = small.column("c10_test200")[[t["steps"][-1][1] for t in trials]]
    mean, spread = outcome.standings[0].test["c10"]
    assert (mean, spread) == pytest.approx((accuracies.mean(), accuracies.std(ddof=1)))
    assert sum(outcome.standings[0].cells.values()) <= 25


def test_curves_end_at_the_standing_and_regret_is_what_the_optimum_has_more(small: Table) -> None:
    outcome = race(**QUICK, table=small)
    for curve, standing in zip(outcome.curves, outcome.standings, strict=True):
        assert curve.mean["test"][-1] == pytest.approx(standing.test["c10"][0], abs=1e-4)
        assert curve.mean["regret"][-1] == pytest.approx(outcome.optimum["c10"] - standing.test["c10"][0], abs=1e-4)
        assert curve.mean["test"][0] is None, "nothing is known before the first training ends"
        begun = [value for value in curve.median["valid"] if value is not None]
        assert np.all(np.diff(begun) >= 0)
        for lower, median, upper in zip(curve.lower["test"], curve.median["test"], curve.upper["test"], strict=True):
            assert median is None or lower <= median <= upper


ABOUT = {"settings": {}, "data": {"name": "digits", "fingerprint": "0", "inputs": [1, 8, 8], "classes": ["0", "1"]}}


def finished_run(path: Path, arch: str, **changes: Any) -> Path:
    folder = RunFolder.create(
        path,
        kind="search",
        about={
            "settings": {},
            "data": {"name": "digits", "fingerprint": "0", "inputs": [1, 8, 8], "classes": ["0", "1"]},
        },
    )
    result = {"space": "nasbench201", "method": "gaea-darts", "objective": "erm", "data": "digits", "seconds": 20.0}
    rest = {"run": "r", "seed": 0, "epochs": 1, "accuracy": 1.0, "entropy": 1.0}
    folder.write_result({**result, **rest, "architecture": arch, **changes})
    return path


def test_runs_are_looked_up_by_what_they_found_and_grouped_by_method(small: Table, tmp_path: Path) -> None:
    best, worst = (small.text(int(small.column("c10_test200").argmax())), small.text(0))
    runs = [
        finished_run(tmp_path / "a", best),
        finished_run(tmp_path / "b", worst, seconds=40.0),
        finished_run(tmp_path / "c", best, space="darts"),
    ]
    RunFolder.create(
        tmp_path / "d",
        kind="search",
        about={
            "settings": {},
            "data": {"name": "digits", "fingerprint": "0", "inputs": [1, 8, 8], "classes": ["0", "1"]},
        },
    )
    outcome = race([], table=small, runs=[*runs, tmp_path / "d"])
    (standing,) = outcome.standings
    assert (standing.name, standing.kind, standing.count) == ("gaea-darts (erm), digits", "run", 2)
    a, b = (small.query(text).datasets["c10"]["test200"] for text in (best, worst))
    assert standing.test["c10"] == pytest.approx((np.mean([a, b]), np.std([a, b], ddof=1)))
    assert standing.cost == 30.0
    assert list(outcome.left_out) == [str(tmp_path / "c"), str(tmp_path / "d")]
    assert "is of space 'darts'" in outcome.left_out[str(tmp_path / "c")]
    assert "is not finished" in outcome.left_out[str(tmp_path / "d")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ["ea"]}, "there is no black-box method 'ea'; did you mean 'rea'"),
        ({"methods": ["rs", "rs"]}, "each method can race once, got rs, rs"),
        ({"dataset": "cifar"}, "has no data set 'cifar'; it has c10, c100, in16"),
        ({"budget": 10}, r"pay for any one training, 30 s on c10; got 10 s"),
        ({"budget": float("inf")}, "must be finite"),
        ({"trials": 0}, "at least 1 trial, got 0"),
        ({"runs": ["no/such"]}, "none of 1 runs can be looked up; no/such: no/such is not a run"),
    ],
)
def test_a_wrong_request_is_one_sentence(small: Table, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        race(**QUICK | changes, table=small)
