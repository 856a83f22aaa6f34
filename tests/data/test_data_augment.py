"""The batched augmentation against one image at a time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nasight.data import Augment, augment
from nasight.errors import RequestError


def one_by_one(batch: Tensor, generator: torch.Generator, crop: int, flip: bool, cutout: int) -> Tensor:
    """The same draws, then for each image what its definition says."""
    b, c, h, w = batch.shape
    offsets = torch.randint(2 * crop + 1, (b, 2), generator=generator) if crop else torch.zeros(b, 2, dtype=torch.long)
    flips = torch.randint(2, (b, 1), generator=generator) if flip else torch.zeros(b, 1)
    centers = [torch.randint(side, (b, 1), generator=generator) for side in (h, w)] if cutout else []
    out = torch.zeros_like(batch)
    for i in range(b):
        big = torch.zeros(c, h + 2 * crop, w + 2 * crop, dtype=batch.dtype)
        big[:, crop : crop + h, crop : crop + w] = batch[i]
        top, left = offsets[i].tolist()
        image = big[:, top : top + h, left : left + w]
        image = image.flip(2) if flips[i] else image.clone()
        if cutout:
            y, x = (int(center[i]) - cutout // 2 for center in centers)
            image[:, max(y, 0) : max(y + cutout, 0), max(x, 0) : max(x + cutout, 0)] = 0
        out[i] = image
    return out


@given(
    b=st.integers(1, 5),
    c=st.integers(1, 4),
    h=st.integers(1, 9),
    w=st.integers(1, 9),
    crop=st.integers(0, 4),
    flip=st.booleans(),
    cutout=st.integers(0, 6),
    whole=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=200, deadline=None)
def test_a_batch_is_augmented_exactly_as_its_images_one_by_one(
    b: int, c: int, h: int, w: int, crop: int, flip: bool, cutout: int, whole: bool, seed: int
) -> None:
    batch = torch.randint(1, 256, (b, c, h, w), generator=torch.Generator().manual_seed(seed))
    batch = batch.to(torch.uint8) if whole else batch.float()
    before = batch.clone()
    found = augment(batch, torch.Generator().manual_seed(seed), crop=crop, flip=flip, cutout=cutout)
    expected = one_by_one(batch, torch.Generator().manual_seed(seed), crop, flip, cutout)
    assert found.dtype == batch.dtype
    assert found.is_contiguous()
    assert torch.equal(found, expected)
    assert torch.equal(batch, before)


def test_half_of_the_images_are_mirrored_and_every_shift_is_as_likely() -> None:
    """Chi-square with 80 degrees of freedom is below 130 with probability 0.9996."""
    image = torch.arange(1.0, 26.0).view(1, 1, 5, 5).expand(20_000, 1, 5, 5)
    flipped = augment(image, torch.Generator().manual_seed(0), crop=0)[:, 0, 0, 0] == 5
    assert flipped.float().mean() == pytest.approx(0.5, abs=0.02)
    dot = torch.zeros(20_000, 1, 17, 17)
    dot[:, :, 8, 8] = 1
    places = augment(dot, torch.Generator().manual_seed(0), crop=4, flip=False).flatten(1).argmax(1)
    counts = places.bincount(minlength=289).view(17, 17)[4:13, 4:13].flatten()
    assert counts.sum() == 20_000
    assert float(((counts - 20_000 / 81) ** 2 / (20_000 / 81)).sum()) < 130


def test_the_hole_of_cutout_has_the_asked_side_where_it_fits() -> None:
    sides = augment(torch.ones(500, 3, 32, 32), torch.Generator().manual_seed(0), crop=0, flip=False, cutout=8)
    holes = (sides == 0).sum((1, 2, 3))
    assert int(holes.max()) == 3 * 8 * 8
    assert int(holes.min()) >= 3 * 4 * 4


def test_what_cannot_be_augmented_is_refused() -> None:
    with pytest.raises(RequestError, match="crop must be a whole number"):
        Augment(crop=-1)
    with pytest.raises(RequestError, match=r"got a batch of shape \(4, 5\)"):
        augment(torch.zeros(4, 5), torch.Generator())
