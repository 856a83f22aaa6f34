"""The fast path of supernets against the plain one: one forward pass, backward pass and SGD step.

    python benchmarks/supernet_step.py --space nasbench201 --seeds 25 --out nasbench201.json.gz
    python benchmarks/supernet_step.py --space darts --seeds 3 --out darts.json.gz
    python benchmarks/supernet_step.py --space nasbench201 --seeds 5 --compile --out compiled.json.gz

Both paths are timed in turn on the same parameters, images and architecture weights, so that noise of the machine
hits both; a row is the median of the ratios with their quartiles. A sampled step draws one operation per edge anew each
time, the same for both; the plain path is timed evaluating all operations, drawn or not (leaving the others out is
part of what makes the fast path fast), and, in a row of its own, leaving them out as well. The plain path computes as
published code does, edge by edge; "channels-last" is the same with images and parameters in that memory layout, which a
careful user would choose on a CPU: the fair peer. The last rows compare, on
the fast path, a step of the joint empirical risk (gradients of shared and architecture weights from one backward pass)
with plain training of the supernet at fixed uniform weights. `--compile` adds the compiled path, whose first step
takes minutes and is not counted but reported. The result in benchmarks/results/ holds the rows of the first two runs
and the compiled ones of the third.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from _shared import Flags, machine, save, timed
from nasight.spaces import Space, Supernet, load

CASES = (
    ("nasbench201", {"channels": 16, "cells": 1}),
    ("nasbench201", {"channels": 16, "cells": 5}),
    ("darts", {"channels": 16, "cells": 8}),
)
QUICK = (("nasbench201", {"channels": 4, "cells": 1}), ("darts", {"channels": 4, "cells": 3}))
RATE = 0.025


def main() -> None:
    flags = Flags(__doc__, "supernet_step", seeds=7, chance="repeats of every timing")
    flags.add_argument("--batch", type=int, default=64)
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--seed", type=int, default=0, help="of the weights and images")
    flags.add_argument("--space", help="only this space")
    flags.add_argument("--compile", action="store_true", help="time the compiled path too")
    given = flags.read(seeds=1, batch=4, threads=1)
    torch.set_num_threads(given.threads)
    rows = list[dict[str, Any]]()
    print(f"{'space':<12} {'size':<22} {'a / b':<44} {'a, s':>8} {'b, s':>8} {'ratio':>6} {'quartiles':>13}")
    for name, size in QUICK if given.quick else CASES:
        if given.space not in (None, name):
            continue
        case = Case(load(name), size, given.batch, given.seed)
        for label, a, b in case.pairs(compiled=given.compile):
            row = {"space": name, "size": size, "ratio of": label, **compare(a, b, given.seeds)}
            rows.append(row)
            low, high = row["quartiles"]
            sizes = ", ".join(f"{k} {v}" for k, v in size.items())
            print(
                f"{name:<12} {sizes:<22} {label:<44} {row['a']:8.3f} {row['b']:8.3f} {row['ratio']:6.2f}"
                f" {low:6.2f}-{high:<6.2f}",
                flush=True,
            )
    about = {"benchmark": "supernet_step", "machine": machine(threads=given.threads, torch=torch.__version__)}
    save(given, {**about, "batch": given.batch, "repeats": given.seeds, "rows": rows})


class Case:
    """One supernet, one batch, and the steps that are timed on them."""

    def __init__(self, space: Space, size: dict[str, int], batch: int, seed: int) -> None:
        self.space = space
        self.generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.net: Supernet = space.supernet((3, 32, 32), 10, **size)
        self.x = torch.randn(batch, 3, 32, 32, generator=self.generator)
        self.y = torch.randint(10, (batch,), generator=self.generator)
        self.peer: Supernet = deepcopy(self.net).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizers = {
            net: torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9, weight_decay=3e-4)
            for net in (self.net, self.peer)
        }
        self.uniform = {g.name: g.uniform() for g in space.groups()}

    def drawn(self, draw: int) -> dict[str, Tensor]:
        """One operation per edge, drawn uniformly, as weights of ones and zeros."""
        generator = torch.Generator().manual_seed(draw)
        drawn = dict[str, Tensor]()
        for name, weights in self.uniform.items():
            index = torch.randint(weights.shape[1], (len(weights),), generator=generator)
            drawn[name] = F.one_hot(index, weights.shape[1]).float()
        return drawn

    def step(self, path: str, weights: dict[str, Tensor], *, learn: bool, skip_zeros: bool) -> None:
        """One step on a path; "channels-last" is the plain one in that layout."""
        last = path == "channels-last"
        net = self.peer if last else self.net
        net.path = "plain" if last else path
        x = self.x.contiguous(memory_format=torch.channels_last) if last else self.x
        given = {name: w.clone().requires_grad_(learn) for name, w in weights.items()}
        loss = F.cross_entropy(net(x, given, skip_zeros=skip_zeros), self.y)
        self.optimizers[net].zero_grad()
        loss.backward()
        self.optimizers[net].step()

    def pairs(self, *, compiled: bool) -> list[tuple[str, Callable[[int], None], Callable[[int], None]]]:
        """(what is compared, step a, step b), steps of the repeat they are given."""

        def mixture(path: str, learn: bool = True) -> Callable[[int], None]:
            return lambda repeat: self.step(path, self.uniform, learn=learn, skip_zeros=False)

        def sampled(path: str, skip: bool) -> Callable[[int], None]:
            return lambda repeat: self.step(path, self.drawn(repeat), learn=True, skip_zeros=skip)

        found = [
            ("mixture: plain, channels-last / fast", mixture("channels-last"), mixture("fast")),
            ("mixture: plain / fast", mixture("plain"), mixture("fast")),
            ("sampled: plain, channels-last, skips / fast", sampled("channels-last", True), sampled("fast", True)),
            ("sampled: plain / fast", sampled("plain", False), sampled("fast", True)),
            ("sampled: plain, skips / fast", sampled("plain", True), sampled("fast", True)),
            ("fast: ERM / fixed weights", mixture("fast"), mixture("fast", learn=False)),
        ]
        if compiled:
            found.append(("mixture: plain / compiled", mixture("plain"), mixture("compiled")))
        return found


def compare(a: Callable[[int], None], b: Callable[[int], None], repeats: int) -> dict[str, Any]:
    """Seconds of both, timed in turn after one step to warm up, and the ratio."""
    first = [timed(partial(step, 0)) for step in (a, b)]
    times = [tuple(timed(partial(step, repeat)) for step in (a, b)) for repeat in range(repeats)]
    pairs = np.array(times)
    low, ratio, high = np.quantile(pairs[:, 0] / pairs[:, 1], [0.25, 0.5, 0.75]).tolist()
    medians = np.median(pairs, 0).tolist()
    return {"a": medians[0], "b": medians[1], "ratio": ratio, "quartiles": [low, high], "first": first, "times": times}


if __name__ == "__main__":
    main()
