"""Rows that stay in a file: the same numbers as in memory, and little of the file in memory at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from nasight.data import Batches, Dataset, _maps, is_mapped, open_map, prepare, take
from nasight.data._maps import chunks, map_of

HUGE = """
import sys
import torch
from nasight.data import Dataset, open_map, prepare
from nasight.data import _maps
from nasight.reproducible import generator_for

x = open_map(sys.argv[1])
if sys.argv[2] == "kept":
    _maps.HELD_BYTES = 1 << 40
data = Dataset("huge", x, torch.arange(len(x)) % 2, None, None, ("a", "b"), sys.argv[1])
order = torch.randperm(len(x), generator=generator_for(0))
prepared = prepare(data, order[:2000])
loader = prepared.loader(batch_size=64, seed=0, stream="train", rows=order)
for step in range(400):
    loader.batch(0, step)
for _ in prepared.batches("train", size=256, rows=order[:4000]):
    pass
# Not ru_maxrss: a child of a large process begins with its parent's.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) // 1024)
"""


def images(rows: int = 40) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (rows, 3, 8, 8), dtype=np.uint8)


def test_batches_of_a_mapped_file_are_those_of_the_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", images())
    y, rows = torch.arange(40) % 4, torch.tensor([7, 3, 39, 0, 12, 13, 14, 15])
    found = []
    for x in (torch.from_numpy(images()), open_map(tmp_path / "x.npy")):
        data = Dataset("x", x, y, None, None, tuple("abcd"), "here")
        prepared = prepare(data, rows)
        loader = prepared.loader(batch_size=3, seed=0, stream="s", rows=rows)
        held = Batches(x, y, prepared.mean, prepared.std, 3, rows)
        found.append([*loader.epoch(1), *held, *held, *prepared.batches("train", size=5)])
        assert (len(held), len(loader.y)) == (3, 8)
    for (x, y), (same_x, same_y) in zip(*found, strict=True):
        assert torch.equal(x, same_x)
        assert torch.equal(y, same_y)


@pytest.mark.parametrize("held", [0, 1 << 30])
def test_rows_of_parts_and_in_any_order_are_those_of_the_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(_maps, "HELD_BYTES", held)
    np.save(tmp_path / "x.npy", images().astype(np.float32))
    x, plain = open_map(tmp_path / "x.npy"), torch.from_numpy(images().astype(np.float32))
    for rows in ([3], [5, 6, 7, 2, 2, 39], [-1, 4], []):
        numbers = torch.tensor(rows, dtype=torch.int64)
        assert torch.equal(take(x, numbers), plain[numbers])
        if rows and max(rows) < 30 and min(rows) >= 0:
            assert torch.equal(take(x[10:], numbers), plain[10:][numbers])
    for part in (slice(2, 9), slice(None, None, 7), slice(5, 5), slice(-3, None)):
        assert torch.equal(take(x, part), plain[part])
    assert torch.equal(take(x[:, 1], torch.tensor([4, 1])), plain[:, 1][torch.tensor([4, 1])])
    with pytest.raises(IndexError):
        take(x, torch.tensor([40]))


def test_what_is_taken_from_a_file_is_a_copy_and_a_map_ends_with_its_tensor(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", images())
    x = open_map(tmp_path / "x.npy")
    part = take(x, slice(2, 4))
    part.zero_()
    assert torch.equal(torch.from_numpy(images()), torch.cat(list(chunks(x))))
    assert map_of(x) == (tmp_path / "x.npy").resolve()
    assert map_of(x[1:]) is None
    assert is_mapped(x[1:])
    assert not is_mapped(part)
    from nasight.data._maps import _MAPS

    before = len(_MAPS)
    del x
    assert len(_MAPS) == before - 1


@pytest.mark.slow
def test_three_gigabytes_of_rows_are_read_with_less_than_one_of_memory(tmp_path: Path) -> None:
    """The file is a hole, so that it takes no disk; its pages take memory all the same when they are read."""
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, (250_000, 3, 64, 64))
    assert (tmp_path / "x.npy").stat().st_size > 3e9
    command = [sys.executable, "-c", HUGE, str(tmp_path / "x.npy"), "given back"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 700
