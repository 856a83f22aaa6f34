"""What the ranks of a test do, and one process for comparison."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nasight.data import load
from nasight.errors import RequestError, RunError
from nasight.geometry import Simplex
from nasight.searching import Method, Mixture, Objective, Schedule, search
from nasight.spaces import Choice
from nasight.training import Trainer, TrainingResult, load_trained, train

SMALL: dict[str, Any] = {
    "data": "digits",
    "preset": "tiny",
    "examples": 120,
    "epochs": 2,
    "batch_size": 16,
    "threads": 1,
}
CELL = {"channels": 4, "cells": 1}
SEARCHES: dict[str, dict[str, Any]] = {
    "mixture": {"space": "nasbench201", "method": "gaea-darts", "size": CELL},
    "second order": {"space": "nasbench201", "method": "darts-2nd", "size": CELL, "epochs": 1},
    "drawn": {"space": "nasbench201", "method": "gdas", "size": CELL},
    "per example": {"space": "nasbench201", "method": "xnas", "size": CELL},
    "rewards": {"space": "nasbench201", "method": "enas", "size": CELL, "candidates": 5, "candidate_rows": 8},
    "ranks of losses": {"space": "nasbench201", "method": "asng", "size": CELL},
    "candidates": {"space": "mlp", "method": "rs-ws", "candidates": 9, "size": {"width": 8}},
    "limit": {"space": "mlp", "method": "gaea-darts", "size": {"width": 8}, "max_params": 1_500},
    "dropout of skips": {
        "space": "darts",
        "method": "p-darts",
        "epochs": 3,
        "examples": 64,
        "size": {"channels": 4, "cells": 3},
    },
}


class Own(nn.Module):
    """A model with running statistics, which differ from slice to slice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))
        self.act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        self.last = nn.Linear(4, 10)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.act(self.first(x)).mean((2, 3)))
        return found


class Broken(Own):
    """Gives no number in one rank."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (math.nan if os.environ.get("RANK") == "1" else 1.0)


class Apart(Objective):
    """Takes gradients of its own slice alone."""

    name = "apart"

    def step(self, step: Any) -> None:
        step.move_architecture(torch.autograd.grad(step.loss("weights", learn=True), step.theta))


def searched(rank: int, name: str, out: str, **more: Any) -> dict[str, Any]:
    """A search, as one process or as a rank, and what it came to."""
    given = {**SMALL, **SEARCHES.get(name, {"space": Own})}
    run = search(out=Path(out), **{**given, **more})
    state = run.supernet().state_dict()
    return {
        "history": run.history,
        "result": run.result,
        "sums": [float(v.double().abs().sum()) for v in state.values()],
    }


def several(rank: int, names: list[str], out: str, **more: Any) -> dict[str, Any]:
    return {name: searched(rank, name, f"{out}/{name.replace(' ', '-')}", **more) for name in names}


def refused(rank: int, kind: str, out: str) -> str:
    """What a rank says when it cannot go on."""
    try:
        if kind == "broken":
            search(Broken, out=out, **SMALL)
        elif kind == "apart":
            method = Method("apart", Mixture(), Simplex(), (Apart(),), Schedule(), "a test")
            search("mlp", method, out=out, **SMALL)
        elif kind == "other data":
            data = load("digits")
            rows = slice(rank, None)
            search("mlp", out=out, **{**SMALL, "data": (data.train_x[rows].numpy(), data.train_y[rows].numpy())})
        elif kind == "one fails":
            search("mlp", out=out, **{**SMALL, "data": "digits" if rank == 0 else "nowhere.npz"})
        else:
            search("mlp", out=out, **{**SMALL, "slices": 1})
    except (RequestError, RunError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def trained(rank: int, out: str | None, **more: Any) -> dict[str, Any]:
    """A training with augmentation, holes and dropped paths, and what it came to."""
    given: dict[str, Any] = {
        "epochs": 2, "examples": 90, "batch_size": 24, "size": {"channels": 4, "cells": 3},
        "drop_path": 0.3, "cutout": 2, "threads": 1,
    }  # fmt: skip
    result = train("darts", "DARTS_V2", "digits", preset="tiny", out=out, **{**given, **more})
    return {"accuracy": result.accuracy, "curve": [row.train_loss for row in result.curve], "weights": _weights(result)}


def _weights(result: TrainingResult) -> dict[str, float]:
    if result.out is None:
        return {}
    network = load_trained(result.out)
    return {name: float(value.double().abs().sum()) for name, value in network.state_dict().items()}


def judged(rank: int) -> list[bool]:
    """Which test rows an untrained network gets right, in the order of the rows."""
    from nasight.compute import Slices, current_ranks
    from nasight.spaces import load as load_space
    from nasight.training import Job, settings_for

    space = load_space("mlp")
    job = Job(space, space.reference, load("digits"), settings_for(space, "tiny", batch_size=16), 0)
    ranks = current_ranks()
    right: list[bool] = Trainer(job, Slices(2, ranks)).right(50).tolist()
    return right
