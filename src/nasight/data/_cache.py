"""The cache of decoded rows: a folder for each source with its settings, built once, by one process, then mapped.

KEY/map.json      what it holds; the folder has this name only when it is whole
KEY/*.npy         the arrays
KEY.part/         one that is being built, or whose builder was killed; the next builder goes on with it
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nasight.data._maps import open_map
from nasight.data._row_writer import RowWriter
from nasight.errors import RequestError
from nasight.notes import note

FORMAT = 1
ABOUT, JOURNAL, PART, LOCKS = "map.json", "journal.jsonl", ".part", ".locks"
MARK_SECONDS = 2.0
"""A killed builder loses at most the work of so long."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One source in the cache: its key, what it was made from, its rows and bytes, when, and whether it is whole."""

    key: str
    source: str
    rows: int
    size: int
    made: str
    whole: bool


def cache_folder() -> Path:
    """Where decoded rows are kept: $NASIGHT_CACHE, else this user's cache.

    >>> cache_folder().name
    'maps'
    """
    if os.environ.get("NASIGHT_CACHE"):
        return Path(os.environ["NASIGHT_CACHE"]).expanduser() / "maps"
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("nasight")) / "maps"


def signature(paths: Mapping[str, Path]) -> str:
    """A digest of files by their names, sizes and times, which changes when one of them does; none is read."""
    digest = hashlib.sha256()
    for name, path in paths.items():
        try:
            stat = path.stat()
            seen = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
        except (OSError, ValueError):  # a path with a zero byte is a ValueError
            seen = "missing"
        digest.update(f"{len(name)} {name} {seen};".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class Site:
    """A folder of arrays while it is built. What was marked as done stays done when the builder is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.done = self._read()
        self._waiting: dict[str, Any] = {}
        self._writers: list[RowWriter] = []
        self._last = time.monotonic()

    def rows(self, name: str, shape: tuple[int, ...], dtype: str) -> RowWriter:
        """The array of this name, to be written some rows at a time; one that is there already is gone on with."""
        writer = RowWriter(self.folder / f"{name}.npy", shape, dtype)
        if not writer.continued:
            self.done = {key: value for key, value in self.done.items() if not key.startswith(f"{name} ")}
        self._writers.append(writer)
        return writer

    def mark(self, key: str, value: Any) -> None:
        """Remember that a piece of the work is done: "NAME ...", where NAME is its array."""
        self.done[key] = self._waiting[key] = value
        if time.monotonic() - self._last > MARK_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Bring rows to the disk, then the marks that say so."""
        for writer in self._writers:
            writer.flush()
        with (self.folder / JOURNAL).open("a") as file:
            file.writelines(json.dumps([key, value]) + "\n" for key, value in self._waiting.items())
        self._waiting, self._last = {}, time.monotonic()

    def close(self) -> None:
        """Nothing more is written."""
        for writer in self._writers:
            writer.close()

    def _read(self) -> dict[str, Any]:
        """The marks of an earlier builder; a line that was cut short ends them."""
        found: dict[str, Any] = {}
        path = self.folder / JOURNAL
        for line in path.read_text().splitlines() if path.is_file() else ():
            try:
                key, value = json.loads(line)
            except (ValueError, TypeError):
                break
            found[str(key)] = value
        return found


def cached(what: Mapping[str, Any], source: str, fill: Callable[[Site], Mapping[str, Any]]) -> tuple[Path, Any]:
    """The folder of arrays that `what` describes, built by `fill` if it is not there, and what `fill` said of it.

    Of two processes that ask at once, one builds and the other waits. A request that is refused leaves nothing.

    Parameters
    ----------
    what : plain values that say all that the arrays depend on.
    source : what they were made from, for people.
    fill : writes the arrays into a `Site` and gives plain values to keep with them.
    """
    key = hashlib.sha256(json.dumps([FORMAT, what], sort_keys=True).encode()).hexdigest()[:20]
    root = _writable(cache_folder())
    place = root / key
    about = _about(place)
    if about is None:
        with _only_builder(root, key, source):
            about = _about(place)
            if about is None:
                shutil.rmtree(place, ignore_errors=True)
                about = _build(root, key, source, fill)
    return place, about["values"]


def _build(root: Path, key: str, source: str, fill: Callable[[Site], Mapping[str, Any]]) -> dict[str, Any]:
    part = root / f"{key}{PART}"
    site = None
    try:
        site = Site(part)
        values = dict(fill(site))
        site.flush()
        site.close()
        files = {file.name: file.stat().st_size for file in sorted(part.glob("*.npy"))}
        made = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"format": FORMAT, "source": source, "made": made, "files": files, "values": values}
        (part / ABOUT).write_text(json.dumps(about))
        (part / JOURNAL).unlink(missing_ok=True)
        part.rename(root / key)
    except (RequestError, OSError) as error:
        if site is not None:
            site.close()
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RequestError(
                f"there is no room for the decoded rows of {source} in {root}; name a larger place with NASIGHT_CACHE"
            ) from error
        raise
    finally:
        if site is not None:
            site.close()
    return about


