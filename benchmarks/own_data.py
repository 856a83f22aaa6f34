"""Peak memory of commands over large files, and what random changes nobody asked for cost on digits.

    python benchmarks/own_data.py --part memory [--repeats 3]
    python benchmarks/own_data.py --part digits [--preset tiny]

The first runs `nasight` under `/usr/bin/time -v`, over 200,000 color images of 32x32 pixels (586 MiB) and over 250,000
of 64x64 (2,930 MiB). The second trains one cell on the 1,437 embedded digits, given as a file, with the random changes
that versions before 0.3 made to any image and with none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from _shared import CELL, Flags, parts_so_far, save, spread
from nasight import train
from nasight.data import load

SEARCH = "search --space mlp --data {file} --share 1 --epochs 1 --warmup 0 --batch-size 512 --threads 1"
TRAIN = "train --space mlp --arch relu,relu,relu/0,0 --data {file} --seeds 1 --epochs 1 --batch-size 512 --threads 1"
FILES: dict[str, tuple[int, int, list[str]]] = {
    "big.npz": (200_000, 32, [f"{SEARCH} --objective erm", f"{SEARCH} --objective bilevel", TRAIN]),
    "huge.npz": (250_000, 64, [f"{SEARCH} --objective erm", TRAIN]),
}
"""File -> rows, pixels per side, commands."""
CHANGES = ("none", "shift", "flip", "shift,flip")


def write_images(path: Path, rows: int, side: int) -> None:
    """Random images with ten classes; each row is written from few random bytes, for the bytes play no role here."""
    noise = np.random.default_rng(0).integers(0, 256, (1000, 3, side, side), dtype=np.uint8)
    np.savez(path, x=np.resize(noise, (rows, 3, side, side)), y=np.arange(rows) % 10)


def peak(command: str, folder: Path, number: int) -> int:
    """MiB that a command held at most, as /usr/bin/time says it; a run of before makes room."""
    shutil.rmtree(folder / f"run-{number}", ignore_errors=True)
    words = ["/usr/bin/time", "-v", sys.executable, "-m", "nasight", *command.split(), "--out", f"run-{number}"]
    cache = {**os.environ, "NASIGHT_CACHE": str(folder.resolve() / "cache")}
    done = subprocess.run(words, cwd=folder, env=cache, capture_output=True, text=True, check=False)
    found = re.search(r"Maximum resident set size \(kbytes\): (\d+)", done.stderr)
    if done.returncode or found is None:
        raise SystemExit(f"nasight {command} failed:\n{done.stderr[-2000:]}")
    return int(found[1]) // 1024


def memory(folder: Path, quick: bool, repeats: int) -> list[dict[str, Any]]:
    """The peaks of every command; a file is decoded by the first one that reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    found = list[dict[str, Any]]()
    for name, (rows, side, commands) in FILES.items():
        rows = 1000 if quick else rows
        if not (folder / name).exists():
            # In another process, so that this one stays small beside what it measures.
            writer = get_context("spawn").Process(target=write_images, args=(folder / name, rows, side))
            writer.start()
            writer.join()
        for command in commands[-1:] if quick else commands:
            line = command.format(file=name)
            pixels = rows * 3 * side * side // 2**20
            place = len(found) * repeats
            peaks = [peak(line, folder, place + k) for k in range(repeats)]
            found.append({"command": f"nasight {line}", "pixels": pixels, "peaks": peaks})
            print(f"{min(peaks):6,} to {max(peaks):,} MiB  {found[-1]['command']}", flush=True)
    return found


def digits(folder: Path, preset: str, seeds: int, quick: bool) -> dict[str, list[float]]:
    """Test accuracy of every seed, by the random changes."""
    folder.mkdir(parents=True, exist_ok=True)
    known = load("digits")
    assert known.test_x is not None
    assert known.test_y is not None
    arrays = {"x": known.train_x, "y": known.train_y, "x_test": known.test_x, "y_test": known.test_y}
    np.savez(folder / "digits.npz", **{name: array.numpy() for name, array in arrays.items()})
    found: dict[str, list[float]] = {changes: [] for changes in CHANGES}
    how: dict[str, Any] = {"preset": preset, "threads": 1} | ({"epochs": 1, "examples": 200} if quick else {})
    for seed in range(seeds):
        for changes, accuracies in found.items():
            done = train("nasbench201", CELL, str(folder / "digits.npz"), augment=changes, seed=seed, **how)
            accuracies.append(done.accuracy)
        print(f"seed {seed}: {', '.join(f'{k} {v[-1]:.2f}' for k, v in found.items())}", file=sys.stderr, flush=True)
    for changes, accuracies in found.items():
        print(f"{changes:12} {spread(accuracies)} %, {seeds} seeds")
    return found


def main() -> None:
    flags = Flags(__doc__, "own_data", seeds=8, work="runs/own-data")
    flags.add_argument("--part", choices=("memory", "digits"), default="digits", help="which (default digits)")
    flags.add_argument("--preset", choices=("tiny", "small"), default="small", help="of the trainings (default small)")
    flags.add_argument("--repeats", type=int, default=3, help="runs of each command by their memory (default 3)")
    given = flags.read(seeds=1, repeats=1)
    found = parts_so_far(given.out)
    if given.part == "memory":
        found["memory"] = memory(given.work_folder, given.quick, given.repeats)
    else:
        several = {
            **found.get("digits", {}),
            given.preset: digits(given.work_folder, given.preset, given.seeds, given.quick),
        }
        found["digits"] = several
    save(given, found)


if __name__ == "__main__":
    main()
