"""The checkpoints of a run: the last two, and state.json, which says what belongs to them."""

from __future__ import annotations

import hashlib
import io
import logging
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from pydantic import BaseModel

from nasight.errors import RequestError
from nasight.memory import check_room
from nasight.runs._files import checked_object, read_bytes, read_object, write_atomic, write_json
from nasight.runs._schemas import StateFile

NAME = "state.json"
LOG = logging.getLogger("nasight")


class Checkpoints:
    """The checkpoints in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loaded_history: dict[str, Any] | None = None
        """What the checkpoint that was loaded says of the history; None in folders of version 0.1."""

    def state(self) -> dict[str, Any] | None:
        """state.json, checked."""
        path = self.folder / NAME
        return read_object(path, StateFile) if path.exists() else None

    def save(self, state: Mapping[str, Any], mark: str, history: Mapping[str, Any]) -> None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        content = buffer.getvalue()
        name = f"checkpoint-{mark}.pt"
        before = self._last()
        write_atomic(self.folder / name, content)
        found = {"checkpoint": name, "sha256": hashlib.sha256(content).hexdigest(), "mark": mark, "history": history}
        if before is not None and before["checkpoint"] != name:
            found["before"] = before
        write_json(self.folder / NAME, found)
        self._tidy({name, *([before["checkpoint"]] if before else [])})

    def _last(self) -> dict[str, Any] | None:
        """The checkpoint that counts now; of a damaged state.json nothing is kept."""
        try:
            state = self.state()
        except RequestError:
            return None
        keys = ("checkpoint", "sha256", "mark", "history")
        return None if state is None else {key: state[key] for key in keys if key in state}

    def finish(self, result: bytes) -> None:
        """Write the result, tied to the last checkpoint, which stays alone."""
        last = self._last()
        if last is not None:
            write_json(self.folder / NAME, {**last, "result": hashlib.sha256(result).hexdigest()})
        write_atomic(self.folder / "result.json", result)
        if last is not None:
            self._tidy({last["checkpoint"]})

    def _tidy(self, kept: set[str]) -> None:
        for pattern in ("checkpoint-*.pt", ".*.new"):
            for path in self.folder.glob(pattern):
                if path.name not in kept:
                    with suppress(OSError):
                        path.unlink(missing_ok=True)

    def load(self, schema: type[BaseModel] | None = None, *, only_last: bool) -> dict[str, Any] | None:
        """The last checkpoint; where it is damaged, the one before it, and a word about that."""
        state = self.state()
        if state is None:
            return None
        try:
            return self._read(state, schema)
        except RequestError as error:
            before = state.get("before")
            if only_last or before is None:
                raise
            found = self._read(before, schema)
            LOG.warning("%s; resuming from the checkpoint before it", error)
            return found

    def _read(self, entry: Mapping[str, Any], schema: type[BaseModel] | None) -> dict[str, Any]:
        path = self.folder / str(entry["checkpoint"])
        try:
            content = read_bytes(path, None)
        except RequestError as error:
            raise RequestError(f"cannot read the checkpoint: {error}") from error
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise RequestError(f"the checkpoint {path} is damaged: its checksum is not the one in state.json")
        found = checked_object(_tensors(content, path), schema, f"the checkpoint {path}")
        self.loaded_history = entry.get("history")
        return found


def _tensors(content: bytes, path: Path) -> dict[str, Any]:
    """Tensors and plain values; anything else in a checkpoint is refused, and none of it is run."""
    try:
        # Stored as they are: a compressed file would be another's, and could be larger than it looks.
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        check_room(size, f"the checkpoint {path}")
        loaded = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    except RequestError:
        raise
    except MemoryError:
        raise RequestError(f"the checkpoint {path} needs more memory than there is") from None
    except (UnpicklingError, RuntimeError, EOFError, zipfile.BadZipFile) as error:
        raise RequestError(f"the checkpoint {path} is damaged: it holds something else than tensors") from error
    except Exception as error:
        # torch.load raises whatever the bytes lead it to: KeyError, AttributeError, struct.error and more.
        raise RequestError(f"the checkpoint {path} is damaged: {type(error).__name__}") from error
    if not isinstance(loaded, dict):
        raise RequestError(f"the checkpoint {path} is damaged: it holds {type(loaded).__name__}, not named values")
    return loaded
