"""Stratified random parts of the rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nasight.errors import RequestError


def split_indices(y: Tensor, sizes: Sequence[int], generator: torch.Generator) -> list[Tensor]:
    """Disjoint random sets of row numbers, each with every class in proportion, each in ascending order.

    A set that is large enough holds every class, as far as the rows of a class reach.

    Parameters
    ----------
    y : the labels 0 to k - 1 of all rows, (n,).
    sizes : how many rows each set has; together at most n.
    generator : where the randomness comes from.

    >>> first, second = split_indices(torch.tensor([0, 0, 1, 1]), [2, 2], torch.Generator().manual_seed(0))
    >>> sorted(first.tolist() + second.tolist())
    [0, 1, 2, 3]
    """
    if not sizes or min(sizes) < 1:
        raise RequestError(f"every part of a split needs at least 1 row, got sizes {list(sizes)}")
    if sum(sizes) > len(y):
        asked = " + ".join(map(str, sizes))
        raise RequestError(f"a split into {asked} rows needs {sum(sizes)} rows, but there are {len(y)}")
    shuffled = torch.randperm(len(y), generator=generator)
    rows = shuffled[torch.argsort(y[shuffled], stable=True)]  # by class, in random order within one
    counts = torch.bincount(y)
    # Ties between classes fall to the first one: a random order of the classes makes that fair.
    order = torch.randperm(len(counts), generator=generator).tolist()
    by_class = torch.split(rows, counts.tolist())
    pools = {label: by_class[label] for label in order}
    parts = []
    for position, size in enumerate(sizes):
        left = torch.tensor([len(pool) for pool in pools.values()])
        later = sum(s >= len(counts) for s in sizes[position + 1 :])
        part = []
        for label, take in zip(list(pools), _shares(left, size, later).tolist(), strict=True):
            part.append(pools[label][:take])
            pools[label] = pools[label][take:]
        parts.append(torch.cat(part).sort().values)
    return parts


def _shares(left: Tensor, size: int, later: int) -> Tensor:
    """How many of `size` rows each class gives, in proportion to what is `left` of it.

    Where it can be, no class gives nothing, and each keeps one row for each of the `later` parts.
    """
    quota = size * left.double() / left.sum()
    low = left.clamp(max=1) if size >= int((left > 0).sum()) else torch.zeros_like(left)
    high = torch.maximum(left - later, low)
    if int(high.sum()) < size:
        high = left
    take = torch.minimum(torch.maximum(quota.floor().long(), low), high)
    while (missing := size - int(take.sum())) != 0:
        if missing > 0:
            take[(quota - take).where(take < high, -torch.inf).argmax()] += 1
        else:
            take[(take - quota).where(take > low, -torch.inf).argmax()] -= 1
    return take
