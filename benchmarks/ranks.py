"""One search in two ranks beside the same search in one process: the same history, and the times of both.

python benchmarks/ranks.py [--epochs 2] [--examples 960]

It runs `torchrun --nproc-per-node 2 -m nasight search ...` and `nasight search ... --slices 2`, one after the other,
--seeds times in turns, on Fashion-MNIST. Times are those of an epoch: starting the processes is not part of them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from _shared import Flags, save

SEARCH = "-m nasight search --space nasbench201 --channels 8 --cells 1 --preset tiny --batch-size 64 --threads 1 --json"
WAYS = {
    "one process": [sys.executable],
    "two ranks": [str(Path(sys.executable).with_name("torchrun")), "--standalone", "--nproc-per-node", "2"],
}


def run(way: str, given: list[str], out: Path) -> tuple[list[dict[str, Any]], float]:
    """The history of a search that was run in this way, and the processor seconds of its processes."""
    slices = ["--slices", "2"] if way == "one process" else []
    command = [*WAYS[way], *SEARCH.split(), *given, *slices, "--out", str(out)]
    before = _processors()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()], _processors() - before


def _processors() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def largest_difference(a: Any, b: Any) -> float:
    """Between the numbers of two rows, times apart: relative to 1 or to the number, whichever is larger."""
    if isinstance(a, dict):
        return max((largest_difference(a[key], b[key]) for key in a if key != "seconds"), default=0.0)
    if isinstance(a, list):
        return max((largest_difference(x, y) for x, y in zip(a, b, strict=True)), default=0.0)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) / max(1.0, abs(a))
    return 0.0 if a == b else float("inf")


def main() -> None:
    flags = Flags(__doc__, "ranks", seeds=2, data="Fashion-MNIST")
    flags.add_argument("--epochs", type=int, default=2, help="of each search (default 2)")
    flags.add_argument("--examples", type=int, default=960, help="rows (default 960)")
    given = flags.read(seeds=1, epochs=1, examples=128)
    times, used = ({way: list[float]() for way in WAYS} for _ in range(2))
    worst, same = [0.0] * given.epochs, True
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seeds):
            asked = ["--data", "fashion-mnist", "--epochs", str(given.epochs), "--examples", str(given.examples)]
            asked += ["--seed", str(seed), *(["--data-folder", given.data_folder] if given.data_folder else [])]
            found = {way: run(way, asked, Path(folder) / f"{way[:3]}-{seed}") for way in WAYS}
            (one, _), (two, _) = found.values()
            worst = [max(w, largest_difference(a, b)) for w, a, b in zip(worst, one, two, strict=True)]
            same = same and [row["architecture"] for row in one] == [row["architecture"] for row in two]
            for way, (rows, processors) in found.items():
                times[way] += [row["seconds"] for row in rows]
                used[way].append(processors)
    result = {
        "load": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "largest_differences": worst,
        "same_architectures": same,
        "seconds_per_epoch": {way: median(values) for way, values in times.items()},
        "processor_seconds": {way: median(values) for way, values in used.items()},
        "ratio": median(times["one process"]) / median(times["two ranks"]),
    }
    print(f"load of the machine while this ran: {result['load']:.1f}, {result['cores']} cores")
    print(f"architectures of all epochs: {'the same' if same else 'different'}")
    print(f"largest difference of a number in the histories, by epoch: {', '.join(f'{w:.1e}' for w in worst)}")
    for way, seconds in result["seconds_per_epoch"].items():  # type: ignore[attr-defined]
        processors = f"{median(used[way]):.1f} processor seconds in all, imports included"
        print(f"{way:12} {seconds:.2f} s per epoch (median of {len(times[way])}); {processors}")
    print(f"two ranks are {result['ratio']:.2f} times as fast as one process")
    save(given, result)


if __name__ == "__main__":
    main()
