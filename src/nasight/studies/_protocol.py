"""How the cells of one comparison are all trained."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from nasight.architecture import Architecture
from nasight.data import Dataset
from nasight.errors import RequestError
from nasight.spaces import Space
from nasight.training import Job, TrainSettings

CUTOUT, DROP_PATH = 16, 0.2
"""Cells, A.4."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How every network is trained: SGD, a cosine that ends at 0, no regularization but weight decay (Cells, A.3, A.4).

    The defaults are the paper's but for what costs time: epochs, channels, cells, and the number of examples.
    `evaluations` is how often per epoch the test rows judge the network. `regularize` adds what the paper's Table 1 has
    and its curves have not: augmentation with cutout of 16 pixels, the auxiliary head, and drop path up to 0.2.
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
    regularize: bool = False

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

    def kept(self) -> dict[str, Any]:
        """The protocol as a run folder keeps it; `regularize`, which came later, only where it is on."""
        return {name: value for name, value in asdict(self).items() if name != "regularize" or value}

    def job(self, space: Space, arch: Architecture, data: Dataset, *, lr: float, seed: int, device: str = "cpu") -> Job:
        """The training of an architecture under this protocol."""
        values: dict[str, Any] = {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "lr": lr,
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
            "clip": None,
            "augment": self.augment,
            "size": {"channels": self.channels, "cells": self.cells},
        }
        if self.regularize:
            if data.augmentation is None:
                raise RequestError(f"regularize cuts holes into images that may be augmented, not into {data.name!r}")
            values |= {"augment": True, "cutout": CUTOUT, "auxiliary": True, "drop_path": DROP_PATH}
        return Job(space, arch, data, TrainSettings(**values), seed, device=device)
