"""The supernet of fully connected networks: every activation and every skip a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from nasight.spaces._groups import Group
from nasight.spaces._placed import zeros_of
from nasight.spaces._supernet import Supernet
from nasight.spaces.mlp._network import Form


class MlpSupernet(Supernet):
    """Layer l: factor * sum_a w_a s_a(W_l h) + w_skip h, in the parametrization of the space.

    All paths are one: all activations of a layer share its matrix product, which is nearly all of the work.
    """

    compiles: ClassVar[bool] = False

    def __init__(
        self, groups: tuple[Group, ...], form: Form, inputs: int, classes: int, *, path: str, width: int
    ) -> None:
        super().__init__(groups, path)
        self.matrices = form.matrices(inputs, classes, width)
        self.activations = nn.ModuleList(form.activation(name) for name in groups[0].options[0])
        self.input_factor, self.factor = form.factors(inputs, width)

    def _logits(self, x: Tensor, weights: Mapping[str, Tensor], skip_zeros: bool) -> Tensor:
        h = x.flatten(1) * self.input_factor
        kept = (zeros_of(weights, "activations", skip_zeros) != 0).tolist()
        skipping = (zeros_of(weights, "skips", skip_zeros) != 0).tolist() if "skips" in weights else []
        for layer, row in enumerate(weights["activations"].unbind(0)):
            out = self.factor * self._mixture(self.matrices[layer](h), row, kept[layer] if skip_zeros else None)
            if layer:
                skip = weights["skips"][layer - 1, 1]
                out = out if skip_zeros and not skipping[layer - 1][1] else torch.addcmul(out, skip, h)
            h = out
        logits: Tensor = self.matrices[-1](h)
        return logits

    def _mixture(self, z: Tensor, row: Tensor, kept: list[bool] | None) -> Tensor:
        total = None
        for i, (weight, activation) in enumerate(zip(row.unbind(0), self.activations, strict=True)):
            if kept is not None and not kept[i]:
                continue
            term = activation(z)
            total = weight * term if total is None else torch.addcmul(total, weight, term)
        return torch.zeros_like(z) if total is None else total
