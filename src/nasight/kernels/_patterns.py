"""Which units of a network are active on which example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

RECTIFIERS = {
    F.relu,
    F.relu_,
    F.relu6,
    F.leaky_relu,
    F.leaky_relu_,
    torch.relu,
    torch.relu_,
    Tensor.relu,
    Tensor.relu_,
}


class _Watch(TorchFunctionMode):
    """Sees every rectifier, called as a layer or as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.active: list[Tensor] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in RECTIFIERS:
            x = args[0] if args else (kwargs or {})["input"]
            self.active.append((x.detach() > 0).flatten(1))
        return func(*args, **(kwargs or {}))


def activation_patterns(network: Callable[[Tensor], Any], x: Tensor) -> Tensor | None:
    """(n, units), bool: whether each rectified unit is above zero; None where the network has no rectifier."""
    watch = _Watch()
    with torch.no_grad(), watch:
        network(x)
    return torch.cat(watch.active, 1) if watch.active else None


def distinct(patterns: Tensor) -> int:
    """How many different rows there are."""
    import numpy as np

    packed = np.packbits(patterns.cpu().numpy(), axis=1)
    return len({row.tobytes() for row in packed})
