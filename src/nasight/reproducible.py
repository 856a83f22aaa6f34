"""What makes a run give the same bits again: where global randomness comes from, and how many threads share a sum."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nasight.data import generator_for

_global_generator = threading.Lock()


@contextmanager
def seeded(*keys: str | int) -> Iterator[None]:
    """Global randomness (initial weights, dropout) that depends on the keys only; the caller's is left as it was."""
    with _global_generator, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(generator_for(*keys).initial_seed())
        yield


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """So many threads inside: sums depend on the number that share them, and a resumed run uses as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """So many threads inside for torch and for the linear algebra of numpy and scipy."""
    from threadpoolctl import threadpool_limits

    with torch_threads(number), threadpool_limits(number):
        yield