def _about(place: Path) -> dict[str, Any] | None:
    """What a whole folder says of itself; None for one that is not there or was damaged."""
    try:
        about = json.loads((place / ABOUT).read_text())
        whole = all((place / name).stat().st_size == size for name, size in about["files"].items())
        return dict(about) if whole and about["format"] == FORMAT and "values" in about else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


@contextmanager
def _only_builder(root: Path, key: str, source: str) -> Iterator[None]:
    lock = FileLock(root / LOCKS / key)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        note(f"another process decodes {source}: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


_FALLBACK: list[tempfile.TemporaryDirectory[str]] = []


def _writable(root: Path) -> Path:
    """The cache folder; where it cannot be written, one that goes with this process."""
    try:
        (root / LOCKS).mkdir(parents=True, exist_ok=True)
        if os.access(root, os.W_OK):
            return root
    except OSError:
        pass
    if not _FALLBACK:
        _FALLBACK.append(tempfile.TemporaryDirectory(prefix="nasight-maps-"))
        note(f"the cache {root} cannot be written: decoded rows are kept while this process lasts (NASIGHT_CACHE)")
    place = Path(_FALLBACK[0].name)
    (place / LOCKS).mkdir(exist_ok=True)
    return place


def cache_entries() -> list[CacheEntry]:
    """What is in the cache, the largest first."""
    found = []
    for place in sorted(cache_folder().glob("*")):
        if place.name.startswith(".") or not place.is_dir():
            continue
        about = _about(place)
        size = sum(file.stat().st_size for file in place.glob("*") if file.is_file())
        arrays = {} if about is None else {n: open_map(place / n) for n in about["files"] if n.endswith("_x.npy")}
        rows = sum(len(array) for array in arrays.values())
        source, made = ("", "") if about is None else (str(about.get("source")), str(about.get("made")))
        found.append(CacheEntry(place.name, source, rows, size, made, about is not None))
    return sorted(found, key=lambda entry: -entry.size)


def clear_cache(key: str | None = None) -> list[CacheEntry]:
    """Remove one entry of the cache, or all; those that are being built stay. What was removed is returned.

    Parameters
    ----------
    key : the beginning of the key of an entry, as `cache_entries` gives it, or its whole source; all by default.
    """
    root, removed = cache_folder(), []
    chosen = [e for e in cache_entries() if key is None or e.key.startswith(key) or e.source == key]
    if key is not None and not chosen:
        raise RequestError(f"the cache {root} has no entry {key!r}; `nasight data cache` lists them")
    for entry in chosen:
        lock = FileLock(root / LOCKS / entry.key.removesuffix(PART))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        try:
            shutil.rmtree(root / entry.key)
            removed.append(entry)
        finally:
            lock.release()
    return removed
