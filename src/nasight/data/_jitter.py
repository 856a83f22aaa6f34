"""Random brightness, contrast, saturation and hue: the color jitter of trainings on ImageNet.

All four are defined on values from 0 (black) to 1, before images are normalized, and end in that range.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nasight.compute import to_device
from nasight.errors import RequestError

STRENGTH = 0.4
"""The usual strength: factors of 0.6 to 1.4, and hues turned by up to a fifth of the circle."""
RED, GREEN, BLUE = 0.299, 0.587, 0.114
"""How much each color counts in the gray of a pixel (ITU-R BT.601)."""
CHANNELS = (1, 3)


def jitter(
    batch: Tensor, generator: torch.Generator, strength: float, within: tuple[int, slice] | None = None
) -> Tensor:
    """Every image (b, c, h, w) with other colors; of the same type as the batch.

    Factors of brightness, contrast and saturation are uniform in 1 - strength to 1 + strength, the turn of the hue in
    -strength / 2 to strength / 2 of the circle; the four come in random order. Images of one channel have neither
    saturation nor hue. `within` as in `crop_and_flip`; a strength of 0 does nothing.

    Pixels of 8 bits are fractions of 255 meanwhile, and rounded once, at the end.
    """
    if not strength:
        return batch
    check_channels(batch.shape[1])
    drawn, part = within or (len(batch), slice(None))
    chance = torch.rand(drawn, 8, dtype=torch.float64, generator=generator)[part]
    factors = 1 + strength * (2 * chance[:, :3] - 1)
    amounts = torch.cat([factors, strength * (chance[:, 3:4] - 0.5)], 1).float()  # (b, 4)
    order = chance[:, 4:].argsort(1)  # (b, 4): which comes first, second, ...
    unit = 1.0 if batch.is_floating_point() else 255.0
    found = batch.float() / unit
    for turn in range(4):
        for number, change in enumerate(CHANGES if batch.shape[1] == 3 else CHANGES[:2]):
            rows = (order[:, turn] == number).nonzero()[:, 0]
            if len(rows):
                rows, amount = to_device((rows, amounts[rows, number].view(-1, 1, 1, 1)), found.device)
                found[rows] = change(found[rows], amount)
    return found if batch.is_floating_point() else found.mul_(unit).round_().to(batch.dtype)


def check_channels(channels: int) -> None:
    """Refuse images whose channels are neither gray nor red, green and blue."""
    if channels not in CHANNELS:
        raise RequestError(f"jitter changes the colors of images of 1 or 3 channels, not of {channels}")


def brightness(x: Tensor, factor: Tensor) -> Tensor:
    """Every value times the factor."""
    return (x * factor).clamp_(0, 1)


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    """The distance of every value from the mean gray of its image times the factor."""
    mean = gray(x).mean((1, 2, 3), keepdim=True)
    return (mean + factor * (x - mean)).clamp_(0, 1)


def saturation(x: Tensor, factor: Tensor) -> Tensor:
    """The distance of every color from the gray of its pixel times the factor."""
    level = gray(x)
    return (level + factor * (x - level)).clamp_(0, 1)


def hue(x: Tensor, turn: Tensor) -> Tensor:
    """The hue of every pixel turned by this part of the circle red, green, blue, red (HSV)."""
    high, low = x.amax(1, keepdim=True), x.amin(1, keepdim=True)
    turned = _hue(x, high, high - low) + 6 * turn
    # Each color is the largest where the hue is near its own, and falls off on a sixth of the circle on either side.
    places = 5 - 2 * torch.arange(3.0, device=x.device).view(1, 3, 1, 1)  # made there: a copy would be waited for
    away = (places + turned).remainder(6)
    return high - (high - low) * away.minimum(4 - away).clamp_(0, 1)


def _hue(x: Tensor, high: Tensor, spread: Tensor) -> Tensor:
    """The hue of every pixel in sixths of the circle from red; 0 for grays."""
    red, green, blue = x[:, :1], x[:, 1:2], x[:, 2:]
    safe = spread.where(spread > 0, 1.0)
    by_blue = (red - green) / safe + 4
    return torch.where(high == red, (green - blue) / safe, torch.where(high == green, (blue - red) / safe + 2, by_blue))


def gray(x: Tensor) -> Tensor:
    """The gray (b, 1, h, w) of every pixel: 0.299 red + 0.587 green + 0.114 blue."""
    return x if x.shape[1] == 1 else RED * x[:, :1] + GREEN * x[:, 1:2] + BLUE * x[:, 2:]


CHANGES = (brightness, contrast, saturation, hue)
