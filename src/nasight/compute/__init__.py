"""Work spread over processes, ranks or any executor."""

from nasight.compute._executors import cores, map_resumable, process_pool, worker_count
from nasight.compute._ranks import ALONE, Poll, Ranks, by_itself, current_ranks, everywhere, world
from nasight.compute._slices import RunningStatistics, Slice, Slices

__all__ = [
    "ALONE",
    "Poll",
    "Ranks",
    "RunningStatistics",
    "Slice",
    "Slices",
    "by_itself",
    "cores",
    "current_ranks",
    "everywhere",
    "map_resumable",
    "process_pool",
    "worker_count",
    "world",
]
