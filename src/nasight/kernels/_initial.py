"""Initial weights other than a network's own, for scores that were published with them."""

from __future__ import annotations

from typing import Literal

from torch import nn

from nasight.errors import RequestError

INITS = ("own", "fan-in", "fan-out")
MODES: dict[str, Literal["fan_in", "fan_out"]] = {"fan-in": "fan_in", "fan-out": "fan_out"}


def reinitialize(network: nn.Module, init: str) -> nn.Module:
    """Draw the weights of convolutions and linear layers anew and set every bias to 0, batch norms to 1 and 0.

    Parameters
    ----------
    network : changed in place, and given back.
    init : "own" leaves the network as it is; "fan-in" and "fan-out" are Kaiming's normal law for relu: variance 2 over
        the numbers that enter or leave.

    >>> reinitialize(nn.Linear(2, 3), "fan-in").bias.tolist()
    [0.0, 0.0, 0.0]
    """
    if init not in INITS:
        raise RequestError(f"initial weights must be one of {', '.join(INITS)}, got {init!r}")
    if init == "own":
        return network
    for part in network.modules():
        for p in part.parameters(recurse=False):
            if p.dim() == 5 and not isinstance(part, nn.Conv3d):  # the kernels of all edges of a supernet's cell
                for kernel in p.detach():
                    nn.init.kaiming_normal_(kernel, mode=MODES[init], nonlinearity="relu")
        if isinstance(part, (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)):
            nn.init.kaiming_normal_(part.weight, mode=MODES[init], nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)) and part.affine:
            nn.init.ones_(part.weight)
            nn.init.zeros_(part.bias)
    return network
