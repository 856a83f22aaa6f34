"""A run is a folder, and the folder is the state: it can be killed, copied, resumed and read.

    run.json         what was asked for: settings, versions, data fingerprint, checksums of the user's own code
    history.jsonl    one line per epoch, added at the end
    state.json       which checkpoint counts, the one before it, and the history and the result that belong to them
    checkpoint-*.pt  tensors and counters (read with weights_only=True); the last two
    result.json      what was found
    .replaced/       the run that this one replaces, until this one has a checkpoint

Every file is written beside its place, flushed to disk and moved there: a reader sees the old one or the new one.
Replacing state.json is what commits a checkpoint. A line of history that a kill left behind without a checkpoint is
taken back when the run is resumed.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import torch
from filelock import FileLock

from nasight.errors import RequestError, RunError
from nasight.runs import _aside
from nasight.runs._checkpoints import Checkpoints
from nasight.runs._code import digests_of
from nasight.runs._files import ABOUT, check_inside, checked_object, parse_json, read_bytes, read_object, write_json
from nasight.runs._history import History, Row
from nasight.runs._lock import NAME as LOCK
from nasight.runs._lock import acquire
from nasight.runs._schemas import KINDS, KindOfRun, RunFile
from nasight.version import VERSION

FORMAT = 1


def versions() -> dict[str, str]:
    """What must be the same for a resumed run to give the same bits."""
    return {
        "nasight": VERSION,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }


class RunFolder:
    """The files of one run; knows what they look like, and nothing of what they mean."""

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, str | PathLike):
            raise RequestError(f"a run is named by its folder, got {type(path).__name__} {path!r:.60}")
        self.path = Path(path)
        self._held: FileLock | None = None
        self._made: list[Path] = []
        """The folders that `create` made, the innermost first."""
        self._history = History(self.path / "history.jsonl")
        self._checkpoints = Checkpoints(self.path)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        kind: str,
        about: Mapping[str, Any],
        overwrite: bool = False,
        code: Sequence[str | None] = (),
    ) -> RunFolder:
        """A new run, locked by this process until its `writing` ends.

        An existing one is refused unless `overwrite`, and nothing but a run is ever overwritten. It is moved aside,
        and dropped when the new one has its first checkpoint. `code` names the user's own code that the run is made
        with, as "FILE.py:NAME": its checksums are kept.
        """
        folder = cls(path)
        check_inside(folder.path)
        folder._made = [each for each in (folder.path, *folder.path.parents) if not each.exists()]
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = "exists and is not a run" if folder.path.exists() else f"cannot be made: {error.strerror}"
            raise RequestError(f"the folder {folder.path} {reason}; choose another --out") from error
        sources = digests_of(code)
        folder._held = acquire(folder.path)
        try:
            folder._make_room(overwrite)
            created = datetime.now(UTC).isoformat(timespec="seconds")
            start = {"format": FORMAT, "kind": kind, "created": created, "versions": versions()}
            write_json(folder.path / ABOUT, {**start, **about, **({"sources": sources} if sources else {})})
        except BaseException:
            folder._release()
            raise
        return folder

    def _make_room(self, overwrite: bool) -> None:
        _aside.mend(self.path)
        if not self._used():
            return
        if not (self.path / ABOUT).is_file():
            raise RequestError(f"{self.path} exists and is not a run; choose another --out")
        if not overwrite:
            raise RequestError(
                f"{self.path} already holds a run; "
                f"resume it with --resume {quote(str(self.path))}, replace it with --overwrite, or choose another --out"
            )
        _aside.set_aside(self.path)

    def _used(self) -> bool:
        """Whether the folder holds anything but what a first write left when it was killed."""
        ours = (LOCK, _aside.REPLACED, _aside.DROPPED)
        return any(
            f.name not in ours and not (f.name.startswith(".run.json.") and f.name.endswith(".new"))
            for f in self.path.iterdir()
        )

    def discard(self) -> None:
        """Undo `create` where nothing came of it: the run that was replaced is back, or the folder is as it was."""
        if (self.path / _aside.REPLACED / ABOUT).is_file():
            _aside.bring_back(self.path)
        else:
            _aside.drop(self.path)
            self._release()
            with suppress(OSError):  # what else lies there is the user's
                (self.path / LOCK).unlink(missing_ok=True)
                self.path.rmdir()
                for parent in self._made[1:]:
                    parent.rmdir()

    @classmethod
    def open(cls, path: str | Path, *, kind: str) -> RunFolder:
        """A run that is there; one of another kind is refused."""
        folder = cls(path)
        folder._mend()
        if not (folder.path / ABOUT).is_file():
            raise RequestError(f"{folder.path} is not a run: it has no run.json")
        about = folder.about
        if about.get("kind") != kind:
            inner = sorted(folder.path.glob("searches/*")) if kind == "search" else []
            hint = f"; one of its searches is {inner[0]}" if inner else ""
            raise RequestError(f"{folder.path} is a {about.get('kind')!r} run, not a {kind!r} run{hint}")
        return folder

    @property
    def kind(self) -> str | None:
        """The kind of run that is there; None where there is none."""
        self._mend()
        return str(self.about["kind"]) if (self.path / ABOUT).is_file() else None

    def _mend(self) -> None:
        if _aside.is_aside(self.path):
            lock = acquire(self.path)
            try:
                _aside.mend(self.path)
            except OSError as error:
                raise RunError(f"cannot bring back the run in {self.path}: {error.strerror}") from error
            finally:
                lock.release()

    @classmethod
    def create_or_open(
        cls,
        path: str | Path,
        *,
        kind: str,
        holds: str,
        settings: Mapping[str, Any],
        code: Sequence[str | None] = (),
    ) -> RunFolder:
        """The run of these settings, new or as it was left; one of other settings is refused."""
        if not (Path(path) / ABOUT).is_file():
            return cls.create(path, kind=kind, about={"settings": settings}, code=code)
        folder = cls.open(path, kind=kind)
        before = folder.about.get("settings", {})
        for key, value in settings.items():
            if before.get(key) != value:
                raise RequestError(
                    f"{path} holds {holds} with {key} {before.get(key)!r:.80}, not {value!r:.80}; choose another --out"
                )
        return folder

    @property
    def about(self) -> dict[str, Any]:
        """run.json."""
        path = self.path / ABOUT
        about = read_object(path, RunFile)
        if about["format"] != FORMAT:
            raise RequestError(f"{path} is of format {about['format']!r:.20}, and this version reads format {FORMAT}")
        return checked_object(about, KINDS.get(about["kind"], KindOfRun()).about, path)

    def amend(self, about: Mapping[str, Any]) -> None:
        """Replace run.json."""
        write_json(self.path / ABOUT, about)

    @property
    def _kind(self) -> KindOfRun:
        return KINDS.get(self.about["kind"], KindOfRun()) if (self.path / ABOUT).is_file() else KindOfRun()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Only one process writes a run; the lock goes with the process, however it ends.

        Where the work fails before the new run has a checkpoint, the run that it was to replace is back.
        """
        if self._held is None:
            check_inside(self.path)
            self._held = acquire(self.path)
        try:
            _aside.mend(self.path)
            if not (self.path / ABOUT).is_file():
                raise RequestError(f"{self.path} is not a run: it has no run.json")
            yield
        except BaseException:
            if (self.path / _aside.REPLACED / ABOUT).is_file() and not _aside.counts(self.path):
                _aside.bring_back(self.path)
            raise
        finally:
            self._release()

    def _release(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None

    @property
    def history(self) -> list[Row]:
        """The rows of the history; one that was changed or shortened since its checkpoint is refused."""
        state = self._checkpoints.state()
        return self._history.read(self._kind.row, None if state is None else state.get("history"))

    def write_history(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace the history."""
        self._history.replace(rows)

    def append_history(self, *rows: Mapping[str, Any]) -> None:
        """Add rows to the history."""
        self._history.append(rows)

    def resume_history(self, count: int) -> list[Row]:
        """The `count` rows that belong to the checkpoint that was loaded; later ones are taken back."""
        return self._history.resume(self._kind.row, count, self._checkpoints.loaded_history)

    @property
    def result(self) -> dict[str, Any] | None:
        """result.json, or None before the end; one that does not belong to the checkpoint is refused."""
        path = self.path / "result.json"
        if not path.exists():
            return None
        state = self._checkpoints.state()
        content = read_bytes(path)
        found = checked_object(parse_json(content, path), self._kind.result, path)
        known = None if state is None else state.get("result")
        if known is not None and hashlib.sha256(content).hexdigest() != known:
            raise RequestError(
                f"{path} is damaged: it does not belong to the checkpoint beside it (its checksum is not the one in "
                "state.json)"
            )
        return found

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write what was found; the checkpoint before the last one is needed no more."""
        content = (json.dumps(result, indent=2) + "\n").encode()
        self._checkpoints.finish(content)
        _aside.forget(self.path)

    def save(self, state: Mapping[str, Any], *, mark: str) -> None:
        """Commit a checkpoint; the one before it stays, and serves where the new one is damaged."""
        self._checkpoints.save(state, mark, self._history.record())
        _aside.forget(self.path)

    def load(self) -> dict[str, Any] | None:
        """The last committed checkpoint that is whole, or None where there is none yet.

        Of a finished run only the last one will do, since the result follows from it.
        """
        only_last = (self.path / "result.json").exists()
        return self._checkpoints.load(self._kind.checkpoint, only_last=only_last)
