"""The cache of decoded rows: whole or not there, built by one process, gone on with after a kill."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from nasight.data import _npz, cache_entries, clear_cache, load, resized, select_rows
from nasight.data._cache import Site, cached
from nasight.data._maps import is_mapped, map_of
from nasight.errors import RequestError


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("NASIGHT_CACHE", str(folder))
    return folder


def ramp(site: Site) -> dict[str, Any]:
    writer = site.rows("train_x", (6, 2), "float32")
    for start in (4, 0, 2):
        writer.write(start, np.arange(2 * start, 2 * start + 4, dtype=np.float32).reshape(2, 2))
        site.mark(f"train_x {start}", [])
    return {"answer": 42}


def test_arrays_are_built_once_and_anew_when_they_were_damaged() -> None:
    place, about = cached({"a": 1}, "ramp", ramp)
    assert about == {"answer": 42}
    assert np.load(place / "train_x.npy").ravel().tolist() == list(range(12))
    assert cached({"a": 1}, "ramp", lambda site: pytest.fail("built twice"))[0] == place
    assert cached({"a": 2}, "ramp", ramp)[0] != place
    (place / "train_x.npy").write_bytes(b"short")
    assert np.load(cached({"a": 1}, "ramp", ramp)[0] / "train_x.npy").shape == (6, 2)


@pytest.mark.parametrize("error", [RequestError("no"), OSError(errno.EIO, "disk")])
def test_a_build_that_fails_leaves_nothing(error: Exception) -> None:
    def fail(site: Site) -> dict[str, Any]:
        ramp(site)
        site.flush()
        raise error

    with pytest.raises(type(error)):
        cached({"a": 1}, "ramp", fail)
    assert cache_entries() == []


def test_a_full_disk_is_one_sentence() -> None:
    def fail(site: Site) -> dict[str, Any]:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(RequestError, match=r"no room for the decoded rows of ramp .*NASIGHT_CACHE"):
        cached({"a": 1}, "ramp", fail)


BUILDER = """
import sys, time
from pathlib import Path
from nasight.data import _photos, load
real, trace = _photos.decode, Path(sys.argv[2])
def slow(path, *more, **how):
    with trace.open("a") as file:
        file.write(f"{path}\\n")
    time.sleep(float(sys.argv[3]))
    return real(path, *more, **how)
_photos.decode, _photos.CHUNK = slow, 4
from nasight.data import _cache
_cache.MARK_SECONDS = 0.0
print(load(sys.argv[1], resolution=8).fingerprint)
"""


def photos(folder: Path, each: int = 20) -> Path:
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for row in range(each):
            pixels = rng.integers(0, 256, (12, 12 + row % 3, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{row}.png")
    return folder


def builder(folder: Path, trace: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(folder), str(trace), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_build_is_gone_on_with_and_two_builders_do_the_work_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = photos(tmp_path / "photos")
    first = builder(folder, tmp_path / "first", 0.05)
    while not (tmp_path / "first").exists() or len((tmp_path / "first").read_text().splitlines()) < 24:
        assert first.poll() is None
        time.sleep(0.01)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    (part,) = cache_entries()
    assert not part.whole
    both = [builder(folder, tmp_path / f"later-{n}", 0.01) for n in range(2)]
    answers = [each.communicate()[0].strip() for each in both]
    assert answers[0] == answers[1]
    traces = [path.read_text().splitlines() for path in tmp_path.glob("later-*")]
    assert len(traces) == 1  # the other one waited
    assert 0 < len(traces[0]) <= 32
    (entry,) = cache_entries()
    assert entry.whole
    monkeypatch.setenv("NASIGHT_CACHE", str(tmp_path / "fresh"))
    assert load(folder, resolution=8).fingerprint == answers[0]


def test_a_large_npz_file_is_mapped_and_gives_the_same_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (300, 9, 8, 3), dtype=np.uint8), np.arange(300) % 4
    np.savez_compressed(tmp_path / "mine.npz", x=x, y=y, x_test=x[:50], y_test=y[:50])
    small = load(tmp_path / "mine.npz")
    monkeypatch.setattr(_npz, "MAPPED_BYTES", 1000)
    monkeypatch.setattr(_npz, "CHUNK_BYTES", 10_000)
    large = load(tmp_path / "mine.npz")
    assert not is_mapped(small.train_x)
    assert is_mapped(large.train_x)
    assert torch.equal(small.train_x, large.train_x)
    assert small.fingerprint == large.fingerprint
    assert large.fingerprint == load(tmp_path / "mine.npz").fingerprint
    for kind in ("float64", "int16"):
        np.savez(tmp_path / "mine.npz", x=x.astype(kind), y=y)
        again = load(tmp_path / "mine.npz")
        assert again.train_x.dtype == torch.float32
        assert torch.equal(again.train_x, small.train_x.float())


def test_parts_and_smaller_copies_of_mapped_rows_are_mapped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = np.random.default_rng(0).integers(0, 256, (60, 3, 8, 8), dtype=np.uint8), np.arange(60) % 4
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    plain = load(tmp_path / "mine.npz")
    monkeypatch.setattr(_npz, "MAPPED_BYTES", 1000)
    data = load(tmp_path / "mine.npz")
    rows, held = torch.arange(59, 9, -1), torch.arange(10)
    for made, same in (
        (select_rows(data, rows, held), select_rows(plain, rows, held)),
        (resized(data, 4), resized(plain, 4)),
        (data.subset(0.5, torch.Generator().manual_seed(0)), plain.subset(0.5, torch.Generator().manual_seed(0))),
    ):
        assert is_mapped(made.train_x)
        assert made.fingerprint == same.fingerprint
    there = pickle.loads(pickle.dumps(data))
    assert map_of(there.train_x) == map_of(data.train_x)
    assert len(pickle.dumps(data)) < x.nbytes / 4
    assert there.fingerprint == plain.fingerprint
    assert pickle.loads(pickle.dumps(plain)).fingerprint == plain.fingerprint


def test_the_cache_is_listed_and_cleared(tmp_path: Path) -> None:
    folder = photos(tmp_path / "photos", 3)
    for resolution in (8, 10):
        load(folder, resolution=resolution)
    entries = cache_entries()
    assert [entry.rows for entry in entries] == [6, 6]
    assert entries[0].size > 6 * 3 * 100 > entries[1].size > 6 * 3 * 64
    with pytest.raises(RequestError, match="has no entry 'zzz'"):
        clear_cache("zzz")
    assert clear_cache(entries[0].key[:8]) == [entries[0]]
    assert clear_cache() == [entries[1]]
    assert cache_entries() == []


def test_a_cache_that_cannot_be_written_costs_nothing_but_the_next_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("NASIGHT_CACHE", str(tmp_path / "file" / "deeper"))
    assert load(photos(tmp_path / "photos", 3), resolution=8).inputs == (3, 8, 8)
