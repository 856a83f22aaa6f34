"""The stand-alone network of the fully connected space, and what its supernet shares with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

ACTIVATIONS = ("relu", "leaky_relu", "sigmoid", "tanh", "swish")


@dataclass(frozen=True)
class Form:
    """How the matrices of a network of `layers` layers are drawn and scaled; see `Mlp`."""

    layers: int
    slope: float
    parametrization: str
    scale_inputs: bool

    def deviation(self, layer: int, inputs: int, width: int) -> float:
        """The standard deviation of the entries of a layer's matrix, counted from 0."""
        if self.parametrization != "standard":
            return 1.0
        return (2 / width) ** 0.5 if layer else inputs**-0.5 if self.scale_inputs else 1.0

    def matrices(self, inputs: int, classes: int, width: int) -> nn.ModuleList:
        """The L linear maps, initialized for the parametrization."""
        ends = [inputs, *[width] * (self.layers - 1), classes]
        maps = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(ends))
        for i, parameter in enumerate(maps.parameters()):
            nn.init.normal_(parameter, std=self.deviation(i, inputs, width))
        return maps

    def factors(self, inputs: int, width: int) -> tuple[float, float]:
        """What x and every activation are multiplied with in the pass."""
        if self.parametrization == "standard":
            return 1.0, 1.0
        return inputs**-0.5 if self.scale_inputs else 1.0, (2 / width) ** 0.5

    def activation(self, name: str) -> nn.Module:
        """The activation of this name."""
        kinds: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "sigmoid": CenteredSigmoid, "tanh": nn.Tanh}
        if name == "leaky_relu":
            return nn.LeakyReLU(self.slope)
        return kinds.get(name, nn.SiLU)()


class CenteredSigmoid(nn.Module):
    """The sigmoid minus 1/2, so that it is zero at zero."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x) - 0.5


class MlpNetwork(nn.Module):
    """Matrices with an activation after each but the last, and skips over the inner ones."""

    def __init__(
        self, form: Form, activations: Sequence[str], skips: Sequence[bool], inputs: int, classes: int, width: int
    ) -> None:
        super().__init__()
        self.matrices = form.matrices(inputs, classes, width)
        self.activations = nn.ModuleList(form.activation(name) for name in activations)
        # No skip over the first layer: it changes the width.
        self.skips = (False, *skips)
        self.input_factor, self.factor = form.factors(inputs, width)

    def forward(self, x: Tensor) -> Tensor:
        h = x.flatten(1) * self.input_factor
        for linear, activation, skip in zip(self.matrices, self.activations, self.skips, strict=False):
            out = self.factor * activation(linear(h))
            h = out + h if skip else out
        logits: Tensor = self.matrices[-1](h)
        return logits
