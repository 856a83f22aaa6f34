"""What a find has decided and measured, line by line: a resumed one decides the same again without deciding anew."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nasight.errors import RequestError
from nasight.runs import JournalLine, append, checked_object, read_lines
from nasight.studies.finding._race import Outcome

NAME = "journal.jsonl"
FORGOTTEN = "forgotten"
"""The key of a line that takes another one back."""


class Journal:
    """Values by key, in a file that grows by a line for each; a line that a kill cut off is left out.

    Whatever depends on a clock goes through `decide`: the first call computes and keeps it, later ones read it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._values: dict[str, Any] = {}
        self.read()

    def read(self) -> None:
        """Take what the file holds now."""
        if self.path.exists():
            rows = read_lines(self.path, lambda value, what: checked_object(value, JournalLine, what))
            self._values = {}
            for row in rows:
                self._take(row["key"], row["value"])

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(key, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def put(self, key: str, value: Any) -> None:
        """Keep a value; it is on the disk when this returns."""
        line = json.dumps({"key": key, "value": value}, allow_nan=False) + "\n"
        append(self.path, line.encode())
        self._take(key, json.loads(line)["value"])

    def forget(self, key: str) -> None:
        """Let `decide` decide anew."""
        if key in self._values:
            self.put(FORGOTTEN, key)

    def _take(self, key: str, value: Any) -> None:
        if key == FORGOTTEN:
            self._values.pop(value, None)
        else:
            self._values[key] = value

    def decide(self, key: str, value: Callable[[], Any]) -> Any:
        """The value that was decided before, or this one, which is then kept."""
        if key not in self._values:
            self.put(key, value())
        return self._values[key]


def outcome_to_json(outcome: Outcome | None) -> dict[str, Any] | None:
    """An outcome as plain values; the rows it got right take a bit each, scores four bytes."""
    if outcome is None:
        return None
    rows = None
    if outcome.right is not None:
        if outcome.right.dtype == bool:
            rows = {"count": len(outcome.right), "bits": _text(np.packbits(outcome.right))}
        else:
            rows = {"count": len(outcome.right), "floats": _text(outcome.right.astype("<f4"))}
    return {"accuracy": outcome.accuracy, "seconds": outcome.seconds, "right": rows}


def kept_outcomes(folder: Path, keys: Iterable[str]) -> list[Outcome]:
    """The outcomes of trainings that a find in a folder has kept, by the keys of their requests."""
    journal = Journal(folder)
    outcomes = (outcome_from_json(journal[key]) for key in keys)
    return [outcome for outcome in outcomes if outcome is not None]


def _text(values: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


def outcome_from_json(value: Any) -> Outcome | None:
    """What `outcome_to_json` made."""
    if value is None:
        return None
    rows = value["right"]
    right: np.ndarray[Any, Any] | None = None
    if rows is not None:
        kind = "bits" if "bits" in rows else "floats"
        text = rows.get(kind) or ""
        # Four letters hold three bytes; a count beyond that would take memory for rows that are not there.
        if len(text) % 4 or rows["count"] > 6 * len(text):
            raise RequestError(f"{NAME} is damaged: it has other rows of a training than it counts")
        content = np.frombuffer(base64.b64decode(text), np.uint8 if kind == "bits" else "<f4")
        right = np.unpackbits(content, count=rows["count"]).astype(bool) if kind == "bits" else content.astype(float)
    return Outcome(float(value["accuracy"]), right, float(value["seconds"]))
