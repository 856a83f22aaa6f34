"""Where work happens: devices and their precision, processes, ranks, any executor."""

from nasight.compute._cluster import ClusterExecutor, cluster, is_remote
from nasight.compute._crew import RankExecutor, led_by_first
from nasight.compute._device import (
    choose_device,
    device_count,
    double,
    double_zeros,
    fits,
    has_double,
    is_device,
    moved_note,
    resumed_device,
    synchronize,
    to_device,
    to_host,
)
from nasight.compute._executors import cores, map_resumable, process_pool, spread, worker_count
from nasight.compute._packed import shipped
from nasight.compute._precision import LossScale, autocast, check_precision
from nasight.compute._ranks import ALONE, Poll, Ranks, by_itself, current_ranks, end_rank, everywhere, world
from nasight.compute._slices import RunningStatistics, Slice, Slices

__all__ = [
    "ALONE",
    "ClusterExecutor",
    "LossScale",
    "Poll",
    "RankExecutor",
    "Ranks",
    "RunningStatistics",
    "Slice",
    "Slices",
    "autocast",
    "by_itself",
    "check_precision",
    "choose_device",
    "cluster",
    "cores",
    "current_ranks",
    "device_count",
    "double",
    "double_zeros",
    "end_rank",
    "everywhere",
    "fits",
    "has_double",
    "is_device",
    "is_remote",
    "led_by_first",
    "map_resumable",
    "moved_note",
    "process_pool",
    "resumed_device",
    "shipped",
    "spread",
    "synchronize",
    "to_device",
    "to_host",
    "worker_count",
    "world",
]
