"""Where work runs: many independent pieces over any executor."""

from nasight.compute._executors import cores, map_resumable, worker_count

__all__ = ["cores", "map_resumable", "worker_count"]
