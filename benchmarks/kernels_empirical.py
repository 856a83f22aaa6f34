"""The trace of a convolutional NTK beside a training step, per-sample passes and materialized Jacobians.

    python benchmarks/kernels_empirical.py

times, in one run and in turns, on NAS-Bench-201 networks, one thread, in seconds of the processor: a forward and
backward pass of the batch; the trace by contraction; the whole kernel; a backward pass of the batch for every sample
(as the code of KNAS and TE-NAS does it); a forward and backward pass of every sample alone; and the Jacobians of
torch.func. It prints medians and their ratios. Samples alone cost no more arithmetic than the batch, so on a
processor nothing can be many times faster than they are; the larger the layers, the less.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from _shared import CELL, Flags, in_turns, save
from nasight.gradients import materialized
from nasight.kernels import empirical_ntk, ntk_trace
from nasight.spaces import load

SIZES = ((16, 1, 32, 64), (8, 1, 16, 64), (8, 1, 16, 16))
"""Channels, cells per stage, pixels per side, batch."""
QUICK = ((4, 1, 8, 4),)


def step(network: nn.Module, x: Tensor) -> None:
    """One forward and backward pass of the batch."""
    network.train()
    network.zero_grad(set_to_none=True)
    network(x).sum().backward()


def per_sample(network: nn.Module, x: Tensor) -> float:
    """|gradient|^2 of one output after the other, each by a backward pass of the whole batch."""
    network.train()
    outputs, parameters = network(x).sum(1), list(network.parameters())
    total = 0.0
    for output in outputs:
        total += sum(float(g.square().sum()) for g in torch.autograd.grad(output, parameters, retain_graph=True))
    return total


def alone(network: nn.Module, x: Tensor) -> float:
    """|gradient|^2 example by example, a forward and a backward pass of one example each."""
    network.eval()
    total = 0.0
    for example in x:
        network.zero_grad(set_to_none=True)
        network(example[None]).sum().backward()
        total += sum(float(p.grad.square().sum()) for p in network.parameters() if p.grad is not None)
    return total


def unchecked(network: nn.Module, x: Tensor) -> float:
    """The trace without the backward pass that confirms the contraction."""

    class Credulous:
        def add(self, *use: Any) -> None: ...
        def check(self) -> None: ...

    def guard(module: nn.Module, rows: Tensor) -> tuple[Credulous, Tensor]:
        return Credulous(), torch.ones_like(rows)

    with patch("nasight.gradients._signals._guard", guard):
        return ntk_trace(network, x)


def jacobians(network: nn.Module, x: Tensor) -> float:
    """The same from the gradients of all examples, held at once."""
    parts = materialized(network, x, "eval", lambda logits, y: logits.sum(1)[None])
    return sum(float(part.square().sum()) for part in parts)


def measure(channels: int, cells: int, side: int, batch: int, repeats: int) -> dict[str, Any]:
    space = load("nasbench201")
    torch.manual_seed(0)
    network = space.network(space.parse(CELL), (3, side, side), 10, channels=channels, cells=cells)
    x = torch.randn(batch, 3, side, side)
    ways: dict[str, Callable[[], Any]] = {
        "forward and backward": lambda: step(network, x),
        "trace": lambda: ntk_trace(network, x),
        "trace, not checked": lambda: unchecked(network, x),
        "kernel": lambda: empirical_ntk(network, x),
        "per-sample backward passes": lambda: per_sample(network, x),
        "samples alone": lambda: alone(network, x),
        "torch.func Jacobians": lambda: jacobians(network, x),
    }
    exact = alone(network, x)
    for value in (jacobians(network, x), ntk_trace(network, x, batch_norm="eval")):
        if abs(value - exact) > 1e-3 * exact:
            raise SystemExit(f"the ways disagree: {value} and {exact}")
    medians = {name: statistics.median(values) for name, values in in_turns(ways, repeats).items()}
    return {
        "network": f"{channels} channels, {cells} cell(s) per stage, {side} x {side}, batch {batch}",
        "milliseconds": {name: 1e3 * value for name, value in medians.items()},
        "trace_over_step": medians["trace"] / medians["forward and backward"],
        "trace_over_unchecked": medians["trace"] / medians["trace, not checked"],
        "kernel_over_step": medians["kernel"] / medians["forward and backward"],
        "per_sample_over_trace": medians["per-sample backward passes"] / medians["trace"],
        "alone_over_trace": medians["samples alone"] / medians["trace"],
        "jacobians_over_trace": medians["torch.func Jacobians"] / medians["trace"],
    }


def main() -> None:
    given = Flags(__doc__, "kernels_empirical", seeds=5, chance="repeats of every timing").read(seeds=1)
    torch.set_num_threads(1)
    rows = [measure(*size, given.seeds) for size in (QUICK if given.quick else SIZES)]
    print(
        "| network | step, ms | trace, ms | trace / step | trace / not checked | kernel / step |"
        " per-sample backward / trace | samples alone / trace | Jacobians / trace |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        ms = row["milliseconds"]
        print(
            f"| {row['network']} | {ms['forward and backward']:.1f} | {ms['trace']:.1f} |"
            f" {row['trace_over_step']:.2f} | {row['trace_over_unchecked']:.2f} | {row['kernel_over_step']:.2f} |"
            f" {row['per_sample_over_trace']:.1f} | {row['alone_over_trace']:.1f} |"
            f" {row['jacobians_over_trace']:.1f} |"
        )
    save(given, {"rows": rows})


if __name__ == "__main__":
    main()
