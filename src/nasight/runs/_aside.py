"""A run that another one replaces is moved aside, and dropped when the new one has something to show for itself.

It lies in RUN/.replaced until then. Its run.json goes first and comes back last, so that a folder always tells how far
a move had come when it was killed: a folder without run.json beside a .replaced that has one is moved back.
Only files that a run writes are touched; what else lies in the folder is the user's.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nasight.errors import RequestError, RunError
from nasight.runs._files import ABOUT
from nasight.runs._lock import NAME as LOCK
from nasight.runs._lock import locked

REPLACED = ".replaced"
DROPPED = ".dropped"
FOLDERS = {
    "train", "resolve", "candidates", "scores", "deep", "trials", "tensorboard", "model", "trainings", "searches",
    ".model.old",
}  # fmt: skip
"""Folders that runs have inside their own."""
FILES = re.compile(
    r"run\.json|history\.jsonl|state\.json|result(-\d+)?\.json|checkpoint-[\w-]+\.pt|trust\.json|report\.html|search\.svg"
    r"|summary\.json|inputs\.json|request\.json|scores\.jsonl|race\.json|race\.html|journal\.jsonl|[\w-]+-\d{6}\.json"
    r"|events\.out\.tfevents\..*\.nasight|\.[\w.-]+\.\d+\.new|\.lock"
)
MODEL = {"model.json", "weights.safetensors", "network.py", "network.pt2", "predict.py"}
"""Files that are a run's own only in its model folder."""


def own_files(folder: Path) -> Iterator[Path]:
    """The files of a run and of the runs inside it, relative to its folder; never its lock, which is in use."""
    for place, names, files in os.walk(folder):
        where = Path(place).relative_to(folder)
        if not where.parts:
            names[:] = [name for name in names if name in FOLDERS or re.fullmatch(r"\.model\.\d+\.new", name)]
        for name in sorted(files):
            model = name in MODEL and any("model" in part for part in where.parts)
            if model or (FILES.fullmatch(name) and (where.parts or name != LOCK)):
                yield where / name


def _move(source: Path, target: Path, *, first: str | None = None, last: str | None = None) -> None:
    """Move a run's own files from a folder into another; folders that become empty go too."""
    listed = list(own_files(source))
    listed.sort(key=lambda path: (str(path) != first, str(path) == last, str(path)))
    for path in listed:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).replace(target / path)
    for parent in sorted({p for path in listed for p in path.parents if p.parts}, key=lambda p: -len(p.parts)):
        with suppress(OSError):  # what the user has put there keeps its folder
            (source / parent).rmdir()


def set_aside(folder: Path) -> None:
    """Move the run aside; one that was set aside before stays the one to come back to."""
    _check_idle(folder)
    try:
        if (folder / REPLACED / ABOUT).is_file() and not counts(folder):
            drop(folder)
            return
        forget(folder)
        (folder / REPLACED).mkdir()
        _move(folder, folder / REPLACED, first=ABOUT)
    except OSError as error:
        raise RunError(f"cannot replace the run in {folder}: {error.strerror}; it is intact") from error


def counts(folder: Path) -> bool:
    """Whether a run has come as far as a checkpoint, a result, or, in a find, the first training of its journal."""
    if (folder / "state.json").exists() or (folder / "result.json").exists():
        return True
    journal = folder / "journal.jsonl"
    return journal.is_file() and b'{"key": "training ' in journal.read_bytes()


def _check_idle(folder: Path) -> None:
    """No other process may be writing a run inside this one."""
    for path in own_files(folder):
        if path.name == ABOUT and len(path.parts) > 1:
            try:
                with locked(folder / path.parent):
                    pass
            except RequestError:
                raise RequestError(f"another process is writing {folder / path.parent}") from None


def drop(folder: Path) -> None:
    """Remove the run that lies in the folder, whose run.json goes first."""
    (folder / DROPPED).mkdir(exist_ok=True)
    _move(folder, folder / DROPPED, first=ABOUT)
    shutil.rmtree(folder / DROPPED)


def bring_back(folder: Path) -> None:
    """Drop what replaced a run, and have the run in its place again."""
    drop(folder)
    _move(folder / REPLACED, folder, last=ABOUT)
    shutil.rmtree(folder / REPLACED, ignore_errors=True)


def is_aside(folder: Path) -> bool:
    """Whether a run was set aside and none has taken its place: a move was killed."""
    return not (folder / ABOUT).exists() and (folder / REPLACED / ABOUT).is_file()


def mend(folder: Path) -> None:
    """Finish a move that was killed, in the direction that loses nothing."""
    if not is_aside(folder):
        return
    if (folder / DROPPED).is_dir():
        bring_back(folder)
    else:
        _move(folder / REPLACED, folder, last=ABOUT)
        shutil.rmtree(folder / REPLACED, ignore_errors=True)


def forget(folder: Path) -> None:
    """Drop the run that was set aside: the new one counts."""
    aside = folder / REPLACED
    if aside.is_dir() and not aside.is_symlink():
        with suppress(OSError):
            (aside / ABOUT).unlink(missing_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
