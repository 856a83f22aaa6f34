"""Random crops, shifts, flips, colors and holes for a whole batch of images at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from nasight.compute import to_device
from nasight.data._jitter import STRENGTH, check_channels
from nasight.data._jitter import jitter as recolor
from nasight.data._random_crop import LEAST_AREA, random_crop
from nasight.errors import RequestError


@dataclass(frozen=True, slots=True)
class Augment:
    """Which random changes keep a label.

    Parameters
    ----------
    crop : images are shifted by up to this many pixels.
    flip : whether images are mirrored, half of the time.
    cutout : the side, in pixels, of a square hole; 0 for none.
    area : images become a random part of themselves, at their own size, of at least this share of the area; 0: they do
        not.
    jitter : brightness, contrast and saturation change by factors of up to 1 - jitter and 1 + jitter, the hue by up to
        half as much of the circle; 0: colors stay.
    """

    crop: int = 4
    flip: bool = True
    cutout: int = 0
    area: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("crop", self.crop), ("cutout", self.cutout)):
            if int(value) != value or value < 0:
                raise RequestError(f"{name} must be a whole number of pixels of at least 0, got {value!r}")
        for name, share in (("area", self.area), ("jitter", self.jitter)):
            if not 0 <= share <= 1:
                raise RequestError(f"{name} must be between 0 and 1, got {share!r}")


NOTHING = "none"
EARLIER = "as earlier versions"
"""What a run means that keeps no words for its random changes: those of its data set, or what was assumed then."""
SHARES = {"crop": LEAST_AREA, "jitter": STRENGTH}
"""Words that take a number up to 1, and the usual one."""
WORDS = ("shift", "flip", "cutout", *SHARES)


def assumed_earlier(inputs: tuple[int, ...]) -> Augment | None:
    """What versions before 0.3 assumed of data they did not know: images may be shifted by an eighth and flipped."""
    return Augment(crop=min(inputs[1:]) // 8, flip=True) if len(inputs) == 3 else None


def read_augment(text: str, inputs: tuple[int, ...]) -> Augment | None:
    """The random changes that words ask for; None for none.

    Parameters
    ----------
    text : "none", or some of these words, with commas, such as "shift=4,flip,cutout=16":

        - shift: by up to an eighth of the image, or by these pixels.
        - flip: mirrored, half of the time.
        - cutout: a hole half as wide as the image, or of these pixels.
        - crop: a random part of at least 0.08 of the area, or of this share, brought back to the size of the image;
          width / height is 3/4 to 4/3.
        - jitter: brightness, contrast and saturation times 0.6 to 1.4, the hue turned by up to 0.2 of the circle, in
          random order; with jitter=S times 1 - S to 1 + S, and by up to S / 2. Gray images have the first two.
    inputs : the shape of an example.

    >>> read_augment("shift,flip", (3, 32, 32)) == Augment(crop=4, flip=True)
    True
    """
    words = [word.strip() for word in text.split(",")]
    if words == [NOTHING]:
        return None
    if len(inputs) != 3:
        raise RequestError(f"augment {text!r} is for images (channels, height, width), not for examples of {inputs}")
    side = min(inputs[1:])
    found = dict.fromkeys(WORDS, 0.0)
    for word in words:
        name, given, amount = word.partition("=")
        value = _amount(name, amount if given else None, side)
        if value is None:
            raise RequestError(
                f"augment must be none, or some of shift, flip, cutout, crop and jitter, such as shift,flip, shift=4 "
                f"(pixels, fewer than {side}), or crop=0.08 and jitter=0.4 (above 0, at most 1), got {text!r}"
            )
        found[name] = value
    if found["jitter"]:
        check_channels(inputs[0])
    return Augment(int(found["shift"]), bool(found["flip"]), int(found["cutout"]), found["crop"], found["jitter"])


def _amount(name: str, text: str | None, side: int) -> float | None:
    """How much of a change a word asks for, on images of this shorter side; None if it is no such word."""
    usual = {"shift": max(1, side // 8), "flip": 1, "cutout": side // 2, **SHARES}
    if text is None or name not in usual:
        return usual.get(name)
    if name in SHARES:
        try:
            share = float(text)
        except ValueError:
            return None
        return share if 0 < share <= 1 else None
    pixels = int(text) if text.isdecimal() and name != "flip" else 0
    return pixels if 0 < pixels < side else None


def augment_text(augment: Augment | None) -> str:
    """The words that `read_augment` reads as these random changes.

    >>> augment_text(Augment(crop=4, flip=True, jitter=0.4))
    'shift=4,flip,jitter=0.4'
    """
    if augment is None:
        return NOTHING
    amounts = {"crop": augment.area, "shift": augment.crop, "flip": augment.flip, "jitter": augment.jitter}
    words = [name if name == "flip" else f"{name}={amount}" for name, amount in amounts.items() if amount]
    return ",".join([*words, *[f"cutout={augment.cutout}"] * bool(augment.cutout)]) or NOTHING


def augment(
    batch: Tensor,
    generator: torch.Generator,
    *,
    crop: int = 4,
    flip: bool = True,
    cutout: int = 0,
    area: float = 0.0,
    jitter: float = 0.0,
) -> Tensor:
    """The batch with every image cropped, shifted, flipped, recolored and cut out at random; a new tensor.

    Shifts fill with zeros, as does the hole: a square around a random pixel, the part of it that is inside the image
    (DeVries & Taylor, 2017).

    Parameters
    ----------
    batch : images (b, c, h, w); colors change between 0 and 255 where they are uint8, else between 0 and 1.
    generator : where the randomness comes from.
    crop, flip, cutout, area, jitter : as in `Augment`.

    >>> images = torch.rand(8, 3, 32, 32)
    >>> augment(images, torch.Generator().manual_seed(0), crop=4, flip=True).shape
    torch.Size([8, 3, 32, 32])
    """
    settings = Augment(crop, flip, cutout, area, jitter)
    if batch.dim() != 4:
        raise RequestError(f"augmentation needs images (b, c, h, w), got a batch of shape {tuple(batch.shape)}")
    return cut(changed(batch, generator, settings), generator, settings)


def changed(
    batch: Tensor, generator: torch.Generator, settings: Augment, within: tuple[int, slice] | None = None
) -> Tensor:
    """What is done to pixels before they are normalized: all but holes, in the order of trainings on ImageNet."""
    part = random_crop(batch, generator, settings.area, within)
    return recolor(crop_and_flip(part, generator, settings, within), generator, settings.jitter, within)


def crop_and_flip(
    batch: Tensor, generator: torch.Generator, settings: Augment, within: tuple[int, slice] | None = None
) -> Tensor:
    """Every image padded with zeros, cropped at a random place and, half of the time, mirrored.

    `within` says of how many rows these are a part, and which: each gets the changes that it has in the whole.
    """
    if not settings.crop and not settings.flip:
        return batch.clone()
    b, c, h, w = batch.shape
    drawn, part = within or (b, slice(None))
    pad, rows, columns = settings.crop, torch.arange(h).expand(b, h), torch.arange(w).expand(b, w)
    offset = torch.zeros(b, 2, dtype=torch.long)
    if pad:
        offset = torch.randint(2 * pad + 1, (drawn, 2), generator=generator)[part]
        batch = functional.pad(batch, (pad, pad, pad, pad))
    if settings.flip:
        mirrored = torch.randint(2, (drawn, 1), generator=generator)[part].bool()
        columns = torch.where(mirrored, w - 1 - columns, columns)
    rows, columns = rows + offset[:, :1], columns + offset[:, 1:]
    # Drawn on the CPU, whichever device the images are on.
    rows, columns = to_device((rows, columns), batch.device)
    # One gather over the flattened pixels: six times as fast as indexing with four broadcast tensors.
    pixels = (rows[:, :, None] * (w + 2 * pad) + columns[:, None, :]).reshape(b, 1, h * w)
    return batch.flatten(2).gather(2, pixels.expand(b, c, h * w)).reshape(b, c, h, w)


def cut(
    batch: Tensor, generator: torch.Generator, settings: Augment, within: tuple[int, slice] | None = None
) -> Tensor:
    """Every image with zeros in a square around a random pixel."""
    if not settings.cutout:
        return batch
    b, _, h, w = batch.shape
    drawn, part = within or (b, slice(None))
    top = torch.randint(h, (drawn, 1), generator=generator)[part] - settings.cutout // 2
    left = torch.randint(w, (drawn, 1), generator=generator)[part] - settings.cutout // 2
    rows, columns = torch.arange(h), torch.arange(w)
    in_rows = (rows >= top) & (rows < top + settings.cutout)  # (b, h)
    in_columns = (columns >= left) & (columns < left + settings.cutout)  # (b, w)
    in_rows, in_columns = to_device((in_rows, in_columns), batch.device)
    return batch.masked_fill((in_rows[:, :, None] & in_columns[:, None, :])[:, None], 0)
