"""A run is a folder, and the folder is the state: it can be killed, copied, resumed and read.

    run.json         what was asked for: settings, versions, data fingerprint
    history.jsonl    one line per epoch
    state.json       which checkpoint counts, and its checksum; replacing this file is what commits a checkpoint
    checkpoint-*.pt  tensors and counters (read with weights_only=True)
    result.json      what was found

Every file is written beside its place, flushed to disk and moved there: a reader sees the old one or the new one.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nasight.errors import RequestError
from nasight.runs._files import read_json, write_atomic, write_json
from nasight.runs._lock import locked
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
    """The files of one run; knows nothing of what they mean."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, *, kind: str, about: Mapping[str, Any], overwrite: bool = False) -> RunFolder:
        """A new run; an existing one is refused unless `overwrite`, and nothing but a run is ever overwritten."""
        folder = cls(path)
        if folder.path.exists() and (not folder.path.is_dir() or folder._used()):
            if not (folder.path / "run.json").is_file():
                raise RequestError(f"{folder.path} exists and is not a run; choose another --out")
            if not overwrite:
                raise RequestError(
                    f"{folder.path} already holds a run; resume it with --resume {folder.path}, or choose another --out"
                )
            shutil.rmtree(folder.path)
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(f"cannot make the folder {folder.path}: {error.strerror}") from error
        created = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(
            folder.path / "run.json",
            {"format": FORMAT, "kind": kind, "created": created, "versions": versions(), **about},
        )
        return folder

    def _used(self) -> bool:
        """Whether the folder holds anything but what a first write left when it was killed."""
        return any(not (f.name.startswith(".run.json.") and f.name.endswith(".new")) for f in self.path.iterdir())

    @classmethod
    def open(cls, path: str | Path, *, kind: str) -> RunFolder:
        folder = cls(path)
        if not (folder.path / "run.json").is_file():
            raise RequestError(f"{folder.path} is not a run: it has no run.json")
        about = folder.about
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise RequestError(f"{folder.path}/run.json is not of format {FORMAT}")
        if about.get("kind") != kind:
            raise RequestError(f"{folder.path} is a {about.get('kind')!r} run, not a {kind!r} run")
        return folder

    @classmethod
    def create_or_open(cls, path: str | Path, *, kind: str, holds: str, settings: Mapping[str, Any]) -> RunFolder:
        """The run of these settings, new or as it was left; one of other settings is refused."""
        if not (Path(path) / "run.json").is_file():
            return cls.create(path, kind=kind, about={"settings": settings})
        folder = cls.open(path, kind=kind)
        before = folder.about.get("settings", {})
        for key, value in settings.items():
            if before.get(key) != value:
                raise RequestError(
                    f"{path} holds {holds} with {key} {before.get(key)!r}, not {value!r}; choose another --out"
                )
        return folder

    @property
    def about(self) -> dict[str, Any]:
        about: dict[str, Any] = read_json(self.path / "run.json")
        return about

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Only one process writes a run; the lock goes with the process, however it ends."""
        with locked(self.path):
            yield

    @property
    def history(self) -> list[dict[str, Any]]:
        path = self.path / "history.jsonl"
        if not path.exists():
            return []
        try:
            return [json.loads(line) for line in path.read_text().splitlines()]
        except json.JSONDecodeError as error:
            raise RequestError(f"{path} is damaged: {error}") from error

    def write_history(self, rows: Iterable[Mapping[str, Any]]) -> None:
        write_atomic(self.path / "history.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())

    @property
    def result(self) -> dict[str, Any] | None:
        path = self.path / "result.json"
        return read_json(path) if path.exists() else None

    def write_result(self, result: Mapping[str, Any]) -> None:
        write_json(self.path / "result.json", result)

    def save(self, state: Mapping[str, Any], *, mark: str) -> None:
        """Commit a checkpoint; the one before stays until the new one counts."""
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        content = buffer.getvalue()
        name = f"checkpoint-{mark}.pt"
        write_atomic(self.path / name, content)
        write_json(
            self.path / "state.json", {"checkpoint": name, "sha256": hashlib.sha256(content).hexdigest(), "mark": mark}
        )
        for old in self.path.glob("checkpoint-*.pt"):
            if old.name != name:
                old.unlink(missing_ok=True)
        for half in self.path.glob(".*.new"):
            half.unlink(missing_ok=True)

    def load(self) -> dict[str, Any] | None:
        """The last committed checkpoint, or None where there is none yet; damage is refused."""
        if not (self.path / "state.json").exists():
            return None
        state = read_json(self.path / "state.json")
        try:
            path, digest = self.path / Path(str(state["checkpoint"])).name, state["sha256"]
        except (KeyError, TypeError):
            raise RequestError(f"{self.path}/state.json is damaged: it names no checkpoint") from None
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RequestError(f"cannot read the checkpoint {path}: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise RequestError(f"the checkpoint {path} is damaged: its checksum is not the one in state.json")
        loaded: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
        return loaded
