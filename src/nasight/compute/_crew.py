"""Ranks as workers: the first one leads, the others carry out the pieces of work that it hands out.

For work of many independent pieces. Whatever ends the leader, or another rank, ends all of them.
"""

from __future__ import annotations

import _thread
import pickle
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial, wraps
from queue import SimpleQueue
from typing import Any, TypeVar, cast

from nasight.compute._cluster import carry_out
from nasight.compute._executors import process_pool
from nasight.compute._packed import packed
from nasight.compute._ranks import Ranks, by_itself, current_ranks, everywhere, world
from nasight.errors import RequestError, RunError
from nasight.version import VERSION

Value = TypeVar("Value")
Function = TypeVar("Function", bound=Callable[..., Any])
LONG = timedelta(days=365)
"""How long a rank waits for its next piece, or for what another makes of one."""
GONE = "another rank ended before its work was done; what is finished is kept, and can be resumed"


def led_by_first(function: Function) -> Function:
    """A function that takes `executor`: in several ranks the first one calls it, with all of them as its workers.

    All ranks call it; the others get what the first one gives, or end with its error.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("executor") is not None or world()[1] == 1:
            return function(*args, **kwargs)
        return led(current_ranks(), lambda executor: function(*args, **{**kwargs, "executor": executor}))

    return cast("Function", call)


def led(ranks: Ranks, work: Callable[[Executor], Value]) -> Value:
    """What `work` gives in the first rank when it is called with an executor; the others carry out its pieces."""
    post = _Post()
    if not ranks.first:
        value: Value = _Follower(post).follow()
        return value
    with by_itself(), process_pool(1) as pool:
        leader = RankExecutor(post, ranks.size, pool)
        try:
            value = work(leader)
            leader.end((None, "", value))
        except BaseException as error:
            leader.end(_told(error))
            raise
        return value


def _told(error: BaseException) -> tuple[type[BaseException], str, None]:
    """An error of the leader, as the others raise it."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt, str(error), None
    if isinstance(error, (RequestError, RunError, OSError)):
        return RequestError if isinstance(error, RequestError) else RunError, str(error), None
    return RunError, f"rank 0 failed: {error!r}", None


class _Post:
    """Values between ranks, over a group of its own in which nobody is waited for too briefly."""

    def __init__(self) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, cast("Any", dist)
        self.group = self.dist.new_group(backend="gloo", timeout=LONG)

    def send(self, value: Any, rank: int) -> None:
        content = self.torch.frombuffer(bytearray(pickle.dumps(value)), dtype=self.torch.uint8)
        self.dist.send(self.torch.tensor([len(content)]), rank, group=self.group)
        self.dist.send(content, rank, group=self.group)

    def receive(self, rank: int) -> Any:
        size = self.torch.zeros(1, dtype=self.torch.int64)
        self.dist.recv(size, rank, group=self.group)
        content = self.torch.empty(int(size), dtype=self.torch.uint8)
        self.dist.recv(content, rank, group=self.group)
        return pickle.loads(content.numpy().tobytes())


