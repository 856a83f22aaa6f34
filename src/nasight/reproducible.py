"""What makes a run give the same bits again: where global randomness comes from, and how many threads share a sum."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nasight.errors import RequestError

MOST_THREADS = 4_096
"""More are a mistake, and torch cannot take any number."""

_global_generator = threading.Lock()


def generator_for(*keys: str | int) -> torch.Generator:
    """A generator that depends on the keys and on nothing else.

    >>> draw = torch.rand(1, generator=generator_for(0, "train", 3))
    >>> bool(draw == torch.rand(1, generator=generator_for(0, "train", 3)))
    True
    """
    digest = hashlib.sha256(json.dumps(keys).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


@contextmanager
def seeded(*keys: str | int, device: torch.device | None = None) -> Iterator[None]:
    """Global randomness (initial weights, dropout) that depends on the keys only; the caller's is left as it was.

    With a `device`, that of its own generator too, for what torch draws there by itself, such as the dropout of a
    user's module. Everything that this library draws is drawn on the CPU.
    """
    seed = generator_for(*keys).initial_seed()
    with _global_generator, torch.random.fork_rng(devices=[]), _seeded_device(device, seed):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def _seeded_device(device: torch.device | None, seed: int) -> Iterator[None]:
    if device is None or device.type == "cpu":
        yield
        return
    module = torch.get_device_module(device)
    before = module.get_rng_state()
    module.manual_seed(seed)
    try:
        yield
    finally:
        module.set_rng_state(before)


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """This number of threads inside: sums depend on how many share them, and a resumed run uses as many as before."""
    if not 1 <= number <= MOST_THREADS:
        raise RequestError(f"threads must be a number from 1 to {MOST_THREADS:,}, got {number}")
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """This number of threads inside, for torch and for the linear algebra of numpy and scipy."""
    from threadpoolctl import threadpool_limits

    with torch_threads(number), threadpool_limits(number):
        yield
