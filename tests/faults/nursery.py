"""Work in processes that may be killed: everything is imported once, and each piece of work is a fork."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

WATCHED = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
SECONDS = 120.0


@dataclass(frozen=True)
class Ending:
    """How a piece of work ended: its exit status (negative: the signal), what it returned or raised, its cost."""

    status: int
    value: Any
    error: str | None
    seconds: float
    memory: int
    """Peak bytes of the process."""

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL


def warm() -> None:
    """Import what the first step of a training imports, so that no child does it again."""
    from faults.jobs import rows, table

    rows(), table()
    import_module("torch._dynamo")
    import_module("nasight.cli")


def forked(work: Callable[[], Any], *, after: float | None = None, limit: float = SECONDS) -> Ending:
    """Do this in a child process; `after` so many seconds it is killed, and after `limit` too, with status -14."""
    handle, name = tempfile.mkstemp()
    os.close(handle)
    Path(name).chmod(0o666)  # the child may become another user
    place, started = Path(name), time.monotonic()
    child = os.fork()
    if child == 0:
        _child(work, place)
    status, usage = _wait(child, started, after, limit)
    seconds = time.monotonic() - started
    content = place.read_bytes()
    place.unlink()
    value, error = pickle.loads(content) if content else (None, None)
    return Ending(status, value, error, seconds, usage.ru_maxrss * 1024)


def waited(process: int) -> float:
    """Seconds for which a process was ready and others had the core: on a shared machine no fault of its own."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _wait(child: int, started: float, after: float | None, limit: float) -> tuple[int, resource.struct_rusage]:
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), usage
        passed = time.monotonic() - started
        if after is not None and passed >= after:
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            return os.waitstatus_to_exitcode(status), usage
        if passed > limit and passed - waited(child) > limit:
            os.kill(child, signal.SIGKILL)
            _, _, usage = os.wait4(child, 0)
            return -signal.SIGALRM, usage
        time.sleep(0.002 if passed < 1 else 0.02)


def _child(work: Callable[[], Any], place: Path) -> None:
    status, value, error = 1, None, None
    try:
        value, status = work(), 0
    except BaseException:
        error = traceback.format_exc()
    try:
        place.write_bytes(pickle.dumps((value, error)))
    finally:
        sys.stdout.flush()
        os._exit(status)


def killed_at(number: int, folder: Path, work: Callable[[], Any]) -> Callable[[], Any]:
    """The work, whose process kills itself at its so-manieth touch of a file in this folder."""

    def doomed() -> Any:
        seen = 0
        here = str(folder)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal seen
            if event in WATCHED and any(isinstance(a, str | os.PathLike) and here in str(a) for a in arguments):
                seen += 1
                if seen == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        return work()

    return doomed


def touches(folder: Path, work: Callable[[], Any]) -> int:
    """How often this work touches files in the folder, done in a child process."""

    def counted() -> int:
        seen = [0]
        here = str(folder)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in WATCHED and any(isinstance(a, str | os.PathLike) and here in str(a) for a in arguments):
                seen[0] += 1

        sys.addaudithook(hook)
        work()
        return seen[0]

    ending = forked(counted)
    if ending.status:
        raise RuntimeError(ending.error or f"ended with {ending.status}")
    return int(ending.value)
