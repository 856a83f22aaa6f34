"""The fast path of supernets against the plain one: one forward pass, backward pass and SGD step.

    python benchmarks/supernet_step.py --space nasbench201 --seeds 9 --out nasbench201.json.gz
    python benchmarks/supernet_step.py --space darts --seeds 3 --out darts.json.gz
    python benchmarks/supernet_step.py --space nasbench201 --seeds 5 --compile --out compiled.json.gz

Both paths are timed in turn on the same parameters, images and architecture weights, so that noise of the machine
hits both; a row is the median of the ratios with their quartiles. A sampled step draws one operation per edge anew each
time, the same for both; the plain path is timed evaluating all operations, drawn or not (leaving the others out is
part of what makes the fast path fast), and, in a row of its own, leaving them out as well. The fair peer is "modules":
a supernet as published code writes it, a module per edge and operation, in the memory layout that is fastest on a CPU
(channels-last), with parameters of its own. The last rows compare, on
the fast path, a step of the joint empirical risk (gradients of shared and architecture weights from one backward pass)
with plain training of the supernet at fixed uniform weights. `--compile` adds the compiled path, whose first step
takes minutes and is not counted but reported. The result in benchmarks/results/ holds the rows of the first two runs
and the compiled ones of the third.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from _shared import Flags, machine, save, timed
from nasight.spaces import Space, Supernet, load
from nasight.spaces._blocks import ReluConvNorm, ResidualReduction, Zero, stem
from nasight.spaces.darts._network import FactorizedReduce, operation

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
    print(f"{'space':<12} {'size':<22} {'a / b':<30} {'a, s':>8} {'b, s':>8} {'ratio':>6} {'quartiles':>13}")
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
                f"{name:<12} {sizes:<22} {label:<30} {row['a']:8.3f} {row['b']:8.3f} {row['ratio']:6.2f}"
                f" {low:6.2f}-{high:<6.2f}",
                flush=True,
            )
    about = {"benchmark": "supernet_step", "machine": machine(threads=given.threads, torch=torch.__version__)}
    save(given, {**about, "batch": given.batch, "repeats": given.seeds, "rows": rows})


class Peer(nn.Module):
    """A supernet of modules, edge by edge and operation by operation, for both spaces of cells."""

    def __init__(self, space: Space, channels: int, cells: int) -> None:
        super().__init__()
        self.two_inputs = "normal" in {group.name for group in space.groups()}
        build = _darts_layers if self.two_inputs else _nasbench201_layers
        self.stem, self.layers, width = build(space, channels, cells)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor, weights: dict[str, Tensor], skip_zeros: bool) -> Tensor:
        before = last = self.stem(x)
        for layer in self.layers:
            if not isinstance(layer, PeerCell):
                last = layer(last)
                continue
            out = layer([before, last] if self.two_inputs else [last], weights[layer.group], skip_zeros)
            before, last = last, out
        logits: Tensor = self.head(last.mean((2, 3)))
        return logits


class PeerCell(nn.Module):
    """A cell: every edge a list of modules, every node the weighted sum of what leads into it."""

    def __init__(
        self, group: str, inputs: nn.ModuleList, nodes: int, operations: Callable[[int], list[nn.Module]]
    ) -> None:
        super().__init__()
        self.group, self.inputs, self.joined = group, inputs, len(inputs) > 1
        sources = [range(len(inputs) + node) for node in range(nodes)]
        self.edges = nn.ModuleList(nn.ModuleList(operations(s)) for into in sources for s in into)
        self.counts = [len(into) for into in sources]

    def forward(self, given: list[Tensor], weights: Tensor, skip_zeros: bool) -> Tensor:
        nodes = [adapt(x) for adapt, x in zip(self.inputs, given, strict=True)]
        edge, values = 0, weights.tolist()
        for count in self.counts:
            terms, zero = list[Tensor](), self.edges[edge][0]
            for source in range(count):
                for i, module in enumerate(self.edges[edge]):
                    if not isinstance(module, Zero) and (values[edge][i] or not skip_zeros):
                        terms.append(weights[edge, i] * module(nodes[source]))
                edge += 1
            nodes.append(sum(terms[1:], terms[0]) if terms else zero(nodes[0]) * 0.0)
        return torch.cat(nodes[len(given) :], 1) if self.joined else nodes[-1]


def _nasbench201_layers(space: Space, channels: int, cells: int) -> tuple[nn.Module, nn.ModuleList, int]:
    names, layers = space.groups()[0].options[0], nn.ModuleList()
    for stage in range(3):
        width = channels * 2**stage
        if stage:
            layers.append(ResidualReduction(width // 2, width, running=False))

        def operations(source: int, width: int = width) -> list[nn.Module]:
            made: dict[str, nn.Module] = {
                "none": Zero(),
                "skip_connect": nn.Identity(),
                "nor_conv_1x1": ReluConvNorm(width, width, 1, affine=False, running=False),
                "nor_conv_3x3": ReluConvNorm(width, width, 3, affine=False, running=False),
                "avg_pool_3x3": nn.AvgPool2d(3, 1, 1, count_include_pad=False),
            }
            return [made[name] for name in names]

        layers.extend(PeerCell("operations", nn.ModuleList([nn.Identity()]), 3, operations) for _ in range(cells))
    return stem(3, channels, running=False), layers, 4 * channels


def _darts_layers(space: Space, channels: int, cells: int) -> tuple[nn.Module, nn.ModuleList, int]:
    names, layers = space.groups()[0].options[0], nn.ModuleList()
    before, last, reduced = 3 * channels, 3 * channels, False
    first = stem(3, last, running=False)
    for index in range(cells):
        reduce = index in (cells // 3, 2 * cells // 3)
        channels *= 2 if reduce else 1

        def operations(source: int, width: int = channels, reduce: bool = reduce) -> list[nn.Module]:
            stride = 2 if reduce and source < 2 else 1
            made = [Zero(stride) if name == "none" else operation(name, width, stride) for name in names]
            norm = partial(nn.BatchNorm2d, width, affine=False)
            return [nn.Sequential(m, norm()) if "pool" in n else m for n, m in zip(names, made, strict=True)]

        fit = FactorizedReduce(before, channels) if reduced else ReluConvNorm(before, channels, 1)
        adapters = nn.ModuleList([fit, ReluConvNorm(last, channels, 1)])
        layers.append(PeerCell("reduce" if reduce else "normal", adapters, 4, operations))
        before, last, reduced = last, 4 * channels, reduce
    return first, layers, last


class Case:
    """One supernet, one batch, and the steps that are timed on them."""

    def __init__(self, space: Space, size: dict[str, int], batch: int, seed: int) -> None:
        self.space = space
        self.generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.net: Supernet = space.supernet((3, 32, 32), 10, **size)
        self.x = torch.randn(batch, 3, 32, 32, generator=self.generator)
        self.y = torch.randint(10, (batch,), generator=self.generator)
        self.peer = Peer(space, **size).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
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
        """One step on a path of the supernet, or of the peer ("modules")."""
        given = {name: w.clone().requires_grad_(learn) for name, w in weights.items()}
        net: nn.Module = self.net
        if path == "modules":
            net = self.peer
            logits = self.peer(self.x.contiguous(memory_format=torch.channels_last), given, skip_zeros)
        else:
            self.net.path = path
            logits = self.net(self.x, given, skip_zeros=skip_zeros)
        loss = F.cross_entropy(logits, self.y)
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
            ("mixture: modules / fast", mixture("modules"), mixture("fast")),
            ("mixture: plain / fast", mixture("plain"), mixture("fast")),
            ("sampled: modules / fast", sampled("modules", True), sampled("fast", True)),
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
