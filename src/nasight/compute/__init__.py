"""Work spread over processes or any executor."""

from nasight.compute._executors import cores, map_resumable, process_pool, worker_count

__all__ = ["cores", "map_resumable", "process_pool", "worker_count"]
