"""What spreading work costs on this machine: a message between two ranks, an item of a pool and of a Dask cluster.

python benchmarks/scale.py
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import Executor
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import torch
from torch import distributed

from _shared import Flags, save
from nasight.compute import cluster, current_ranks, map_resumable, process_pool
from nasight.spaces import load

REPEATS, WORKERS, ROUNDS = 20, 2, 5
SUPERNETS: dict[str, tuple[str, dict[str, int]]] = {
    "nasbench201, small": ("nasbench201", {"channels": 8, "cells": 1}),
    "nasbench201, paper": ("nasbench201", {"channels": 16, "cells": 5}),
    "darts, paper": ("darts", {"channels": 16, "cells": 8}),
}


def shared_weights(space: str, size: dict[str, Any]) -> int:
    """How many numbers ranks add up per step of the shared weights."""
    return sum(p.numel() for p in load(space).supernet((3, 32, 32), 10, **size).parameters())


def rank_seconds(rank: int, store: str, sizes: list[int], out: str) -> None:
    """One of two ranks: the median time of a sum of each size."""
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    ranks, found = current_ranks(), []
    for size in sizes:
        numbers, seconds = torch.ones(size), []
        for _ in range(REPEATS):
            start = time.perf_counter()
            ranks.sums([numbers])
            seconds.append(time.perf_counter() - start)
        found.append(median(seconds))
    if rank == 0:
        Path(out).write_text(json.dumps(found))
    distributed.destroy_process_group()


def sums(sizes: list[int]) -> list[float]:
    """Seconds of a sum over two ranks of this machine, for each size."""
    with tempfile.TemporaryDirectory() as folder:
        context, out = multiprocessing.get_context("spawn"), f"{folder}/found"
        started = [
            context.Process(target=rank_seconds, args=(rank, f"{folder}/store", sizes, out)) for rank in range(2)
        ]
        for process in started:
            process.start()
        for process in started:
            process.join()
        found: list[float] = json.loads(Path(out).read_text())
    return found


def item_ms(executor: Executor, items: int) -> dict[str, float]:
    """Milliseconds per item of work that takes none, the median of some rounds: on the clock, and of processors."""
    map_resumable(abs, range(WORKERS * 4), executor=executor)
    here, rounds = psutil.Process(), list[tuple[float, ...]]()
    for _ in range(ROUNDS):
        start, asked, worked = time.perf_counter(), time.process_time(), _cpu(here)
        map_resumable(abs, range(items), executor=executor)
        rounds.append((time.perf_counter() - start, time.process_time() - asked, _cpu(here) - worked))
    each = (1e3 * median(seconds) / items for seconds in zip(*rounds, strict=True))
    return dict(zip(("clock", "asking", "workers"), each, strict=True))


def _cpu(parent: psutil.Process) -> float:
    """Processor seconds of the processes that this one started."""
    return sum(sum(child.cpu_times()[:2]) for child in parent.children(recursive=True))


def main() -> None:
    flags = Flags(__doc__, "scale")
    flags.add_argument("--items", type=int, default=300, help="items of work (default 300)")
    given = flags.read(items=20)
    weights = {name: shared_weights(*what) for name, what in SUPERNETS.items()}
    taken = dict(zip(weights, sums(list(weights.values())), strict=True))
    with process_pool(WORKERS) as pool:
        in_pool = item_ms(pool, given.items)
    with cluster(f"local:{WORKERS}") as executor:
        assert executor is not None
        in_cluster = item_ms(executor, given.items)
    found = {
        "load": os.getloadavg()[0],
        "sums": {name: {"weights": weights[name], "ms": 1e3 * taken[name]} for name in weights},
        "items": {"processes": in_pool, "dask": in_cluster},
    }
    print(f"load of the machine while this ran: {found['load']:.1f}")
    for name, values in found["sums"].items():  # type: ignore[attr-defined]
        print(
            f"{name:20} {4 * values['weights'] / 1e6:6.2f} MB per step, added up by two ranks in {values['ms']:.1f} ms"
        )
    for name, ms in found["items"].items():  # type: ignore[attr-defined]
        cpu = f"{ms['asking']:.2f} ms of the asking process, {ms['workers']:.2f} of the workers"
        print(f"{name:20} {ms['clock']:.2f} ms per item beyond its work (processors: {cpu})")
    save(given, found)


if __name__ == "__main__":
    main()
