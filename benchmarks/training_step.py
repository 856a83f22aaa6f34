"""A step of a stand-alone training, with the channels of images last in memory and first, as PyTorch has them.

    python benchmarks/training_step.py

Networks of random architectures, forward and backward pass of one batch on one thread. Both sides are one network in
one process and take turns; the ratio of processor seconds is first / last. `nasight train` and `nasight find` hold
images of their own spaces with the channels last on a CPU. Prints medians and quartiles over architectures and repeats.
"""

from __future__ import annotations

import statistics
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from _shared import Flags, in_turns, machine, save
from nasight.spaces import PlainSpace, Space
from nasight.spaces import load as load_space

SIZES: list[tuple[str, dict[str, int], int]] = [
    ("nasbench201", {"channels": 8, "cells": 1}, 16),
    ("nasbench201", {"channels": 8, "cells": 1}, 32),
    ("nasbench201", {"channels": 16, "cells": 2}, 32),
    ("nasbench201", {"channels": 16, "cells": 5}, 32),
    ("darts", {"channels": 8, "cells": 3}, 32),
    ("darts", {"channels": 16, "cells": 8}, 32),
    ("nasbench1shot1-1", {"channels": 8, "cells": 1}, 32),
    ("plain", {}, 32),
]
REPEATS = 5
BATCH = 64


def ratios(space: Space, size: dict[str, int], side: int, seed: int, batch: int) -> list[float]:
    """First / last for one architecture, once per repeat; the first turn warms up."""
    generator = torch.Generator().manual_seed(seed)
    arch = space.reference if len(space) == 1 else space.sample(generator)
    first = space.network(arch, (3, side, side), 10, **size)
    last = deepcopy(first).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x, y = torch.randn(batch, 3, side, side, generator=generator), torch.randint(10, (batch,), generator=generator)

    def step(network: nn.Module) -> Any:
        return nn.functional.cross_entropy(network(x), y).backward()  # type: ignore[no-untyped-call]

    found = in_turns({"first": lambda: step(first), "last": lambda: step(last)}, REPEATS + 1)
    return [a / b for a, b in list(zip(found["first"], found["last"], strict=True))[1:]]


def main() -> None:
    flags = Flags(__doc__, "training_step", seeds=5, chance="architectures of each size")
    given = flags.read(seeds=1)
    torch.set_num_threads(1)
    lines = ["| space | size | pixels | first / last, median | quartiles |", "|---|---|---|---|---|"]
    rows = list[dict[str, Any]]()
    for name, size, side in SIZES[:1] if given.quick else SIZES:
        space = PlainSpace() if name == "plain" else load_space(name)
        values = [
            v for seed in range(given.seeds) for v in ratios(space, size, side, seed, 4 if given.quick else BATCH)
        ]
        low, middle, high = statistics.quantiles(values, n=4)
        shown = ", ".join(f"{key} {value}" for key, value in size.items())
        lines.append(f"| {name} | {shown} | {side} | {middle:.2f} | {low:.2f} to {high:.2f} |")
        rows.append({"space": name, "size": size, "pixels": side, "ratios": values})
        print(lines[-1], flush=True)
    save(given, {"machine": machine(), "rows": rows}, table="\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
