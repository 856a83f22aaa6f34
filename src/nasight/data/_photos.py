"""Photos of any sizes and kinds, decoded once into arrays of the working resolution."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from nasight.data._arrays import from_arrays
from nasight.data._cache import Site, cached, signature
from nasight.data._dataset import Dataset
from nasight.data._decode import Probe, check_fit, decode, learned_fit, probe
from nasight.data._maps import open_map
from nasight.data._photo_list import PhotoList
from nasight.data._row_writer import RowWriter
from nasight.errors import DataWarning, RequestError
from nasight.notes import note, progress

CHUNK = 64
"""Photos that are decoded and written together."""
USUAL_RESOLUTION = 64
"""At most so many pixels per side where photos differ in size and nothing is said."""
LEAST_RESOLUTION, MOST_RESOLUTION = 4, 1024
BROKEN_SHARE, BROKEN_FEW = 0.05, 3
"""More broken files than this share, and than these few, are no accident."""
NAMED = 8
"""So many files or classes are named in a sentence."""
Piece = TypeVar("Piece")
Found = TypeVar("Found")
Files = list[tuple[Path, int]]


@dataclass(frozen=True)
class Reading:
    """How photos become examples.

    Parameters
    ----------
    resolution : pixels per side; by default the size of the photos if all have one, else at most 64.
    fit : "crop", "inner", "pad" or "stretch", for photos of other proportions.
    strict : refuse a broken file, where otherwise a few are named and left out.
    """

    resolution: int | None = None
    fit: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        size = self.resolution
        if size is not None and not (type(size) is int and LEAST_RESOLUTION <= size <= MOST_RESOLUTION):
            raise RequestError(f"the resolution must be {LEAST_RESOLUTION} to {MOST_RESOLUTION} pixels, got {size!r}")
        if self.fit is not None:
            check_fit(self.fit)

    def kept(self) -> dict[str, Any]:
        """What a run keeps to read the same photos again."""
        return {name: value for name in ("resolution", "fit") if (value := getattr(self, name)) is not None}


def read_photos(listed: PhotoList, source: str, reading: Reading) -> Dataset:
    """The data set of photos, from the cache if they were decoded before; broken ones are named."""
    fit = reading.fit or "crop"
    what = {"photos": signature(listed.names()), "resolution": reading.resolution, "fit": fit}
    place, about = cached(what, source, lambda site: _fill(site, listed, reading.resolution, fit, reading.strict))
    broken = [(str(path), str(why)) for path, why in about["broken"]]
    if broken and reading.strict:
        raise _refused(broken[:1], 0)
    arrays: list[Any] = []
    for part in ("train", "test") if about["test"] else ("train",):
        arrays += [open_map(place / f"{part}_x.npy"), np.load(place / f"{part}_y.npy")]
    summary = "; ".join([str(about["summary"]), *listed.notes])
    if broken:
        _tell_broken(broken)
    name = listed.root.resolve().name
    data = from_arrays(name, tuple(arrays), source=source, classes=listed.classes)
    # Where no photos judge, new ones are shown as those that were learned from.
    shown = fit if about["test"] else learned_fit(fit)
    return replace(data, reading=reading.kept(), fit=shown, summary=summary)


def _fill(site: Site, listed: PhotoList, resolution: int | None, fit: str, strict: bool) -> dict[str, Any]:
    parts: dict[str, Files] = {"train": listed.train, **({"test": listed.test} if listed.test else {})}
    everything = [path for files in parts.values() for path, _ in files]
    limit = 0 if strict else max(BROKEN_FEW, int(BROKEN_SHARE * len(everything)))
    # Warnings are switched off here, for all threads: a filter inside of one would not be its own.
    with warnings.catch_warnings(action="ignore"), ThreadPoolExecutor(_cores()) as pool:
        heads = _probed(pool, everything, limit)
        seen = [head for head in heads if isinstance(head, Probe)]
        shape = _shape(seen, resolution)
        broken: list[tuple[str, str]] = []
        for part, files in parts.items():
            writer = site.rows(f"{part}_x", (len(files), *shape), "uint8")
            shown = fit if part == "test" else learned_fit(fit)
            wrong = _decoded(pool, site, writer, part, files, shown, limit - len(broken))
            broken += [(str(files[row][0]), why) for row, why in wrong]
            writer.drop([row for row, _ in wrong])
            lost = {row for row, _ in wrong}
            labels = np.array([label for row, (_, label) in enumerate(files) if row not in lost], np.int64)
            if not len(labels):
                raise RequestError(f"no photo of the {part} part of {listed.root} can be read")
            np.save(site.folder / f"{part}_y.npy", labels)
    summary = _summary(listed, seen, shape, fit, {path for path, _ in broken}, resolution)
    return {"broken": broken, "summary": summary, "test": "test" in parts}


def _probed(pool: ThreadPoolExecutor, paths: list[Path], limit: int) -> list[Probe | str]:
    """The size and kind of each photo, or why it cannot be read."""

    def look(path: Path) -> Probe | str:
        try:
            return probe(path)
        except ValueError as error:
            return str(error)

    found: list[Probe | str] = []
    for done, head in enumerate(_ordered(pool, look, paths), 1):
        found.append(head)
        if done % 500 == 0:
            progress("looking at photos", done, len(paths))
    wrong = [(str(path), head) for path, head in zip(paths, found, strict=True) if isinstance(head, str)]
    if len(wrong) > limit:
        raise _refused(wrong, limit)
    return found


def _decoded(
    pool: ThreadPoolExecutor, site: Site, writer: RowWriter, part: str, files: Files, fit: str, limit: int
) -> list[tuple[int, str]]:
    """Write every photo of a part to its row; the rows of those that cannot be read, and why."""
    channels, size = writer.shape[1], (writer.shape[2], writer.shape[3])
    starts = range(0, len(files), CHUNK)
    left = [start for start in starts if f"{part}_x {start}" not in site.done]
    wrong = [(int(row), str(why)) for start in starts for row, why in site.done.get(f"{part}_x {start}", [])]

    def read(start: int) -> tuple[int, Any, list[tuple[int, str]]]:
        rows = np.zeros((len(files[start : start + CHUNK]), *writer.shape[1:]), np.uint8)
        failed = []
        for offset, (path, _) in enumerate(files[start : start + CHUNK]):
            try:
                rows[offset] = decode(path, channels, size, fit=fit)
            except ValueError as error:
                failed.append((start + offset, str(error)))
        return start, rows, failed

    what = f"decoding {'photos' if part == 'train' else 'test photos'}"
    progress(what, len(starts) - len(left), len(starts))
    for done, (start, rows, failed) in enumerate(_ordered(pool, read, left), len(starts) - len(left) + 1):
        writer.write(start, rows)
        site.mark(f"{part}_x {start}", failed)
        wrong += failed
        progress(what, done, len(starts))
        if len(wrong) > limit:
            raise _refused([(str(files[row][0]), why) for row, why in wrong], limit)
    return wrong


def _ordered(pool: ThreadPoolExecutor, work: Callable[[Piece], Found], pieces: Sequence[Piece]) -> Iterator[Found]:
    """The results in order, with few pieces under way, so that memory does not grow with their number."""
    ahead = 2 * _cores()
    waiting = [pool.submit(work, piece) for piece in pieces[:ahead]]
    try:
        for later in range(len(pieces)):
            yield waiting.pop(0).result()
            if later + ahead < len(pieces):
                waiting.append(pool.submit(work, pieces[later + ahead]))
    finally:
        for future in waiting:
            future.cancel()


def _shape(seen: list[Probe], resolution: int | None) -> tuple[int, int, int]:
    """(channels, height, width): gray when all photos are."""
    channels = 1 if all(head.gray for head in seen) else 3
    sizes = {(head.height, head.width) for head in seen}
    if resolution is None and len(sizes) == 1:
        height, width = sizes.pop()
        return channels, height, width
    side = resolution or max(LEAST_RESOLUTION, min(USUAL_RESOLUTION, int(median(min(h[:2]) for h in seen))))
    return channels, side, side


def _summary(
    listed: PhotoList, seen: list[Probe], shape: tuple[int, ...], fit: str, broken: set[str], asked: int | None
) -> str:
    """One line: how many photos, of which classes and sizes, and what became of them."""
    train, test = ([label for path, label in part if str(path) not in broken] for part in (listed.train, listed.test))
    counts = Counter(train + test)
    named = [f"{name} {counts[label]:,}" for label, name in enumerate(listed.classes)]
    if len(named) > NAMED:
        named = [*named[: NAMED - 1], "..."]
    few, many = min(seen, key=lambda h: h.width * h.height), max(seen, key=lambda h: h.width * h.height)
    sizes = f"{few.width}x{few.height}" + (
        f" to {many.width}x{many.height}" if (few.width, few.height) != (many.width, many.height) else " pixels"
    )
    same = all((head.height, head.width) == shape[1:] for head in seen) and fit != "inner"
    said = "" if asked or same else "; --resolution N for another size"
    became = "" if same else f", brought to {shape[2]}x{shape[1]} ({fit}{said})"
    total = f"{len(train) + len(test):,} photos"
    total += f" ({len(test):,} of them to judge)" if test else ""
    skipped = f", {len(broken):,} broken left out" if broken else ""
    kind = "gray" if shape[0] == 1 else "color"
    return f"{total} in {len(named)} classes ({', '.join(named)}), {sizes}, {kind}{became}{skipped}".replace(
        f"in {len(named)} classes", f"in {len(listed.classes)} classes"
    )


def _refused(wrong: list[tuple[str, str]], limit: int) -> RequestError:
    path, why = wrong[0]
    first = f"{path} cannot be read as an image ({why})"
    if not limit:
        return RequestError(first)
    return RequestError(f"{first}, nor can {len(wrong) - 1} others: more than the {limit} that are left out")


def _tell_broken(broken: list[tuple[str, str]]) -> None:
    named = "; ".join(f"{path} ({why})" for path, why in broken[:NAMED])
    more = f"; and {len(broken) - NAMED} more" if len(broken) > NAMED else ""
    text = f"left out, for they cannot be read: {named}{more}"
    if not note(f"{text}; --strict refuses them"):
        warnings.warn(f"{text}; strict=True refuses them", DataWarning, stacklevel=4)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
