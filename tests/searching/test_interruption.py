"""Real kills, real signals, a real shortage of disk: a resumed run gives what an uninterrupted one gives."""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from nasight.errors import RequestError, RunError
from nasight.runs import RunFolder
from nasight.searching import METHODS, Progress, Run, resume, search

SETTINGS: dict[str, Any] = {
    "data": "digits",
    "preset": "tiny",
    "examples": 160,
    "epochs": 3,
    "batch_size": 16,
    "size": {"channels": 4, "cells": 1},
    "threads": 1,
}

# Imports once, computes nothing itself, and forks a child for every attempt that the test asks for.
NURSERY = """
import json, os, sys, torch
torch.set_num_threads(1)
from nasight.searching import resume, search
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            if request["new"]:
                search(out=request["out"], **request["settings"])
            else:
                resume(request["out"])
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Nursery:
    """Searches in processes of their own, which can be killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def attempt(self, out: Path, *, new: bool, settings: dict[str, Any], kill_after: float | None) -> int:
        assert self.process.stdin
        assert self.process.stdout
        request = {"out": str(out), "new": new, "settings": settings}
        self.process.stdin.write(json.dumps(request) + "\n")
        child = int(self.process.stdout.readline())
        if kill_after is not None:
            time.sleep(kill_after)
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                os.kill(child, signal.SIGKILL)
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def nursery() -> Any:
    made = Nursery()
    yield made
    made.close()


def contents(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, torch.Tensor]]:
    """History and result without the clock and the folder's name, and the shared weights."""
    run = Run(path)
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in run.history]
    result = {k: v for k, v in run.result.items() if k not in ("seconds", "run")}
    return history, result, run.supernet().state_dict()


def assert_same(first: Path, second: Path) -> None:
    (history, result, shared), (history_2, result_2, shared_2) = contents(first), contents(second)
    assert history == history_2
    assert result == result_2
    assert all(torch.equal(shared[name], shared_2[name]) for name in shared)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_search_killed_at_random_moments_ends_as_one_never_killed(
    nursery: Nursery, tmp_path: Path, name: str
) -> None:
    settings = {**SETTINGS, "method": name, "checkpoint_seconds": 0.0, "candidates": 3}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    start = time.monotonic()
    assert nursery.attempt(whole, new=True, settings=settings, kill_after=None) == 0
    seconds = time.monotonic() - start
    kills, status = 0, -1
    while status != 0:
        new = not (killed / "run.json").exists()
        moment = random.uniform(0, 0.5 * seconds) if kills < 3 else None
        status = nursery.attempt(killed, new=new, settings=settings, kill_after=moment)
        assert status in (0, -signal.SIGKILL)
        kills += status != 0
        if status == 0 and kills == 0:  # faster than the clock said: again, and earlier
            shutil.rmtree(killed)
            seconds, status = seconds / 2, -1
    assert_same(whole, killed)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["bilevel", "erm", "block"])
