"""What one example costs a network: multiply-adds of its convolutions and linear layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

COUNTED = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
LOOKED_UP = (nn.Embedding, nn.EmbeddingBag)
"""Layers with a matrix of which rows are read, not multiplied."""


def multiply_adds(network: nn.Module, inputs: tuple[int, ...]) -> int:
    """Products of the convolutions and linear layers for one example, as papers count them.

    Norms, activations and pools are not counted. The network is called once, in evaluation mode, on zeros.

    >>> multiply_adds(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Flatten(), nn.Linear(8 * 16, 10)), (3, 4, 4))
    4736
    """
    counts = list[int]()

    def count(layer: nn.Module, args: tuple[Tensor, ...], out: Tensor) -> None:
        assert isinstance(layer.weight, Tensor)
        counts.append(out.numel() * layer.weight[0].numel())

    first = next(network.parameters(), torch.zeros(()))
    handles = [m.register_forward_hook(count) for m in network.modules() if isinstance(m, COUNTED)]
    training = network.training
    try:
        with torch.no_grad():
            network.eval()(torch.zeros(1, *inputs, device=first.device, dtype=first.dtype))
    finally:
        network.train(training)
        for handle in handles:
            handle.remove()
    return sum(counts)


def known_multiply_adds(network: nn.Module, inputs: tuple[int, ...]) -> int | None:
    """The `multiply_adds` of a model; None where it has matrices in other layers, or takes no example of zeros.

    >>> known_multiply_adds(nn.Linear(4, 2), (4,)), known_multiply_adds(nn.LSTM(4, 2), (3, 4))
    (8, None)
    """
    layers = (m for m in network.modules() if not isinstance(m, (*COUNTED, *LOOKED_UP)))
    if any(p.dim() > 1 for layer in layers for p in layer.parameters(recurse=False)):
        return None
    try:
        return multiply_adds(network, inputs)
    except Exception:  # the model may be the user's own
        return None
