"""history.jsonl: rows that are added at the end, and the record that ties them to a checkpoint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from nasight.errors import RequestError
from nasight.runs._files import MOST_LINES, append, checked_object, read_bytes, read_lines, shorten, write_atomic

Row = dict[str, Any]


class History:
    """The rows of a run, on disk; what is written here is counted and summed up as it goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows, self._bytes, self._digest = 0, 0, hashlib.sha256()
        self._counted = False

    def read(self, schema: type[BaseModel] | None, known: Mapping[str, Any] | None) -> list[Row]:
        """All rows; with `known`, the record of a checkpoint, those it is about must be there as they were."""
        content = self._content()
        if known is not None:
            self._check(content, known)
        return read_lines(self.path, lambda value, what: checked_object(value, schema, what), content=content)

    def _content(self) -> bytes:
        return read_bytes(self.path, MOST_LINES) if self.path.exists() else b""

    def _check(self, content: bytes, known: Mapping[str, Any]) -> None:
        there = content[: known["bytes"]]
        if hashlib.sha256(there).hexdigest() != known["sha256"]:
            rows = content.count(b"\n")
            what = f"it has {rows} rows, not {known['rows']}" if rows < known["rows"] else "its rows are others"
            raise RequestError(f"{self.path} is damaged: it does not belong to the checkpoint beside it: {what}")

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        content = _lines(rows)
        write_atomic(self.path, content)
        self._count(content)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._count_once()
        content = _lines(rows)
        append(self.path, content)
        self._add(content)

    def resume(self, schema: type[BaseModel] | None, count: int, known: Mapping[str, Any] | None) -> list[Row]:
        """The first `count` rows; what a kill left behind them is taken back."""
        rows = self.read(schema, known)
        if len(rows) < count:
            raise RequestError(
                f"{self.path} is damaged: it has {len(rows)} rows, and the checkpoint beside it follows {count}"
            )
        content = self._content()
        whole = b"".join(content.splitlines(keepends=True)[:count])
        shorten(self.path, len(whole))
        self._count(whole)
        return rows[:count]

    def record(self) -> dict[str, Any]:
        """What a checkpoint keeps of the history: how much there is of it, and its checksum."""
        self._count_once()
        return {"rows": self._rows, "bytes": self._bytes, "sha256": self._digest.hexdigest()}

    def _count_once(self) -> None:
        if not self._counted:
            content = self._content()
            self._count(content[: content.rfind(b"\n") + 1])

    def _count(self, content: bytes) -> None:
        self._rows, self._bytes, self._digest, self._counted = 0, 0, hashlib.sha256(), True
        self._add(content)

    def _add(self, content: bytes) -> None:
        self._rows += content.count(b"\n")
        self._bytes += len(content)
        self._digest.update(content)


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
