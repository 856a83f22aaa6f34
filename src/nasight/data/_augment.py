"""Random crops, flips and holes for a whole batch of images at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from nasight.compute import to_device
from nasight.errors import RequestError


@dataclass(frozen=True, slots=True)
class Augment:
    """Which random changes keep a label.

    Parameters
    ----------
    crop : images are shifted by up to this many pixels.
    flip : whether images are mirrored, half of the time.
    cutout : the side, in pixels, of a square hole; 0 for none.
    """

    crop: int = 4
    flip: bool = True
    cutout: int = 0

    def __post_init__(self) -> None:
        for name, value in (("crop", self.crop), ("cutout", self.cutout)):
            if int(value) != value or value < 0:
                raise RequestError(f"{name} must be a whole number of pixels of at least 0, got {value!r}")


NOTHING = "none"
EARLIER = "as earlier versions"
"""What a run means that keeps no words for its random changes: those of its data set, or what was assumed then."""
WORDS = ("shift", "flip", "cutout")


def assumed_earlier(inputs: tuple[int, ...]) -> Augment | None:
    """What versions before 0.3 assumed of data they did not know: images may be shifted by an eighth and flipped."""
    return Augment(crop=min(inputs[1:]) // 8, flip=True) if len(inputs) == 3 else None


def read_augment(text: str, inputs: tuple[int, ...]) -> Augment | None:
    """The random changes that words ask for; None for none.

    Parameters
    ----------
    text : "none", or some of shift, flip and cutout, with commas. A shift is up to an eighth of the image and a hole
        half as wide as it, unless pixels are given: "shift=4,flip,cutout=16".
    inputs : the shape of an example.

    >>> read_augment("shift,flip", (3, 32, 32))
    Augment(crop=4, flip=True, cutout=0)
    """
    words = [word.strip() for word in text.split(",")]
    if words == [NOTHING]:
        return None
    if len(inputs) != 3:
        raise RequestError(f"augment {text!r} is for images (channels, height, width), not for examples of {inputs}")
    side = min(inputs[1:])
    amounts = {"shift": max(1, side // 8), "flip": 1, "cutout": side // 2}
    found = dict.fromkeys(WORDS, 0)
    for word in words:
        name, given, amount = word.partition("=")
        if name not in WORDS or (given and (name == "flip" or not amount.isdecimal() or not 0 < int(amount) < side)):
            raise RequestError(
                f"augment must be none, or some of shift, flip and cutout, such as shift,flip or shift=4 (pixels, "
                f"fewer than {side}), got {text!r}"
            )
        found[name] = int(amount) if given else amounts[name]
    return Augment(found["shift"], bool(found["flip"]), found["cutout"])


def augment_text(augment: Augment | None) -> str:
    """The words that `read_augment` reads as these random changes.

    >>> augment_text(Augment(crop=4, flip=True))
    'shift=4,flip'
    """
    if augment is None:
        return NOTHING
    words = [f"shift={augment.crop}"] * bool(augment.crop) + ["flip"] * augment.flip
    return ",".join([*words, *[f"cutout={augment.cutout}"] * bool(augment.cutout)]) or NOTHING


def augment(batch: Tensor, generator: torch.Generator, *, crop: int = 4, flip: bool = True, cutout: int = 0) -> Tensor:
    """The batch with every image shifted, flipped and cut out at random; a new tensor.

    Shifts fill with zeros, as does the hole: a square around a random pixel, the part of it that is inside the image
    (DeVries & Taylor, 2017).

    Parameters
    ----------
    batch : images (b, c, h, w).
    generator : where the randomness comes from.
    crop, flip, cutout : as in `Augment`.

    >>> images = torch.rand(8, 3, 32, 32)
    >>> augment(images, torch.Generator().manual_seed(0), crop=4, flip=True).shape
    torch.Size([8, 3, 32, 32])
    """
    settings = Augment(crop, flip, cutout)
    if batch.dim() != 4:
        raise RequestError(f"augmentation needs images (b, c, h, w), got a batch of shape {tuple(batch.shape)}")
    return cut(crop_and_flip(batch, generator, settings), generator, settings)


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
