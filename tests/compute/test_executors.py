import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nasight.compute import map_resumable
from nasight.errors import RequestError, RunError

PARENT = """
from nasight.compute import map_resumable
from pathlib import Path
import os, signal, sys, time

def work(place):
    Path(place).write_text(str(os.getpid()))
    time.sleep(60)

if __name__ == "__main__":
    # A background job of a shell ignores interrupts, and so would all it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    map_resumable(work, sys.argv[1:], workers=2)
"""


def test_results_are_in_the_order_of_the_items_and_what_is_done_is_not_done_again() -> None:
    new: list[int] = []
    results = map_resumable(
        math.factorial, [5, 3, 4, 5], workers=2, done={3: -1}, on_result=lambda item, _: new.append(item)
    )
    assert results == [120, -1, 24, 120]
    assert sorted(new) == [4, 5]


def test_results_arrive_while_others_are_still_at_work() -> None:
    seen: list[float] = []
    with ThreadPoolExecutor(2) as executor:
        map_resumable(time.sleep, [0.3, 0.0], executor=executor, on_result=lambda item, _: seen.append(item))
    assert seen == [0.0, 0.3]


def test_a_single_item_stays_in_this_process() -> None:
    assert map_resumable(lambda _: os.getpid(), ["one"]) == [os.getpid()]


def test_the_first_error_is_raised_and_what_was_finished_before_it_is_delivered() -> None:
    seen: list[float] = []
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match=r"math domain|nonnegative"):
        map_resumable(math.sqrt, [4.0, -1.0, 9.0], executor=executor, on_result=lambda item, _: seen.append(item))
    assert 4.0 in seen
    assert -1.0 not in seen


def test_a_worker_that_dies_is_a_failed_run_and_not_a_hang() -> None:
    with pytest.raises(RunError, match="fewer workers"):
        map_resumable(os._exit, [3, 4], workers=2)


def test_work_that_cannot_be_sent_is_refused_before_processes_start() -> None:
    with pytest.raises(RequestError, match="use 1 worker"):
        map_resumable(lambda x: x, [1, 2], workers=2)


def test_no_workers_are_refused() -> None:
    with pytest.raises(RequestError, match="at least 1 worker, got 0"):
        map_resumable(abs, [1, 2], workers=0)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_however_it_ends(tmp_path: Path, end: signal.Signals) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    places = [tmp_path / "a", tmp_path / "b"]
    source = str(Path(__file__).parents[1] / "src")
    parent = subprocess.Popen(
        [sys.executable, str(script), *map(str, places)],
        env={**os.environ, "PYTHONPATH": source},
        stderr=subprocess.DEVNULL,
    )
    try:
        _until(lambda: all(place.exists() and place.read_text() for place in places), 40)
    finally:
        _end(parent, end)
    assert parent.returncode != 0
    _until(lambda: not any(_alive(int(place.read_text())) for place in places), 20)


def _end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    process.send_signal(how)
    try:
        process.wait(40)
    finally:
        process.kill()
        process.wait()


def _until(condition, seconds: float) -> None:  # type: ignore[no-untyped-def]
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
