"""`track="tensorboard"`: the history of a search as an event file in RUN/tensorboard, written while it runs."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import torch

from nasight.errors import RequestError, RunError
from nasight.runs import RunFolder
from nasight.searching._progress import Progress, Together
from nasight.searching._settings import SearchSettings
from nasight.spaces import Group

TRACKERS = ("tensorboard",)
FOLDER = "tensorboard"
ENDING = "nasight"


def check_track(track: str | None) -> None:
    """Refuse a tracker that does not exist or is not installed."""
    if track is None:
        return
    if track not in TRACKERS:
        raise RequestError(f"track must be {' or '.join(TRACKERS)}, got {track!r}")
    if find_spec("tensorboard") is None:
        raise RequestError("track 'tensorboard' needs the package tensorboard: pip install 'nasight[track]'")


def tracked(progress: Progress | None, track: str | None, run: Path, groups: tuple[Group, ...]) -> Progress:
    """`progress`, and beside it the tracker asked for."""
    told = progress or Progress()
    return told if track is None else Together(told, TensorBoard(run, groups))


class TensorBoard(Progress):
    """One event file with one step per epoch: `accuracy/*`, `loss/*`, `entropy`, `drop`, `rate/*`, every weight.

    The history is the state. A resumed search writes the epochs behind it again, from history.jsonl, into a new file
    and removes the old one: no epoch is there twice or missing, whenever the search was stopped.
    """

    def __init__(self, run: Path, groups: tuple[Group, ...]) -> None:
        self.run, self.groups = run, groups
        self.file: BinaryIO | None = None

    def begin(self, settings: SearchSettings, steps: int, done: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog

        folder = self.run / FOLDER
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{ENDING}"
        try:
            folder.mkdir(exist_ok=True)
            before = [path for path in folder.glob(f"events.out.tfevents.*.{ENDING}") if path.name != name]
            self.file = (folder / name).open("wb")
            self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
            # A viewer that shows the old file forgets what it has read.
            self._write(Event(wall_time=time.time(), step=0, session_log=SessionLog(status=SessionLog.START)))
            self._write(Event(wall_time=time.time(), summary=_summaries().custom_scalars(self._charts())))
            for row in RunFolder(self.run).history[: done // steps]:
                self.epoch(row)
            for path in before:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise _not_written(folder, error) from error

    def epoch(self, row: Mapping[str, Any]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        made, step, now = _summaries(), row["epoch"] + 1, time.time()
        try:
            for tag, value in self._scalars(row):
                self._write(Event(wall_time=now, step=step, summary=made.scalar(tag, value)))
            self._write(Event(wall_time=now, step=step, summary=made.text("architecture", f"`{row['architecture']}`")))
            if self.file is not None:
                self.file.flush()
        except OSError as error:
            raise _not_written(self.run / FOLDER, error) from error

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def _write(self, event: Any) -> None:
        from torch.utils.tensorboard import RecordWriter

        RecordWriter(self.file).write(event.SerializeToString())

    def _scalars(self, row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        for key, value in row.items():
            part, _, kind = key.rpartition("_")
            if kind in ("accuracy", "loss") and value is not None:
                yield f"{kind}/{part}", value
        yield "entropy", row["entropy"]
        if row.get("drop") is not None:
            yield "drop", row["drop"]
        yield "rate/weights", row["lr"]
        yield "rate/architecture", row["arch_lr"]
        for group in self.groups:
            rows = group.split(torch.tensor(row["weights"][group.name], dtype=torch.float64))
            for name, options, weights in zip(group.rows, group.options, rows, strict=True):
                for option, weight in zip(options, weights.tolist(), strict=True):
                    yield f"weights/{group.name}/{name}/{option}", weight

    def _charts(self) -> dict[str, dict[str, list[Any]]]:
        """For the page CUSTOM SCALARS: one chart a decision, with a line an option."""
        return {
            group.name: {
                name: ["Multiline", [f"^{re.escape(f'weights/{group.name}/{name}/')}.*$"]] for name in group.rows
            }
            for group in self.groups
        }


def _summaries() -> Any:
    """torch's makers of summaries; they have no types."""
    return import_module("torch.utils.tensorboard.summary")


def _not_written(folder: Path, error: OSError) -> RunError:
    return RunError(f"cannot write {folder}: {error.strerror}; the run is intact, resume it without --track")
