"""Fully connected networks as source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from nasight.spaces._source import Source
from nasight.spaces.mlp._network import Form

PATTERNS = {
    "relu": "torch.relu({})",
    "sigmoid": "(torch.sigmoid({}) - 0.5)",
    "tanh": "torch.tanh({})",
    "swish": "F.silu({})",
}


def write(form: Form, activations: Sequence[str], skips: Sequence[bool], numbers: int, *, width: int) -> Source:
    """Each layer a line; initial weights as nasight draws them. `numbers` is how many an example has."""
    ends = [str(numbers), *[str(width)] * (form.layers - 1), "classes"]
    made, lines = list[str](), list[str]()
    for i, (a, b) in enumerate(pairwise(ends), 1):
        made += [
            f"self.linear_{i} = nn.Linear({a}, {b}, bias=False)",
            f"nn.init.normal_(self.linear_{i}.weight, std={form.deviation(i - 1, numbers, width)!r})",
        ]
    first, factor = form.factors(numbers, width)
    lines.append("h = x.flatten(1)" + (f" * {first!r}" if first != 1.0 else ""))
    for i, name in enumerate(activations, 1):
        pattern = PATTERNS.get(name, f"F.leaky_relu({{}}, {form.slope!r})")
        out = (f"{factor!r} * " if factor != 1.0 else "") + pattern.format(f"self.linear_{i}(h)")
        skipped = i > 1 and skips[i - 2]
        lines.append(
            f"h = {out} + h"
            if skipped
            else f"h = {out.removeprefix('(').removesuffix(')') if out.startswith('(') else out}"
        )
    lines.append(f"return self.linear_{form.layers}(h)")
    body = "\n".join(f"        {line}" for line in made)
    forward = "\n".join(f"        {line}" for line in lines)
    network = f'''
class Network(nn.Module):
    """{form.layers} layers of weights, {width} units wide."""

    def __init__(self, classes: int = CLASSES) -> None:
        super().__init__()
{body}

    def forward(self, x: Tensor) -> Tensor:
{forward}
'''
    return Source([network], {"width": width})
