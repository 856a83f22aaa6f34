"""Many independent pieces of work over any `concurrent.futures.Executor`; what is done is not done again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

from nasight.compute._packed import packed, shipped
from nasight.errors import RequestError, RunError

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_resumable(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    done: Mapping[Item, Result] | None = None,
    on_result: Callable[[Item, Result], None] | None = None,
) -> list[Result]:
    """`function` of every item, in the order of the items; those in `done` are taken from there.

    `on_result(item, result)` is called here, in this process, as each new result arrives: the place to write
    it down. The first error (or Ctrl-C) cancels what has not begun and is raised. Without an `executor` the
    work goes to `workers` fresh processes (as many as cores), or stays here when there is one item or one
    worker; a script must then be guarded by `if __name__ == "__main__":`, and `function` be importable.

    >>> map_resumable(abs, [-1, -2, 3], workers=1, done={-2: 2})
    [1, 2, 3]
    """
    order = list(items)
    results: dict[Item, Result] = {item: done[item] for item in order if item in done} if done else {}
    todo = [item for item in dict.fromkeys(order) if item not in results]
    workers = worker_count(len(todo), workers)

    def arrived(item: Item, result: Result) -> None:
        results[item] = result
        if on_result is not None:
            on_result(item, result)

    if executor is not None:
        spread(function, todo, executor, arrived)
    elif workers == 1:
        for item in todo:
            arrived(item, function(item))
    else:
        # Before processes start: work that cannot be sent is refused.
        packed(function)
        with process_pool(workers) as own:
            spread(function, todo, own, arrived)
    return [results[item] for item in order]


def worker_count(items: int, workers: int | None = None) -> int:
    """How many processes work on this number of items."""
    if workers is not None and workers < 1:
        raise RequestError(f"there must be at least 1 worker, got {workers}")
    return max(1, min(workers or cores(), items))


def spread(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    executor: Executor,
    arrived: Callable[[Item, Result], object],
) -> None:
    """`function` of every item in the executor's processes; `arrived(item, result)` is called here for each.

    The first error cancels what has not begun and is raised.
    """
    with shipped(function, executor) as call:
        futures = {executor.submit(call, item): item for item in items}
        try:
            for future in as_completed(futures):
                arrived(futures.pop(future), future.result())
        except BrokenProcessPool as error:
            raise RunError(
                "a worker process ended before its work was done: memory may be short (use fewer workers), or the "
                'calling script lacks `if __name__ == "__main__":`; what is finished is kept'
            ) from error
        finally:
            for future in futures:
                future.cancel()


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """A pool whose processes share the cores, and end when this block or this process ends, however it ends."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(reader, cores() // workers or 1))
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        writer.close()
        pool.shutdown(cancel_futures=True)
        raise
    finally:
        writer.close()
        reader.close()


def _start_worker(alive: Connection, threads: int) -> None:
    """Ctrl-C is for the parent to handle; a parent that is gone leaves nobody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("RANK", "WORLD_SIZE"):  # of torchrun: this process is none of its ranks
        os.environ.pop(name, None)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # for torch when it is imported, which not all work needs
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()


def _end_with(alive: Connection) -> None:
    """Wait for the other end of the pipe to close; unfinished work is resumable, so nothing is lost by leaving."""
    try:
        alive.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
