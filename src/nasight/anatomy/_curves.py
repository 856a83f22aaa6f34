"""One training of a network, judged as it goes, and what its curve says of speed."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from nasight.architecture import Architecture
from nasight.data import Dataset, Prepared, prepare
from nasight.errors import RequestError
from nasight.reproducible import seeded
from nasight.spaces import load

TEST_BATCH = 500


@dataclass(frozen=True, slots=True)
class Protocol:
    """How every network is trained: SGD, a cosine that ends at 0, no regularisation but weight decay (Cells, A.3, A.4).

    The defaults are the paper's but for what costs time: epochs, channels, cells, and the number of examples.
    `evaluations` is how often in an epoch the test rows judge the network.
    """

    epochs: int = 10
    batch_size: int = 80
    momentum: float = 0.9
    weight_decay: float = 3e-4
    channels: int = 8
    cells: int = 5
    examples: int | None = None
    test_examples: int | None = None
    evaluations: int = 1
    augment: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "channels", "cells", "evaluations", "examples", "test_examples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise RequestError(f"{name} must be at least 1, got {value}")
        if self.batch_size < 2:
            raise RequestError(f"batch_size must be at least 2, got {self.batch_size}")
        if not 0 <= self.momentum < 1 or not 0 <= self.weight_decay < math.inf:
            raise RequestError(
                f"momentum must be in [0, 1) and weight_decay at least 0, got {self.momentum} and {self.weight_decay}"
            )


@dataclass(frozen=True, slots=True)
class Point:
    """The network on the test rows after so many steps; accuracy in percent."""

    step: int
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Training:
    """One training: its curve from the initial weights on, and whether it diverged.

    Diverged: a loss was not finite (the curve ends there), or the last test loss is above the first.
    """

    architecture: str
    lr: float
    seed: int
    steps: int
    curve: tuple[Point, ...]
    diverged: bool
    seconds: float

    @property
    def accuracy(self) -> float:
        return self.curve[-1].accuracy

    @property
    def loss(self) -> float:
        return self.curve[-1].loss

    @property
    def finished(self) -> bool:
        return self.curve[-1].step == self.steps

    def steps_to(self, loss: float) -> float | None:
        """Steps until the test loss is at most this, between two points along the line; None: never."""
        before: Point | None = None
        for point in self.curve:
            if point.loss <= loss:
                if before is None:
                    return float(point.step)
                share = (before.loss - loss) / (before.loss - point.loss)
                return before.step + share * (point.step - before.step)
            before = point
        return None

    def area(self) -> float | None:
        """The area under the curve of test losses over the steps, as a mean loss; None where the curve broke off.

        A loss above the first counts as the first: one bad point would otherwise be all that the area shows.
        """
        if not self.finished:
            return None
        losses = [min(point.loss, self.curve[0].loss) for point in self.curve]
        spans = [b.step - a.step for a, b in zip(self.curve[:-1], self.curve[1:], strict=True)]
        total = sum(span * (a + b) / 2 for span, a, b in zip(spans, losses[:-1], losses[1:], strict=True))
        return total / self.steps

    def to_dict(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture,
            "lr": self.lr,
            "seed": self.seed,
            "steps": self.steps,
            "diverged": self.diverged,
            "seconds": self.seconds,
            "curve": [[p.step, p.loss, p.accuracy] for p in self.curve],
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Training:
        try:
            curve = tuple(Point(int(s), float(loss), float(acc)) for s, loss, acc in row["curve"])
            if not curve:
                raise ValueError("no points")
            return cls(
                str(row["architecture"]),
                float(row["lr"]),
                int(row["seed"]),
                int(row["steps"]),
                curve,
                bool(row["diverged"]),
                float(row["seconds"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RequestError(f"a stored training is damaged: {error!r}") from error


def initial_network(space: str, arch: Architecture, data: Dataset, protocol: Protocol, seed: int) -> nn.Module:
    """The network with the initial weights of the seed."""
    size = {"channels": protocol.channels, "cells": protocol.cells}
    with seeded(seed, "initial weights"):
        return load(space).network(arch, data.inputs, data.n_classes, **size)


def train_curve(
    space: str, arch: Architecture, data: Dataset, protocol: Protocol, *, lr: float, seed: int
) -> tuple[Training, nn.Module]:
    """The curve of one training and the trained network; all chance follows from the seed."""
    if data.test_y is None:
        raise RequestError(f"data set {data.name!r} has no test part to draw a curve on")
    started, spaces, prepared = time.perf_counter(), load(space), prepare(data)
    network = initial_network(space, arch, data, protocol, seed)
    loader = prepared.loader(batch_size=protocol.batch_size, seed=seed, stream="train", augment=protocol.augment)
    total = protocol.epochs * loader.steps
    points = protocol.epochs * protocol.evaluations
    judged = {round(total * k / points) for k in range(points + 1)}
    optimiser = torch.optim.SGD(
        network.parameters(), lr=lr, momentum=protocol.momentum, weight_decay=protocol.weight_decay
    )
    curve, broken = list[Point](), False
    for step in range(total + 1):
        if step in judged:
            point = _judge(network, prepared, step)
            broken = not math.isfinite(point.loss)
            if broken:
                break
            curve.append(point)
        if step == total:
            break
        epoch, place = divmod(step, loader.steps)
        optimiser.param_groups[0]["lr"] = lr * (1 + math.cos(math.pi * epoch / protocol.epochs)) / 2
        x, y = loader.batch(epoch, place)
        network.train()
        loss = functional.cross_entropy(network(x), y)
        broken = not math.isfinite(loss.item())
        if broken:
            break
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    if not curve:
        raise RequestError(f"the test loss of {spaces.format(arch)[:120]} is not finite before training")
    diverged = broken or curve[-1].loss > curve[0].loss
    seconds = time.perf_counter() - started
    return Training(spaces.format(arch), lr, seed, total, tuple(curve), diverged, seconds), network


@torch.no_grad()
def _judge(network: nn.Module, data: Prepared, step: int) -> Point:
    network.eval()
    loss, correct, seen = 0.0, 0, 0
    for x, y in data.batches("test", size=TEST_BATCH):
        logits = network(x)
        loss += functional.cross_entropy(logits, y, reduction="sum").item()
        correct += int((logits.argmax(1) == y).sum())
        seen += len(y)
    return Point(step, loss / seen, 100 * correct / seen)
