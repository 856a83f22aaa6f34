"""Pieces of work on the workers of a Dask cluster.

A worker gets a function and an item, both small, and sends back what it found. Work of a worker that is lost is done
again by another one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nasight.compute._packed import packed, unpacked
from nasight.compute._ranks import by_itself, world
from nasight.errors import RequestError, RunError
from nasight.version import VERSION

LOCAL = "local:"
SECONDS = 20
"""How long a scheduler may take to answer."""
_one_at_a_time = threading.Lock()


class ClusterExecutor(Executor):
    """Submits to a Dask scheduler; `remote`, so that work is sent without its data and its folders come back."""

    remote = True

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self._last: tuple[object, bytes, str] = (None, b"", "")

    @property
    def workers(self) -> int:
        """How many workers there are now."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        payload, digest = self._packed(fn)
        task = self.client.submit(carry_out, VERSION, payload, digest, args, kwargs, pure=False)
        piece = _Piece(task)
        task.add_done_callback(lambda done: self._arrived(piece, done))
        return piece

    def _packed(self, fn: Callable[..., Any]) -> tuple[bytes, str]:
        """The function, pickled once for all items."""
        if self._last[0] is not fn:
            self._last = (fn, *packed(fn))
        return self._last[1:]

    def _arrived(self, piece: _Piece, done: Any) -> None:
        error: BaseException | None = None
        value: Any = None
        try:
            value = done.result()
        except (RequestError, RunError) as raised:
            error = raised
        except BaseException as raised:
            error = self._told(raised)
        if piece.set_running_or_notify_cancel():
            if error is None:
                piece.set_result(value)
            else:
                piece.set_exception(error)

    def _told(self, error: BaseException) -> BaseException:
        """A lost worker or scheduler in a sentence; an error of the work itself as it is."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm.core import CommClosedError

        if isinstance(error, KilledWorker):
            return RunError(
                "a piece of work ended every worker that took it, one after the other: memory may be short on the "
                "cluster; what is finished is kept"
            )
        if isinstance(error, (CancelledError, FutureCancelledError, CommClosedError, TimeoutError)):
            return RunError(
                f"the cluster at {self.address} is gone; what is finished is kept: the same command resumes"
            )
        return error

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """The client is closed by the block that opened it."""


class _Piece(Future[Any]):
    """What a task will give; to cancel it is to take it back from the cluster."""

    def __init__(self, task: Any) -> None:
        super().__init__()
        self.task = task

    def cancel(self) -> bool:
        if not self.done():
            with suppress(Exception):
                self.task.cancel()
        return super().cancel()


def carry_out(version: str, payload: bytes, digest: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """On a worker: one piece of work, and no other in this process meanwhile, as torch's generator is one for all."""
    if version != VERSION:
        raise RequestError(f"a worker has nasight {VERSION}, and was asked by nasight {version}")
    with _one_at_a_time, by_itself():
        return unpacked(digest, lambda: payload)(*args, **kwargs)


def is_remote(executor: Executor | None) -> bool:
    """Whether the work goes to other machines, which see neither this one's memory nor its files."""
    return bool(getattr(executor, "remote", False))


@contextmanager
def cluster(address: str | None) -> Iterator[ClusterExecutor | None]:
    """An executor of the cluster at this address while the block lasts; None: none.

    Parameters
    ----------
    address : "tcp://HOST:PORT" or "HOST:PORT" of a Dask scheduler, a scheduler file (FILE.json), or "local:N" to start
        N workers here, on the loopback.
    """
    if address is None:
        yield None
        return
    if world()[1] > 1:
        raise RequestError("torchrun and --cluster are two ways to spread work: take one of them")
    try:
        import distributed as dask
    except ImportError:
        raise RequestError("--cluster needs Dask: pip install 'nasight[cluster]'") from None
    distributed: Any = dask
    if address.startswith(LOCAL):
        with _local(distributed, address) as client:
            yield ClusterExecutor(client, address)
        return
    if address.endswith(".json") and not Path(address).is_file():
        raise RequestError(f"there is no scheduler file {address}")
    where: dict[str, Any] = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    try:
        client = distributed.Client(**where, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise RequestError(f"no Dask scheduler answers at {address!r}: {str(error).splitlines()[0]}") from None
    try:
        yield ClusterExecutor(client, address)
    finally:
        client.close(timeout=2)


@contextmanager
def _local(distributed: Any, address: str) -> Iterator[Any]:
    number = address.removeprefix(LOCAL)
    if not number.isdecimal() or int(number) < 1:
        raise RequestError(f"a local cluster is written local:N with N of at least 1, got {address!r}")
    settings = {
        "n_workers": int(number),
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "memory_limit": 0,
        "silence_logs": logging.CRITICAL + 1,  # what is lost is told by `_told`
    }
    with distributed.LocalCluster(**settings) as started, distributed.Client(started, set_as_default=False) as client:
        yield client
