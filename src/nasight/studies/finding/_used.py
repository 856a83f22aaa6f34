"""What each stage of a find took, from the clock in its journal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STAGES = ("recipe", "propose", "race", "answer")


def used_seconds(journal: Path, leg: int, recipes: int) -> dict[str, float]:
    """Seconds of the stages of a leg; those that the journal does not tell are left out.

    Parameters
    ----------
    journal : the file.
    leg : which budget's.
    recipes : trainings of its first stage, which measures the speed too; 0: it had none.
    """
    ends, clock, trained, inside = dict[str, float](), 0.0, 0, False
    for key, value in _lines(journal):
        if key == f"began {leg}":
            inside, clock = True, float(value)
            ends["start"] = clock
        elif key == f"began {leg + 1}":
            break
        elif not inside:
            continue
        elif key == "clock":
            clock = float(value)
            if recipes and trained >= recipes:
                ends.setdefault("recipe", clock)
        elif key.startswith("training "):
            trained += 1
        elif key == f"scores {leg}":
            ends["propose"] = clock
        elif key == f"epochs {leg}":
            ends["race"] = clock
    if "race" in ends:
        ends["answer"] = clock
    found, before = dict[str, float](), ends.get("start", 0.0)
    for stage in STAGES:
        if stage in ends:
            found[stage], before = ends[stage] - before, ends[stage]
    return found


def _lines(journal: Path) -> Iterator[tuple[str, Any]]:
    """Keys and values in the order in which they were written; a damaged line is left out."""
    content = journal.read_text("utf-8") if journal.is_file() else ""
    for line in content.splitlines():
        try:
            row = json.loads(line)
            yield str(row["key"]), row["value"]
        except (ValueError, KeyError, TypeError):
            continue
