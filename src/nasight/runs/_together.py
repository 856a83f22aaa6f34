"""Ranks that write one run, about the same data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from nasight.compute import Ranks, everywhere
from nasight.data import Dataset
from nasight.errors import RequestError
from nasight.runs._folder import RunFolder


def same_data(ranks: Ranks, dataset: Dataset) -> None:
    """Refuse to begin where a rank has loaded other data than the first one."""
    if ranks.size == 1:
        return
    found = ranks.all_values(dataset.fingerprint)
    for rank, fingerprint in enumerate(found):
        if fingerprint != found[0]:
            raise everywhere(
                RequestError(
                    f"rank {rank} has other data under {dataset.name!r} (fingerprint {fingerprint[:12]}) than rank 0 "
                    f"({found[0][:12]})"
                )
            )


@contextmanager
def writing(folder: RunFolder, ranks: Ranks) -> Iterator[None]:
    """The first rank holds the lock of a run; where it cannot have it, all end."""
    with ExitStack() as stack:
        with ranks.together():
            if ranks.first:
                stack.enter_context(folder.writing())
        yield