class RankExecutor(Executor):
    """The leader's: a piece goes to a rank that has none; those of the first rank to a process beside it.

    It is `remote`: ranks may be on other machines, so work is sent without its data, and its folders come back.
    """

    remote = True

    def __init__(self, post: _Post, size: int, pool: Executor) -> None:
        self.post, self.workers, self.pool = post, size, pool
        self._lock, self._waiting, self._idle = threading.RLock(), deque[tuple[Future[Any], Any]](), list(range(size))
        self._now: dict[int, Future[Any]] = {}
        """Rank -> the piece that it has."""
        self._wrong: BaseException | None = None
        self._last: tuple[object, bytes, str] = (None, b"", "")
        self._threads = [threading.Thread(target=self._hear, args=(rank,), daemon=True) for rank in range(1, size)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._last[0] is not fn:
            self._last = (fn, *packed(fn))
        piece = Future[Any]()
        with self._lock:
            if self._wrong is not None:
                raise self._wrong
            self._waiting.append((piece, (VERSION, *self._last[1:], args, kwargs)))
            self._hand_out()
        return piece

    def _hand_out(self) -> None:
        """Give the pieces that wait to the ranks that have none."""
        while self._waiting and self._idle:
            piece, work = self._waiting.popleft()
            if not piece.set_running_or_notify_cancel():
                continue
            rank = self._idle.pop()
            self._now[rank] = piece
            if rank == 0:
                self.pool.submit(carry_out, *work).add_done_callback(self._own)
                continue
            try:
                self.post.send(work, rank)
            except RuntimeError:
                self._stop(RunError(GONE))

    def _own(self, done: Future[Any]) -> None:
        if not done.cancelled():
            error = done.exception()
            self._arrived(0, error, None if error is not None else done.result())

    def _hear(self, rank: int) -> None:
        """In a thread: what a rank sends, until it says that it has ended."""
        while True:
            try:
                answer = self.post.receive(rank)
            except RuntimeError:
                self._stop(RunError(GONE))
                return
            if answer is None:
                return
            error, value = answer
            if isinstance(error, KeyboardInterrupt):
                self._stop(error)
            else:
                self._arrived(rank, error, value)

    def _arrived(self, rank: int, error: BaseException | None, value: Any) -> None:
        with self._lock:
            piece = self._now.pop(rank, None)
            self._idle.append(rank)
            if self._wrong is None:
                self._hand_out()
        if piece is None or piece.done():
            return
        if error is None:
            piece.set_result(value)
        else:
            piece.set_exception(error)

    def _stop(self, error: BaseException) -> None:
        """A rank was interrupted or is gone: nothing more is handed out, and what is under way has failed."""
        with self._lock:
            if self._wrong is not None:
                return
            self._wrong = error
            pieces = [piece for piece, _ in self._waiting if piece.set_running_or_notify_cancel()]
            pieces += self._now.values()
            self._waiting.clear()
            self._now.clear()
        for piece in pieces:
            piece.set_exception(error)

    def end(self, how: tuple[type[BaseException] | None, str, Any]) -> None:
        """Tell the others that all is done, or what went wrong, and wait until they have heard it."""
        with self._lock:
            self._wrong = self._wrong or RunError("the work has ended")
        for rank in range(1, self.workers):
            with suppress(RuntimeError):
                self.post.send(how, rank)
        for thread in self._threads:
            thread.join()


class _Follower:
    """Another rank: works in the main thread, and listens in another one, so that the end is heard during work."""

    def __init__(self, post: _Post) -> None:
        self.post, self.inbox = post, SimpleQueue[Any]()
        self.ended, self.interrupted = threading.Event(), threading.Event()
        # In a thread, so that an interrupt does not come between the parts of a message.
        self.sender = ThreadPoolExecutor(1)

    def follow(self) -> Any:
        """What the leader ends with."""
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            try:
                if self.ended.is_set():
                    return self._end()
                work = self.inbox.get()
                if work is not None:
                    self._send(_answer(work))
            except KeyboardInterrupt as stop:
                # The end interrupts a piece of work; a signal to this process is told to the leader, which ends all.
                if not self.ended.is_set():
                    self._send((stop, None))

    def _send(self, answer: Any) -> None:
        with suppress(RuntimeError):  # The leader is gone: the listener has heard it.
            self.sender.submit(partial(self.post.send, answer, 0)).result()

    def _listen(self) -> None:
        while True:
            try:
                message = self.post.receive(0)
            except RuntimeError:
                message = (RunError, GONE, None)
            if len(message) == len(("error", "text", "value")):
                self.last = message
                self.ended.set()
                self.inbox.put(None)
                _thread.interrupt_main()
                self.interrupted.set()
                return
            self.inbox.put(message)

    def _end(self) -> Any:
        with suppress(KeyboardInterrupt):
            # The interrupt of the listener comes here where no work was under way.
            self.interrupted.wait()
            for _ in range(1_000):
                pass
        self.sender.submit(partial(self.post.send, None, 0)).exception()
        self.sender.shutdown()
        kind, text, value = self.last
        if kind is None:
            return value
        raise everywhere(kind(text)) if issubclass(kind, Exception) else kind(text)


def _answer(work: tuple[Any, ...]) -> tuple[BaseException | None, Any]:
    """What a piece of work gives, or its error."""
    try:
        return None, carry_out(*work)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return RunError(f"a piece of work failed: {error!r}"), None
        return error, None
