"""A loss contour beside its forward passes, and gradient variance beside a loop over the examples.

    python benchmarks/landscape.py

times, in one run and in turns, on one thread: the contour of a small grid and as many plain forward passes with the
same batches and the same loss; gradient variance of 128 examples by contraction, by torch.func, by a loop of backward
passes of one example, and a forward and backward pass of the batch. It prints medians, quartiles and ratios, checks
that the ways agree to 1e-6, and last takes the wall time of a 41 x 41 contour of a network trained on digits, on two
processes.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from _shared import CELL, Flags, in_turns, save
from nasight.anatomy import gradient_variance, landscape
from nasight.data import load as load_data
from nasight.data import prepare
from nasight.gradients import materialized
from nasight.spaces import load as load_space
from nasight.training import load_trained, train

CROSS_ENTROPY = partial(cross_entropy, reduction="none")
EXAMPLES = 128
NETWORKS: list[tuple[str, str, dict[str, int]]] = [
    ("nasbench201", CELL, {"channels": 4, "cells": 1}),
    ("nasbench201", CELL, {"channels": 16, "cells": 1}),
    ("darts", "DARTS_V2", {"channels": 4, "cells": 3}),
]


def quartiles(values: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else 3 * values
    return {"median": middle, "low": low, "high": high}


def forward_passes(network: nn.Module, x: Tensor, y: Tensor, points: int) -> float:
    """As many as a contour of points x points needs."""
    total = 0.0
    with torch.inference_mode():
        for _ in range(points * points):
            total += float(CROSS_ENTROPY(network(x), y).sum(dtype=torch.float64)) / len(x)
    return total


def loop(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """E|g_i|^2 - |E g_i|^2 from a forward and a backward pass of one example after the other."""
    parameters = list(network.parameters())
    sums, squares = [torch.zeros_like(p) for p in parameters], 0.0
    for i in range(len(x)):
        grads = torch.autograd.grad(cross_entropy(network(x[i : i + 1]), y[i : i + 1]), parameters)
        squares += sum(float(g.square().sum()) for g in grads)
        for total, g in zip(sums, grads, strict=True):
            total += g
    return squares / len(x) - sum(float((s / len(x)).square().sum()) for s in sums)


def functional(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """The same from the gradients of all examples (torch.func), held at once."""
    parts = materialized(network, x, "eval", lambda logits, labels: CROSS_ENTROPY(logits, labels)[None], None, y)
    return sum(float((p.double() - p.double().mean(0)).square().sum(2).mean()) for p in parts)


def step(network: nn.Module, x: Tensor, y: Tensor) -> None:
    torch.autograd.grad(cross_entropy(network(x), y), list(network.parameters()))


def measure(space: str, cell: str, size: dict[str, int], points: int, repeats: int) -> dict[str, Any]:
    data = prepare(load_data("digits"))
    x, y = next(data.batches("train", size=EXAMPLES))
    where = load_space(space)
    torch.manual_seed(0)
    network = where.network(where.parse(cell), tuple(x.shape[1:]), 10, **size)
    network.train()(x)  # running statistics that are not the initial ones
    network.eval()
    double, x64 = network.double(), x.double()
    exact = loop(double, x64, y)
    off = {
        "float64": abs(gradient_variance(double, x64, y) / exact - 1),
        "torch.func, float64": abs(functional(double, x64, y) / exact - 1),
        "float32": abs(gradient_variance(network.float(), x, y) / exact - 1),
    }
    seconds = in_turns(
        {
            "contour": lambda: landscape(network, x, y, points=points, workers=1),
            "forward passes": lambda: forward_passes(network, x, y, points),
            "variance": lambda: gradient_variance(network, x, y),
            "loop": lambda: loop(network, x, y),
            "torch.func": lambda: functional(network, x, y),
            "step": lambda: step(network, x, y),
        },
        repeats,
    )
    ratios = {
        "contour / forward passes": ("contour", "forward passes"),
        "loop / variance": ("loop", "variance"),
        "torch.func / variance": ("torch.func", "variance"),
        "variance / step": ("variance", "step"),
    }
    return {
        "network": f"{space}, " + ", ".join(f"{k} {v}" for k, v in size.items()),
        "parameters": sum(p.numel() for p in network.parameters()),
        "examples": EXAMPLES,
        "milliseconds": {name: quartiles([1e3 * s for s in values]) for name, values in seconds.items()},
        "ratios": {
            name: quartiles([a / b for a, b in zip(seconds[over], seconds[under], strict=True)])
            for name, (over, under) in ratios.items()
        },
        "relative_error": off,
    }


def processor() -> float:
    """Seconds of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def contour_of_trained_digits(folder: Path, points: int, epochs: int, workers: int) -> dict[str, Any]:
    train("nasbench201", CELL, "digits", preset="tiny", epochs=epochs, out=folder)
    network = load_trained(folder)
    x, y = next(prepare(load_data("digits")).batches("test", size=10_000))
    start, before = time.perf_counter(), processor()
    found = landscape(network, x, y, points=points, workers=workers)
    seconds, busy = time.perf_counter() - start, processor() - before
    size = sum(p.numel() for p in network.parameters())
    shown = {"seconds": seconds, "processor_seconds": busy, "workers": workers, "loss": found.center}
    return {**shown, "points": points, "examples": len(x), "parameters": size}


def main() -> None:
    flags = Flags(__doc__, "landscape", seeds=9, chance="repeats of every timing")
    flags.add_argument("--workers", type=int, default=2, help="processes of the contour of a trained network")
    flags.add_argument("--training", type=Path, help="a folder for the trained network (else a temporary one)")
    given = flags.read(seeds=2, workers=1)
    torch.set_num_threads(1)
    networks, points, large, epochs = (NETWORKS[:1], 3, 5, 1) if given.quick else (NETWORKS, 11, 41, 5)
    rows = [measure(*network, points, given.seeds) for network in networks]
    names = list(rows[0]["ratios"])
    print("| network | parameters | " + " | ".join(names) + " | error, float32 | float64 |")
    print("|---" * (len(names) + 4) + "|")
    for row in rows:
        shown = [f"{r['median']:.2f} ({r['low']:.2f}-{r['high']:.2f})" for r in row["ratios"].values()]
        errors = f"{row['relative_error']['float32']:.1e} | {row['relative_error']['float64']:.1e}"
        print(f"| {row['network']} | {row['parameters']} | {' | '.join(shown)} | {errors} |")
    with tempfile.TemporaryDirectory() as folder:
        contour = contour_of_trained_digits(given.training or Path(folder) / "digits", large, epochs, given.workers)
    print(
        f"{large} x {large} contour of a trained digits network ({contour['parameters']} parameters, "
        f"{contour['examples']} examples, {contour['workers']} processes): {contour['seconds']:.1f} s, "
        f"{contour['processor_seconds']:.1f} s of the processor"
    )
    save(given, {"rows": rows, "contour": contour})


if __name__ == "__main__":
    main()
