"""What turns new examples into the inputs of a trained network: kept beside its weights, so that its data may go."""

from __future__ import annotations

from typing import Any

import torch

from nasight.data._loader import Prepared
from nasight.data._maps import extent


def input_record(prepared: Prepared) -> dict[str, Any]:
    """The normalization, the columns of a table, the units of numbers and the fit of photos, as plain values.

    Parameters
    ----------
    prepared : the data as the network had it in its training.

    >>> from nasight.data import load, prepare
    >>> input_record(prepare(load("digits")))["values"]
    {'type': 'float32', 'low': 0.0, 'high': 1.0}
    """
    data, task = prepared.dataset, prepared.dataset.task
    low, high = (0.0, 255.0) if data.train_x.dtype == torch.uint8 else extent(data.train_x)
    return {
        "mean": prepared.mean.tolist(),
        "std": prepared.std.tolist(),
        "values": {"type": str(data.train_x.dtype).removeprefix("torch."), "low": low, "high": high},
        "task": {"kind": task.kind, "center": list(task.center), "scale": list(task.scale)},
        "table": None if data.table is None else data.table.to_list(),
        **({} if data.fit is None else {"images": {"fit": data.fit, "orientation": "upright"}}),
    }
