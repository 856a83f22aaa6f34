"""Where work happens: devices and their precision, processes, any executor."""

from nasight.compute._device import (
    choose_device,
    device_count,
    double,
    double_zeros,
    fits,
    has_double,
    is_device,
    moved_note,
    synchronize,
    to_device,
    to_host,
)
from nasight.compute._executors import cores, map_resumable, process_pool, worker_count
from nasight.compute._precision import LossScale, autocast, check_precision

__all__ = [
    "LossScale",
    "autocast",
    "check_precision",
    "choose_device",
    "cores",
    "device_count",
    "double",
    "double_zeros",
    "fits",
    "has_double",
    "is_device",
    "map_resumable",
    "moved_note",
    "process_pool",
    "synchronize",
    "to_device",
    "to_host",
    "worker_count",
]
