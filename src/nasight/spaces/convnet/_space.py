"""Plain convolutional networks of three stages, whose widths, kernels and layers are searched."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from torch import nn

from nasight.architecture import Architecture
from nasight.errors import RequestError
from nasight.spaces._base import Space
from nasight.spaces._blocks import image_channels
from nasight.spaces._counts import MultiplyAdds, Parameters
from nasight.spaces._elsewhere import Gains, in_order_of_worth
from nasight.spaces._groups import Decision, Group
from nasight.spaces._source import Source
from nasight.spaces._supernet import Supernet
from nasight.spaces.convnet._counts import parameter_count, product_count
from nasight.spaces.convnet._network import KERNEL as SIDE
from nasight.spaces.convnet._network import STAGES, StageForm, channels_of, conv_network, halvings
from nasight.spaces.convnet._source import write
from nasight.spaces.convnet._supernet import DEPTH, ConvNetSupernet

KERNEL = "first kernel"
KERNELS, WIDTHS, LAYERS = ("3", "5", "7"), ("1", "0.5", "1.5", "2"), tuple(DEPTH)
"""The options; the first of each are those of the plain network."""
STAGE = re.compile(r"w([0-9.]+)n([0-9]+\+?)")
NUMBERS = range(1, STAGES + 1)


class ConvNet(Space):
    """Three stages of convolutions with batch norm and ReLU, each half as large and twice as wide as the one before.

    Of every stage are decided its width, as a multiple of `channels` (times 1, 2 and 4), and its layers: one, two, two
    with a skip, or three with skips. A skip adds what enters a layer to what leaves it. All kernels are 3x3 but those
    of the very first layer, which may be larger. The reference is the plain network that most people would write
    first: one 3x3 convolution per stage.

    >>> space = ConvNet()
    >>> space.format(space.reference), len(space)
    ('k3/w1n1/w1n1/w1n1', 12288)
    >>> space.parse("k3/w1n1/w1n2+/w1.5n2+")["width 3"]
    '1.5'
    """

    name = "convnet"
    channels_last: ClassVar[bool] = True
    plain_reference: ClassVar[bool] = True
    sizes: ClassVar[Mapping[str, int]] = {"channels": 32}
    search_sizes: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "tiny": {"channels": 8},
        "small": {"channels": 16},
        "paper": {"channels": 32},
    }
    train_settings: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"epochs": 8, "batch_size": 32, "lr": 0.05, "size": {"channels": 32}},
        "small": {"epochs": 20, "lr": 0.05, "size": {"channels": 64}},
    }
    score_size: ClassVar[Mapping[str, int]] = {"channels": 8}
    thin_size: ClassVar[Mapping[str, int]] = {"channels": 1}
    decisions = (
        Decision(KERNEL, KERNELS),
        *(Decision(f"width {stage}", WIDTHS) for stage in NUMBERS),
        *(Decision(f"layers {stage}", LAYERS) for stage in NUMBERS),
    )

    def groups(self, *, edges: bool = False) -> tuple[Group, ...]:
        """ "kernel" (1, 3), "widths" (3, 4) and "layers" (3, 4), the last two with a row for every stage."""
        return (
            Group("kernel", (KERNEL,), (KERNELS,)),
            Group("widths", tuple(f"width {stage}" for stage in NUMBERS), (WIDTHS,) * STAGES),
            Group("layers", tuple(f"layers {stage}" for stage in NUMBERS), (LAYERS,) * STAGES),
        )

    def parse(self, text: str) -> Architecture:
        """From the first kernel and a part like "w1.5n2+" for every stage, its width and its layers, joined by "/"."""
        kernel, *parts = (part.strip() for part in text.strip().split("/"))
        if len(parts) != STAGES or not kernel.startswith("k"):
            raise RequestError(
                f"a network of {STAGES} stages is written like {self.format(self.reference)!r}, got {text[:120]!r}"
            )
        choices = {KERNEL: kernel[1:]}
        for stage, part in enumerate(parts, 1):
            match = STAGE.fullmatch(part)
            if match is None:
                raise RequestError(f"stage {stage} must be written like 'w1n1' or 'w1.5n2+', got {part!r}")
            choices[f"width {stage}"], choices[f"layers {stage}"] = match.groups()
        return self.architecture(choices)

    def format(self, arch: Architecture) -> str:
        chosen = dict(self.checked(arch).choices)
        stages = (f"w{chosen[f'width {stage}']}n{chosen[f'layers {stage}']}" for stage in NUMBERS)
        return "/".join([f"k{chosen[KERNEL]}", *stages])

    def network(
        self, arch: Architecture, inputs: tuple[int, ...] = (3, 32, 32), classes: int = 10, **size: Any
    ) -> nn.Module:
        """Three stages at `channels`, twice and four times as many, times their widths."""
        image_channels(inputs)
        return conv_network(stage_forms(self.checked(arch), self.size(**size)["channels"]), tuple(inputs), classes)

    def _supernet(self, inputs: tuple[int, ...], classes: int, size: dict[str, Any], **how: Any) -> Supernet:
        widths = [[channels_of(size["channels"], stage, width) for width in WIDTHS] for stage in range(STAGES)]
        colors = image_channels(inputs)
        return ConvNetSupernet(self.groups(), widths, halvings(inputs), colors, classes, path=how["path"])

    def parameters(self, inputs: tuple[int, ...], classes: int, **size: int) -> Parameters:
        return ConvNetParameters(self, inputs, classes, self.size(**size))

    def multiply_adds(self, inputs: tuple[int, ...], classes: int, **size: int) -> MultiplyAdds:
        return ConvNetProducts(self, inputs, classes, self.size(**size))

    def lightest(self) -> tuple[Architecture, ...]:
        return (self.parse("/".join(["k3", *["w0.5n1"] * STAGES])),)

    def well_elsewhere(self, data: str) -> tuple[Architecture, ...]:
        """Of the networks that `benchmarks/find_elsewhere.py` trained on four data sets."""
        order = in_order_of_worth(_measured_elsewhere(), without=data)
        return tuple(self.parse(text) for text in order[: order.index(self.format(self.reference))])

    def described(self, arch: Architecture, **size: int) -> tuple[str, ...]:
        """A line for each stage.

        >>> ConvNet().described(ConvNet().parse("k5/w1n1/w0.5n2+/w1n2"))[:2]
        ('stage 1: one convolution of 5x5, 32 channels', 'stage 2: two convolutions of 3x3 with a skip, 32 channels')
        """
        return tuple(
            _in_words(stage, form)
            for stage, form in enumerate(stage_forms(self.checked(arch), self.size(**size)["channels"]), 1)
        )

    def source(self, arch: Architecture, inputs: tuple[int, ...], classes: int, size: Mapping[str, int]) -> Source:
        sizes = self.size(**size)
        return write(stage_forms(self.checked(arch), sizes["channels"]), tuple(inputs), **sizes)


@cache
def _measured_elsewhere() -> Gains:
    found: Gains = json.loads((files("nasight.spaces.convnet") / "elsewhere.json").read_text())
    return found


def _in_words(stage: int, form: StageForm) -> str:
    number = ("one convolution", "two convolutions", "three convolutions")[form.layers - 1]
    sides = f"{form.first}x{form.first}"
    if form.layers > 1 and form.first != SIDE:
        sides += f" and {SIDE}x{SIDE}"
    skips = "" if not form.skip else " with a skip" if form.layers == 2 else " with skips"
    return f"stage {stage}: {number} of {sides}{skips}, {form.channels} channels"


class ConvNetParameters(Parameters):
    """Parameters by the formula, without building a network."""

    def counted(self, arch: Architecture) -> int:
        return parameter_count(stage_forms(arch, self.size["channels"]), self.inputs, self.classes)


class ConvNetProducts(MultiplyAdds):
    """Multiply-adds by the formula, without building a network."""

    def counted(self, arch: Architecture) -> int:
        return product_count(stage_forms(arch, self.size["channels"]), self.inputs, self.classes)


def stage_forms(arch: Architecture, channels: int) -> list[StageForm]:
    """The stages of an architecture, in numbers."""
    chosen, found = dict(arch.choices), list[StageForm]()
    for stage in range(STAGES):
        width, layers = chosen[f"width {stage + 1}"], chosen[f"layers {stage + 1}"]
        kernel = SIDE if stage else int(chosen[KERNEL])
        found.append(StageForm(channels_of(channels, stage, width), kernel, DEPTH[layers], layers.endswith("+")))
    return found
