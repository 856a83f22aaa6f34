"""The drift towards skip connections, seen while it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nasight.spaces import Space

SKIP = "skip_connect"
SHARE = 0.5
RISES = 2


@dataclass(frozen=True)
class Collapse:
    """`shares`: of the operations that the arg max keeps in an epoch (reduction cells apart) those that are skips.

    `flagged`: the first epoch, from 0, in which half of them are, while the mean weight of skips is above uniform and
    has risen twice in a row. `complete`: the first epoch from which on all of them are. None where it is not so.
    """

    shares: tuple[float, ...]
    weights: tuple[float, ...]
    flagged: int | None
    complete: int | None

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "shares": list(self.shares), "weights": list(self.weights)}


def collapse(weights_history: Sequence[Mapping[str, Any]], space: Space) -> Collapse | None:
    """Whether and when a search drifts towards skip connections, from its weights epoch by epoch.

    None where the space has no `skip_connect`.
    """
    groups = [g for g in space.groups() if g.exclusive and any(SKIP in options for options in g.options)]
    if not groups or not weights_history:
        return None
    shares, means, uniform = [], [], 0.0
    for epoch in weights_history:
        weights = {name: torch.as_tensor(np.asarray(value)) for name, value in epoch.items()}
        kept = [o for name, o in space.derive(weights) if o != "none" and not space.reduces(name)]
        shares.append(sum(o == SKIP for o in kept) / max(len(kept), 1))
        rows = [
            (row[options.index(SKIP)], 1 / len(options))
            for g in groups
            for name, options, row in zip(g.rows, g.options, g.split(weights[g.name]), strict=True)
            if SKIP in options and not space.reduces(name)
        ]
        means.append(float(np.mean([float(w) for w, _ in rows])))
        uniform = float(np.mean([u for _, u in rows]))
    rising = np.concatenate([[False], np.diff(means) > 0])
    flagged = next(
        (
            e
            for e in range(RISES, len(shares))
            if shares[e] >= SHARE and means[e] > uniform and rising[e - RISES + 1 : e + 1].all()
        ),
        None,
    )
    tail = len(shares)
    while tail and shares[tail - 1] == 1:
        tail -= 1
    return Collapse(tuple(shares), tuple(means), flagged, tail if tail < len(shares) else None)
