"""The two numbers of TE-NAS as its released code has them (Chen et al. 2021).

kappa: the NTK of the summed outputs over all weights, biases left out, in training mode, so that every gradient goes
through the statistics of the batch; largest eigenvalue over smallest. Initial weights: Kaiming, fan out.
R: how many patterns of active units the crops of images fall into, crops of 3 x 3 pixels of one color in batches of
1,000, in training mode, on the thinnest network of the space. Initial weights: Kaiming, fan in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from nasight.compute import double, to_host
from nasight.gradients import coupled, learned
from nasight.kernels._patterns import activation_patterns, distinct

SIDE = 3
"""Pixels per side of a crop."""
CROPS = 3000
CROP_BATCH = 1000
"""Crops whose statistics the batch norms share."""
Forward = Callable[[Tensor], Any]


def weights_of(module: nn.Module) -> list[nn.Parameter]:
    """The parameters of a network without its biases; the scales of batch norms are among them."""
    return [p for name, p in learned(module).items() if "bias" not in name]


def condition_number(forward: Forward, x: Tensor, weights: list[nn.Parameter]) -> float:
    """kappa of a network whose batch norms use the statistics of the batch; nan or infinite where it has none."""
    rows = double(coupled(forward, x, lambda logits, y: logits.sum(1)[None], weights)[0])
    kernel = to_host(rows @ rows.t())
    if not bool(torch.isfinite(kernel).all()):
        return float("nan")
    values = torch.linalg.eigvalsh(kernel)
    return float(values[-1] / values[0])


def crops(images: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """Crops of 3 x 3 pixels and one color, each of an image of its own as long as there are any: (number, 1, 3, 3)."""
    n, colors, height, width = images.shape
    chosen = torch.cat([torch.randperm(n, generator=generator) for _ in range(-(-number // n))])[:number]

    def draw(high: int) -> Tensor:
        return torch.randint(high, (number, 1, 1), generator=generator)

    color, top, left = draw(colors), draw(max(1, height - SIDE + 1)), draw(max(1, width - SIDE + 1))
    down = (top + torch.arange(min(SIDE, height))[:, None]).expand(number, min(SIDE, height), min(SIDE, width))
    right = (left + torch.arange(min(SIDE, width))).expand_as(down)
    return images[chosen[:, None, None], color, down, right][:, None]


def linear_regions(forward: Forward, x: Tensor) -> int | None:
    """R of a network whose batch norms use the statistics of the batch; None where it has no rectifier."""
    found = [activation_patterns(forward, part) for part in torch.split(x, CROP_BATCH)]
    patterns = [part for part in found if part is not None]
    return distinct(torch.cat(patterns)) if patterns else None
