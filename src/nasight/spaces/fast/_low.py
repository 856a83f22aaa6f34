"""Fast paths in mixed precision: convolutions in 16 bits, sums and the statistics of batch norms in float32."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor


def low_precision(x: Tensor) -> torch.dtype | None:
    """The precision of products where torch's autocast is on, else None."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def as_written(x: Tensor) -> AbstractContextManager[None]:
    """No autocast inside: a function with a backward pass of its own says itself what is rounded."""
    return torch.autocast(x.device.type, enabled=False)
