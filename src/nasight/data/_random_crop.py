"""Random parts of images, brought back to the size of the image: the crops of trainings on ImageNet."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nasight.compute import to_device

LEAST_AREA = 0.08
"""The usual least share of an image's area."""
RATIOS = (3 / 4, 4 / 3)
"""Width / height of a crop lies between these."""
TRIES = 10


def random_crop(
    batch: Tensor, generator: torch.Generator, least: float, within: tuple[int, slice] | None = None
) -> Tensor:
    """Every image (b, c, h, w) a random part of itself, at its own size; of the same type as the batch.

    `least` is the least share of the area (0: nothing is done), `within` as in `crop_and_flip`.
    """
    if not least:
        return batch
    b, _, h, w = batch.shape
    drawn, part = within or (b, slice(None))
    return enlarged(batch, crop_boxes(drawn, h, w, least, generator)[part])


def crop_boxes(number: int, height: int, width: int, least: float, generator: torch.Generator) -> Tensor:
    """Top, left, height and width of random parts of an image: (number, 4), whole pixels.

    The area is uniform between `least` and 1 of the image's, the logarithm of width / height between those of 3/4 and
    4/3, and the sides are rounded. The first of ten such draws that fits into the image counts, at a place where each
    is as likely; if none fits, it is the middle (GoogLeNet's crops as PyTorch's `RandomResizedCrop` has them).
    """
    chance = torch.rand(number, 2 * TRIES + 2, dtype=torch.float64, generator=generator)
    places = chance[:, 2 * TRIES :]
    areas = height * width * (least + (1 - least) * chance[:, :TRIES])
    low, high = map(math.log, RATIOS)
    ratios = (low + (high - low) * chance[:, TRIES : 2 * TRIES]).exp()
    highs, wides = (areas / ratios).sqrt().round(), (areas * ratios).sqrt().round()  # (number, tries)
    fits = (highs >= 1) & (highs <= height) & (wides >= 1) & (wides <= width)
    first, found = fits.int().argmax(1, keepdim=True), fits.any(1)
    all_high, all_wide = _middle(height, width)
    high_of = highs.gather(1, first)[:, 0].where(found, all_high)
    wide_of = wides.gather(1, first)[:, 0].where(found, all_wide)
    spare = torch.stack([height - high_of, width - wide_of], 1)
    corner = (places * (spare + 1)).floor().where(found[:, None], (spare / 2).floor())
    return torch.cat([corner, high_of[:, None], wide_of[:, None]], 1).long()


def _middle(height: int, width: int) -> tuple[float, float]:
    """Height and width of the largest part whose proportions are allowed."""
    low, high = RATIOS
    if width / height < low:
        return float(round(width / low)), float(width)
    if width / height > high:
        return float(height), float(round(height * high))
    return float(height), float(width)


def enlarged(batch: Tensor, boxes: Tensor) -> Tensor:
    """The part of each image (b, c, h, w) that its box (top, left, height, width) names, at the size of the image.

    Bilinear, between pixels of the part alone. A part never has more pixels than the result, so nothing is lost that
    an antialiasing filter would keep.
    """
    b, c, h, w = batch.shape
    rows, columns = _neighbors(boxes[:, 0], boxes[:, 2], h), _neighbors(boxes[:, 1], boxes[:, 3], w)
    # Worked out on the CPU, whichever device the images are on.
    (above, below, down), (left, right, across) = to_device((rows, columns), batch.device)
    above, below = (index[:, None, :, None].expand(b, c, h, w) for index in (above, below))
    tall = torch.lerp(batch.gather(2, above).float(), batch.gather(2, below).float(), down[:, None, :, None])
    left, right = (index[:, None, None, :].expand(b, c, h, w) for index in (left, right))
    found = torch.lerp(tall.gather(3, left), tall.gather(3, right), across[:, None, None, :])
    return found if batch.is_floating_point() else found.round_().to(batch.dtype)


def _neighbors(start: Tensor, length: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each pixel of a side of `size` the two pixels that it lies between, and the weight of the second: (b, size).

    Pixels `start` to `start + length - 1` become the whole side; the centers of pixels are half a pixel inside it.
    """
    last = (length - 1)[:, None]
    centers = (torch.arange(size, dtype=torch.float64) + 0.5) * length[:, None] / size - 0.5
    centers = centers.clamp(min=0).minimum(last.double())
    first = centers.floor().long()
    return start[:, None] + first, start[:, None] + (first + 1).minimum(last), (centers - first).float()
