"""What a step of a search costs on a device besides computing: waits and bytes, counted on the fake device.

python tests/compute/waits.py            the table of docs/devices.md, for every method and space
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import fakegpu
import torch
from torch import Tensor, nn

from nasight.compute import to_host
from nasight.data import Dataset, load
from nasight.errors import RequestError
from nasight.searching import METHODS, Method
from nasight.searching._engine import Engine
from nasight.searching._search import chosen_space
from nasight.searching._settings import resolve
from nasight.searching.methods import check_fit
from nasight.spaces import Choice, Space

SIZES = {
    "nasbench201": {"channels": 4, "cells": 1},
    "nasbench1shot1-1": {"channels": 4, "cells": 1},
    "nasbench1shot1-2": {"channels": 4, "cells": 1},
    "nasbench1shot1-3": {"channels": 4, "cells": 1},
    "mlp": {"width": 8},
    "darts": {"channels": 4, "cells": 3},
    "own model": {},
}


class Own(nn.Module):
    """A model as a user writes it: options with and without weights, and a batch norm with running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))
        self.middle = Choice(
            {"conv": nn.Conv2d(4, 4, 3, padding=1), "pool": nn.AvgPool2d(3, 1, 1), "same": nn.Identity()}
        )
        self.act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        self.last = nn.Linear(4, 10)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.act(self.middle(self.first(x))).mean((2, 3)))
        return found


def chosen(space: str) -> tuple[Space, str, dict[str, Any]]:
    return chosen_space(Own if space == "own model" else space, None, none=None)


@cache
def digits() -> Dataset:
    return load("digits")


def engine(space: str, method: str, objective: str, device: object, **settings: object) -> Engine:
    """A search that has begun; the rate of the architecture is given, so that it need not be measured first."""
    row = METHODS[method]
    found, name, options = chosen(space)
    given = {"epochs": 3, "warmup": 0, "examples": 120, "batch_size": 8, "arch_lr": 0.05, "size": SIZES[space]}
    resolved = resolve(
        row,
        found,
        name=name,
        space_options=options,
        data="digits",
        objective=objective,
        preset="tiny",
        **{**given, "device": str(device), **settings},
    )
    begun = Engine(resolved, found, digits(), row)
    begun.set_epoch(0)
    return begun


def objectives(space: str, method: str) -> list[str]:
    """Those of a method that a space can have; empty where the two do not fit."""
    row, (found, _, _) = METHODS[method], chosen(space)
    try:
        check_fit(row, found, None)
    except RequestError:
        return []
    return [objective.name for objective in row.objectives]


def step(begun: Engine, index: int = 0) -> None:
    """One step, and one of the phase where there is one."""
    begun.advance(0, index)
    if begun.phase:
        begun.advance(0, begun.steps + index)


def values(begun: Engine) -> dict[str, Tensor]:
    """Architecture parameters and shared weights, on the CPU."""
    found = {f"theta {name}": p.detach() for name, p in begun.params.items()}
    return to_host({**found, **begun.supernet.state_dict()})


def budget(method: Method) -> int:
    """How often a step may wait: never for a mixture, twice where something is drawn."""
    return 0 if method.relaxation.on_device else 2


@dataclass(frozen=True)
class Cost:
    method: str
    objective: str
    waits: int
    bytes: int
    places: tuple[str, ...]


def costs(space: str) -> Iterator[Cost]:
    """Of the second step of the default objective of every method that fits."""
    with fakegpu.present() as device:
        for name in METHODS:
            for objective in objectives(space, name)[:1]:
                begun = engine(space, name, objective, device)
                step(begun)
                with fakegpu.counting() as ledger:
                    step(begun, 1)
                moved = ledger.to_device + ledger.to_host
                yield Cost(name, objective, ledger.synchronizations, moved, tuple(ledger.waits))


def table() -> str:
    found = {space: {cost.method: cost for cost in costs(space)} for space in SIZES}
    lines = [f"| method | {' | '.join(SIZES)} |", f"|---|{'---:|' * len(SIZES)}"]
    for name in METHODS:
        cells = [
            f"{cost.waits} / {cost.bytes:,}" if (cost := found[space].get(name)) is not None else "-" for space in SIZES
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(table())
