"""A step of a stand-alone training: channels of images last in memory or first, 32-bit products or bfloat16.

    python benchmarks/training_step.py

Networks of random architectures, forward and backward pass of one batch on one thread. All sides are one network in one
process and take turns. The ratios of processor seconds are first / last, and, with the channels last, 32 / bf16.
`nasight train` and `nasight find` hold images of their own spaces with the channels last on a CPU; bfloat16 is their
--precision bf16. Prints medians and quartiles over architectures and repeats.
"""

from __future__ import annotations

import statistics
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from _shared import Flags, in_turns, machine, save
from nasight.compute import autocast
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


def ratios(space: Space, size: dict[str, int], side: int, seed: int, batch: int) -> dict[str, list[float]]:
    """Both ratios for one architecture, once per repeat; the first turn warms up."""
    generator = torch.Generator().manual_seed(seed)
    arch = space.reference if len(space) == 1 else space.sample(generator)
    first = space.network(arch, (3, side, side), 10, **size)
    last = deepcopy(first).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x, y = torch.randn(batch, 3, side, side, generator=generator), torch.randint(10, (batch,), generator=generator)

    def step(network: nn.Module, precision: str = "32") -> Any:
        with autocast(torch.device("cpu"), precision):
            out = network(x)
        return nn.functional.cross_entropy(out.float(), y).backward()  # type: ignore[no-untyped-call]

    ways = {"first": lambda: step(first), "last": lambda: step(last), "bf16": lambda: step(last, "bf16")}
    seconds = in_turns(ways, REPEATS + 1)
    return {
        name: [a / b for a, b in list(zip(seconds[one], seconds[other], strict=True))[1:]]
        for name, one, other in (("first / last", "first", "last"), ("32 / bf16", "last", "bf16"))
    }


def main() -> None:
    flags = Flags(__doc__, "training_step", seeds=5, chance="architectures of each size")
    given = flags.read(seeds=1)
    torch.set_num_threads(1)
    lines = ["| space | size | pixels | first / last | quartiles | 32 / bf16 | quartiles |", "|---|" + "---|" * 6]
    rows = list[dict[str, Any]]()
    for name, size, side in SIZES[:1] if given.quick else SIZES:
        space = PlainSpace() if name == "plain" else load_space(name)
        found = [ratios(space, size, side, seed, 4 if given.quick else BATCH) for seed in range(given.seeds)]
        values = {ratio: [v for one in found for v in one[ratio]] for ratio in found[0]}
        cells = [f"{m:.2f} | {a:.2f} to {b:.2f}" for a, m, b in (statistics.quantiles(v, n=4) for v in values.values())]
        shown = ", ".join(f"{key} {value}" for key, value in size.items())
        lines.append(f"| {name} | {shown} | {side} | {' | '.join(cells)} |")
        rows.append({"space": name, "size": size, "pixels": side, "ratios": values})
        print(lines[-1], flush=True)
    save(given, {"machine": machine(), "rows": rows}, table="\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
