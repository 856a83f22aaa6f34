"""Fully connected networks as source."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

from nasight.architecture import Architecture
from nasight.export._cells import Parts
from nasight.spaces._mlp import Mlp

ACTIVATIONS = {
    "relu": "torch.relu({})",
    "sigmoid": "(torch.sigmoid({}) - 0.5)",
    "tanh": "torch.tanh({})",
    "swish": "F.silu({})",
}


def mlp(space: Mlp, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Any) -> Parts:
    """Each layer a line; initial weights as nasight draws them."""
    sizes = space.size(**size)
    width, numbers = sizes["width"], prod(inputs)
    ends = [str(numbers), *[str(width)] * (space.layers - 1), "classes"]
    made, lines = list[str](), list[str]()
    for i, (a, b) in enumerate(pairwise(ends), 1):
        deviation = 1.0
        if space.parametrisation == "standard":
            deviation = (2 / width) ** 0.5 if i > 1 else numbers**-0.5 if space.scale_inputs else 1.0
        made += [
            f"self.linear_{i} = nn.Linear({a}, {b}, bias=False)",
            f"nn.init.normal_(self.linear_{i}.weight, std={deviation!r})",
        ]
    first, factor = space.factors(numbers, width)
    lines.append("h = x.flatten(1)" + (f" * {first!r}" if first != 1.0 else ""))
    for i, name in enumerate(space.activations, 1):
        pattern = ACTIVATIONS.get(arch[name], f"F.leaky_relu({{}}, {space.slope!r})")
        out = (f"{factor!r} * " if factor != 1.0 else "") + pattern.format(f"self.linear_{i}(h)")
        skipped = i > 1 and arch[space.skips[i - 2]] == "1"
        lines.append(
            f"h = {out} + h"
            if skipped
            else f"h = {out.removeprefix('(').removesuffix(')') if out.startswith('(') else out}"
        )
    lines.append(f"return self.linear_{space.layers}(h)")
    body = "\n".join(f"        {line}" for line in made)
    forward = "\n".join(f"        {line}" for line in lines)
    network = f'''
class Network(nn.Module):
    """{space.layers} layers of weights, {width} units wide."""

    def __init__(self, classes: int = CLASSES) -> None:
        super().__init__()
{body}

    def forward(self, x: Tensor) -> Tensor:
{forward}
'''
    return Parts([network], sizes)
