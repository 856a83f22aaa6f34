"""Shortages: a full disk, a disk that cannot be written, little memory, few files, a clock that jumps."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from faults.jobs import FaultJob, _search, _train, contents, searches
from faults.nursery import Ending, forked
from nasight.errors import RequestError, RunError

NOBODY = 65534


@dataclass(frozen=True)
class Shortage:
    """A fault, and whether it was survived: a sentence, nothing lost, and afterwards the same result."""

    name: str
    survived: bool | None
    """None: it cannot be made on this machine."""
    why: str = ""


def all_shortages(place: Path) -> list[Shortage]:
    """Every fault; `place` has the real folders of `make_bases`."""
    return [
        *full_disks(),
        read_only(place),
        few_files(),
        little_memory(),
        clock(10**9),
        clock(-(10**9)),
        many_rows(),
    ]


def _said(ending: Ending) -> bool:
    """Whether a piece of work ended, or failed by a sentence of ours."""
    return ending.status == 0 and (ending.value is None or isinstance(ending.value, str))


def _sentence(work: Callable[[], Any]) -> Callable[[], str | None]:
    """The work, whose errors of ours are its value."""

    def told() -> str | None:
        try:
            work()
        except (RequestError, RunError, MemoryError, OSError) as error:
            return str(error) or type(error).__name__  # the command line ends with these in one sentence
        return None

    return told


@contextmanager
def _tmpfs(size: str) -> Iterator[Path | None]:
    """A disk of this size; None where it cannot be made."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True)
        if made.returncode:
            yield None
            return
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


def full_disks() -> list[Shortage]:
    """A disk that fills up while a command writes; what is there is resumed on a larger one."""
    jobs = {"search": next(searches()), "train": FaultJob("train", "one seed", _train)}
    sizes = ("64k", "128k", "256k", "1m", "3m")
    return [_full(f"{name} on a disk of {size}", job, size) for name, job in jobs.items() for size in sizes]


def _full(name: str, job: FaultJob, size: str) -> Shortage:
    with tempfile.TemporaryDirectory() as folder, _tmpfs(size) as disk:
        if disk is None:
            return Shortage(name, None, "tmpfs cannot be mounted here")
        whole, run = Path(folder) / "whole", Path(folder) / "run"
        forked(lambda: job.work(whole))
        (disk / "ballast").write_bytes(bytes(int(0.3 * shutil.disk_usage(disk).total)))
        first = forked(_sentence(lambda: job.work(disk / "run")))
        if not _said(first):
            return Shortage(name, False, str(first.error)[-300:])
        if (disk / "run").is_dir():
            shutil.copytree(disk / "run", run)
        second = forked(lambda: job.work(run))
        same = second.status == 0 and forked(lambda: contents(run)).value == forked(lambda: contents(whole)).value
        return Shortage(name, same, "" if same else str(second.error)[-300:])


def read_only(place: Path) -> Shortage:
    """Explaining a run in a folder that cannot be written: it is told all the same."""
    with tempfile.TemporaryDirectory() as folder:
        run, other = Path(folder) / "run", Path(folder) / "other"
        shutil.copytree(place / "search", run)
        shutil.copytree(place / "search", other)
        for path in (run / "trust.json", run / "report.html"):
            path.unlink(missing_ok=True)
        Path(folder).chmod(0o755)
        for path in (run, *run.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)

        def work() -> tuple[int, str]:
            from faults.strangers import _command

            # What is imported late is imported now: another user may not be able to read this Python.
            _command(["explain", str(other), "--examples", "8"], Path("/"))
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            return _command(["explain", str(run), "--examples", "8"], Path("/"))

        ending = forked(work)
        for path in (run, *run.rglob("*")):
            path.chmod(0o755)
        told = ending.status == 0 and ending.value[0] == 0 and "decisions safe" in ending.value[1]
        kept = told and "could not be kept" in ending.value[1]
        return Shortage("explain on a read-only folder", kept, "" if kept else str(ending.error or ending.value)[-300:])


def few_files() -> Shortage:
    """A limit on open files that is too low."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"

        def work() -> Any:
            used = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 16
            resource.setrlimit(resource.RLIMIT_NOFILE, (used, used))
            return _sentence(lambda: _search("gaea-darts", "erm", run))()

        first = forked(work)
        second = forked(lambda: _search("gaea-darts", "erm", run))
        good = _said(first) and second.status == 0
        return Shortage("too few open files", good, "" if good else str(first.error or second.error)[-300:])


def little_memory() -> Shortage:
    """An array that is larger than `ulimit -v` allows."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large.npz"
        np.savez_compressed(file, x=np.zeros((600_000, 20, 20), np.uint8), y=np.arange(600_000) % 2)

        def work() -> tuple[int, str]:
            from faults.strangers import _command

            pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (pages + 150 * 2**20, pages + 150 * 2**20))
            words = ["search", "--data", str(file), "--preset", "tiny", "--out", str(Path(folder) / "run")]
            return _command(words, Path(folder))

        ending = forked(work)
        said = ending.status == 0 and ending.value[0] in (1, 2) and "memory" in ending.value[1]
        good = said and ending.value[1].count("\n") == 1
        return Shortage("data larger than the memory", good, "" if good else str(ending.error or ending.value)[-300:])


def clock(jump: int) -> Shortage:
    """A clock that jumps by decades between two parts of a run."""
    with tempfile.TemporaryDirectory() as folder:
        whole, run = Path(folder) / "whole", Path(folder) / "run"
        job = next(searches())

        def jumped() -> None:
            real, steady = time.time, time.monotonic
            time.time = lambda: real() + jump
            time.monotonic = lambda: steady() + abs(jump)
            job.work(run)

        forked(lambda: job.work(whole))
        forked(lambda: job.work(run), after=0.25)
        ending = forked(jumped)
        same = ending.status == 0 and forked(lambda: contents(run)).value == forked(lambda: contents(whole)).value
        return Shortage(f"a clock {'ahead' if jump > 0 else 'behind'}", same, str(ending.error or "")[-300:])


def many_rows() -> Shortage:
    """A history of 20,000 rows: adding a row takes no longer than at the start."""
    from nasight.runs import RunFolder

    def work() -> float:
        with tempfile.TemporaryDirectory() as folder:
            run = RunFolder.create(Path(folder) / "run", kind="race", about={"settings": {}})
            started = time.perf_counter()
            for index in range(20):
                run.append_history({"index": index})
            first = time.perf_counter() - started
            run.append_history(*({"index": index} for index in range(20_000)))
            started = time.perf_counter()
            for index in range(20):
                run.append_history({"index": index})
            return (time.perf_counter() - started) / first

    ending = forked(work)
    good = ending.status == 0 and ending.value < 10
    return Shortage("a row after 20,000 others", good, str(ending.error or ending.value))
