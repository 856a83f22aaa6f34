"""What architectures of a space were worth on some data sets, and so may be worth on another."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import numpy as np

Gains = Mapping[str, Mapping[str, float]]
"""By data set, points of every architecture above the reference; all data sets have the same architectures."""


def in_order_of_worth(gains: Gains, *, without: str = "") -> list[str]:
    """Architectures from the best down: by the share of the others that each beats, the mean over data sets.

    What was measured on the data named `without`, or on a part of it, does not count.

    >>> gains = {"a": {"x": 0.0, "y": 1.0, "z": 2.0}, "b": {"x": 0.0, "y": 3.0, "z": -1.0}}
    >>> in_order_of_worth(gains), in_order_of_worth(gains, without="b (part)")
    (['y', 'z', 'x'], ['z', 'y', 'x'])
    """
    known = [_beaten(values) for name, values in gains.items() if not is_of(without, name)]
    shares = {name: fmean(beaten[name] for beaten in known) for name in (known[0] if known else ())}
    return sorted(shares, key=lambda name: (-shares[name], name))


def is_of(data: str, known: str) -> bool:
    """Whether data by this name are a data set that is known, or a part of it.

    >>> is_of("CIFAR-10 (part)", "cifar-10"), is_of("mnist", "fashion-mnist"), is_of("mnist2", "mnist")
    (True, False, False)
    """
    return data.lower().split(" ")[0] == known


def _beaten(values: Mapping[str, float]) -> dict[str, float]:
    """The share of the others that each is above; one that is level counts half."""
    all_values = np.array(list(values.values()))
    above = (all_values[:, None] > all_values).sum(1) + 0.5 * ((all_values[:, None] == all_values).sum(1) - 1)
    return dict(zip(values, (above / max(1, len(all_values) - 1)).tolist(), strict=True))
