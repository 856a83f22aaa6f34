"""Bad inputs: files that were harmed, data, texts, words and Python values that are wrong.

Each must end in one sentence (exit code 0, 1 or 2; `RequestError` or `RunError`), soon, and without much memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from faults.bases import BASES, readers
from faults.mutations import clean, mutate
from faults.nursery import forked, waited
from nasight.cli import main
from nasight.errors import DataWarning, RequestError, RunError
from nasight.gradients import SlowGradients

MOST_SECONDS = 30
BATCH = 25
Input = tuple[str, Callable[[], Any]]
WARNINGS: dict[type[Warning], Literal["error", "ignore"]] = {
    Warning: "error",
    DeprecationWarning: "ignore",
    PendingDeprecationWarning: "ignore",
    ResourceWarning: "ignore",
    DataWarning: "ignore",
    SlowGradients: "ignore",
}
"""What Python hides from users is ignored here too; so are the warnings that nasight documents."""


@dataclass
class FuzzCount:
    """What came of bad inputs."""

    inputs: int = 0
    tracebacks: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    memory: int = 0

    def add(self, other: FuzzCount) -> None:
        self.inputs += other.inputs
        self.tracebacks += other.tracebacks
        self.hangs += other.hangs
        self.memory = max(self.memory, other.memory)


def command(words: list[str]) -> int:
    """A command in this process; what it prints is dropped."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(words)
        except SystemExit as ended:
            return int(ended.code or 0)
    raise AssertionError("a command ends by SystemExit")


class Hang(BaseException):
    """An input took too long."""


def _limited(seconds: float) -> None:
    """Raise `Hang` after so many seconds, those not counted in which other processes had the core."""
    started, before = time.monotonic(), waited(os.getpid())

    def left() -> float:
        return seconds - (time.monotonic() - started) + (waited(os.getpid()) - before)

    def alarm(*_: object) -> None:
        if left() <= 0:
            raise Hang
        signal.setitimer(signal.ITIMER_REAL, max(0.1, left()))

    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def attempt(call: Callable[[], Any]) -> str | None:
    """What is wrong with how a call ended: None, "hang", or the traceback."""
    _limited(MOST_SECONDS)
    try:
        with warnings.catch_warnings():
            # A warning that is not a sentence of ours would reach the user from the depths of a library.
            for kind, action in WARNINGS.items():
                warnings.simplefilter(action, kind)
            call()
    except (RequestError, RunError):
        pass
    except Hang:
        return "hang"
    except BaseException:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def count(inputs: Iterator[Input], *, batch: int = BATCH) -> FuzzCount:
    """Try inputs, a batch of them in each child process."""
    total, waiting = FuzzCount(), list[Input]()
    for each in inputs:
        waiting.append(each)
        if len(waiting) == batch:
            total.add(_batch(waiting))
            waiting = []
    if waiting:
        total.add(_batch(waiting))
    return total


def _batch(inputs: list[Input]) -> FuzzCount:
    def work() -> list[tuple[str, str]]:
        return [(name, wrong) for name, call in inputs if (wrong := attempt(call)) is not None]

    ending = forked(work, limit=MOST_SECONDS * len(inputs))
    found = FuzzCount(len(inputs), memory=ending.memory)
    if ending.status:
        found.tracebacks.append(f"a process ended with {ending.status}: {ending.error} in {inputs[0][0]}")
        return found
    for name, wrong in ending.value:
        (found.hangs if wrong == "hang" else found.tracebacks).append(f"{name}\n{wrong}")
    return found


def harmed_folders(place: Path, number: int, seed: int = 0) -> Iterator[Input]:
    """Copies of real folders, one file of each harmed, read by one of the commands that read such folders."""
    chance = random.Random(seed)
    for index in range(number):
        base = BASES[index % len(BASES)] if chance.random() < 0.5 else BASES[chance.randrange(3)]
        which = chance.randrange(len(base.commands) + len(base.calls))
        yield f"{base.name} {index} {which}", _harmed(place, base, which, f"{seed} {index}")


def _harmed(place: Path, base: Any, which: int, seed: str) -> Callable[[], Any]:
    def call() -> Any:
        import shutil
        import tempfile

        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            run, out = Path(folder) / "run", Path(folder) / "out"
            shutil.copytree(place / base.name, run)
            out.mkdir()
            what = mutate(run, chance)
            try:
                return readers(base, run, place, out)[which]()
            except (RequestError, RunError):
                return None
            except Exception as error:
                raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
            finally:
                clean(run)

    return call
