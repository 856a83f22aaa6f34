"""A plain convolutional network as source."""

from __future__ import annotations

from collections.abc import Sequence

from nasight.spaces import _templates as t
from nasight.spaces._source import Source
from nasight.spaces.convnet._network import StageForm, halvings

STAGE = '''
class Stage(nn.Module):
    """Convolutions of one width; with `skip`, what enters a layer is added to what leaves it, but for the first."""

    def __init__(self, channels_in: int, channels: int, first: int, layers: int, skip: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            ConvNormRelu(channels if i else channels_in, channels, 3 if i else first) for i in range(layers)
        )
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            out = layer(x)
            x = x + out if i and self.skip else out
        return x
'''


def write(forms: Sequence[StageForm], inputs: tuple[int, ...], *, channels: int) -> Source:
    """Each stage and each pool a line."""
    lines, width = list[str](), str(inputs[0])
    for form, halved in zip(forms, halvings(inputs), strict=True):
        numbers = f"{form.channels}, first={form.first}, layers={form.layers}, skip={form.skip}"
        lines.append(f"Stage({width}, {numbers}),")
        if halved:
            lines.append("nn.MaxPool2d(2),")
        width = str(form.channels)
    lines += ["nn.AdaptiveAvgPool2d(1),", "nn.Flatten(),", f"nn.Linear({width}, classes),"]
    body = "\n".join(f"            {line}" for line in lines)
    network = f'''
class Network(nn.Sequential):
    """Three stages of convolutions, each half the size of the one before, and a linear layer."""

    def __init__(self, classes: int = CLASSES) -> None:
        super().__init__(
{body}
        )
'''
    return Source([t.CONV_NORM_RELU, STAGE, network], {"channels": channels})