def test_every_objective_resumes_in_the_middle_of_an_epoch(nursery: Nursery, tmp_path: Path, objective: str) -> None:
    settings = {**SETTINGS, "method": "gaea-darts", "objective": objective, "checkpoint_seconds": 0.0}
    assert nursery.attempt(tmp_path / "a", new=True, settings=settings, kill_after=None) == 0

    class StopAt(Progress):
        def step(self, epoch: int, step: int) -> None:
            if (epoch, step) == (1, 2):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(out=tmp_path / "b", progress=StopAt(), **settings)
    state = RunFolder(tmp_path / "b").load()
    assert state is not None
    assert (state["epoch"], state["step"]) == (1, 2)
    resume(tmp_path / "b")
    assert_same(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow
@pytest.mark.parametrize("step", [8, 9], ids=["before the phase", "within it"])
def test_enas_resumes_before_and_within_its_phase(nursery: Nursery, tmp_path: Path, step: int) -> None:
    """8 steps of the shared weights, then 2 of the controller; the second epoch has a baseline to remember."""
    small = {"space": "mlp", "size": {"width": 4}, "batch_size": 8, "candidates": 3, "checkpoint_seconds": 0.0}
    settings = {**SETTINGS, **small, "method": "enas", "epochs": 2}
    assert nursery.attempt(tmp_path / "a", new=True, settings=settings, kill_after=None) == 0
    begun, made = [], []

    class Told(Progress):
        def begin(self, settings: Any, steps: int, done: int) -> None:
            begun.append((steps, done))

        def step(self, epoch: int, index: int) -> None:
            made.append((epoch, index))
            if made == [(e, i) for e in (0, 1) for i in range(10)][: 10 + step + 1]:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(out=tmp_path / "b", progress=Told(), **settings)
    state = RunFolder(tmp_path / "b").load()
    assert state is not None
    assert (state["epoch"], state["step"]) == (1, step)
    resume(tmp_path / "b", progress=Told())
    assert begun == [(10, 0), (10, 10 + step)]
    # Of the interrupted step nothing was saved, so it is made twice.
    assert len(made) == 2 * 10 + 1
    assert_same(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow
def test_ctrl_c_saves_says_how_to_go_on_and_exits_with_130(tmp_path: Path) -> None:
    arguments = ["--data", "digits", "--preset", "tiny", "--epochs", "60", "--threads", "1", "--channels", "4"]
    command = [sys.executable, "-m", "nasight", "search", "--out", str(tmp_path / "r"), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "r" / "history.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert f"nasight search --resume {tmp_path / 'r'}" in err
    assert "Traceback" not in err
    state = RunFolder(tmp_path / "r").load()
    assert state is not None
    assert state["epoch"] >= 1


@pytest.mark.slow
def test_a_full_disk_is_said_and_the_checkpoint_before_it_stays_good(nursery: Nursery, tmp_path: Path) -> None:
    class Full(Progress):
        """From the second epoch on the kernel refuses files of more than a thousand bytes."""

        def epoch(self, row: Any) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(RunError, match=r"cannot write .*File too large; what was there before is intact"):
            search(out=tmp_path / "a", progress=Full(), **SETTINGS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    state = RunFolder(tmp_path / "a").load()
    assert state is not None
    assert state["epoch"] == 1
    resume(tmp_path / "a")
    assert nursery.attempt(tmp_path / "b", new=True, settings=SETTINGS, kill_after=None) == 0
    assert_same(tmp_path / "a", tmp_path / "b")


class StopAfterOne(Progress):
    def epoch(self, row: Any) -> None:
        raise KeyboardInterrupt


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    with pytest.raises(KeyboardInterrupt):
        search(out=tmp_path / "r", progress=StopAfterOne(), **SETTINGS)
    return tmp_path / "r"


@pytest.mark.slow
def test_resuming_on_other_data_is_refused(stopped: Path) -> None:
    x, y = torch.rand(300, 1, 8, 8), torch.arange(300) % 10
    with pytest.raises(RequestError, match="was searched on other data"):
        resume(stopped, data=(x, y))


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
def test_a_damaged_checkpoint_is_refused_in_a_sentence(stopped: Path, damage: str) -> None:
    (checkpoint,) = stopped.glob("checkpoint-*.pt")
    content = bytearray(checkpoint.read_bytes())
    if damage == "remove":
        checkpoint.unlink()
    else:
        content[len(content) // 2] ^= 1
        checkpoint.write_bytes(content[: len(content) // 3] if damage == "truncate" else content)
    with pytest.raises(RequestError, match=r"checkpoint .* is damaged|cannot read the checkpoint"):
        resume(stopped)


@pytest.mark.slow
def test_a_second_process_may_not_write_the_same_run(stopped: Path) -> None:
    with RunFolder(stopped).writing(), pytest.raises(RequestError, match="another process is writing"):
        resume(stopped)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is not a run"):
        resume(tmp_path)


@pytest.mark.slow
def test_resuming_a_finished_run_returns_it_as_it_is(tmp_path: Path) -> None:
    run = search(out=tmp_path / "r", **{**SETTINGS, "epochs": 1})
    before = (tmp_path / "r" / "result.json").read_bytes()
    assert resume(run.path).result == run.result
    assert (tmp_path / "r" / "result.json").read_bytes() == before
