"""Random parts of images at the size of the image: what is drawn, and how it is enlarged."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image

from nasight.data import augment
from nasight.data._random_crop import crop_boxes, enlarged


def boxes(number: int, height: int, width: int, least: float = 0.08, seed: int = 0) -> torch.Tensor:
    return crop_boxes(number, height, width, least, torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_a_part_that_is_the_whole_image_changes_no_bit_of_it(dtype: torch.dtype) -> None:
    images = (torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0)) * 255).to(dtype)
    assert torch.equal(enlarged(images, torch.tensor([[0, 0, 5, 7]] * 2)), images)


def test_two_pixels_become_four_by_a_quarter_and_three_quarters_of_each() -> None:
    """Centers of the four lie at -0.25, 0.25, 0.75 and 1.25 between pixels 0 and 1; other pixels do not count."""
    row = torch.tensor([9.0, 0.0, 8.0, 9.0]).expand(1, 1, 4, 4)
    found = enlarged(row, torch.tensor([[1, 1, 2, 2]]))
    assert found.tolist() == [[[[0.0, 2.0, 6.0, 8.0]] * 4]]


def test_a_part_is_enlarged_as_pillow_does_it() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    top, left, high, wide = 3, 6, 11, 13
    expected = Image.fromarray(pixels[top : top + high, left : left + wide]).resize((32, 24), Image.Resampling.BILINEAR)
    batch = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None]
    found = enlarged(batch, torch.tensor([[top, left, high, wide]]))
    away = found[0].int() - torch.from_numpy(np.array(expected).transpose(2, 0, 1).astype(np.int32))
    assert int(away.abs().max()) <= 1, "Pillow rounds after rows and after columns, we once"


def test_areas_and_proportions_of_2000_parts_are_those_of_the_definition() -> None:
    """Of a square, area a and ratio r fit if |log r| <= -log a. With L = log(4/3) the mean area of what fits is
    ((0.75^2 - 0.08^2) / 2 + (1 - 0.75^2) / (4 L) - 0.75^2 / 2) / (0.75 - 0.08 + 0.25 / L - 0.75) = 0.47780.
    """
    length = math.log(4 / 3)
    mean = ((0.75**2 - 0.08**2) / 2 + (1 - 0.75**2) / (4 * length) - 0.75**2 / 2) / (0.67 + 0.25 / length - 0.75)
    assert mean == pytest.approx(0.47780, abs=1e-5)
    top, left, high, wide = boxes(2000, 10_000, 10_000).unbind(1)
    areas, ratios = high * wide / 1e8, wide / high
    assert 0.0799 <= float(areas.min()) < 0.09
    assert 0.9 < float(areas.max()) <= 1
    assert float(areas.mean()) == pytest.approx(mean, abs=0.02)
    assert 0.7499 <= float(ratios.min()) < 0.76
    assert 1.32 < float(ratios.max()) <= 1.3334
    assert float(ratios.log().mean()) == pytest.approx(0, abs=0.02)
    assert bool(((top >= 0) & (left >= 0) & (top + high <= 10_000) & (left + wide <= 10_000)).all())
    assert float((top / (10_000 - high + 1)).mean()) == pytest.approx(0.5, abs=0.03)


def test_what_fits_in_none_of_ten_tries_is_the_middle_in_proportions_of_at_most_four_thirds() -> None:
    assert boxes(20, 60, 100, least=1.0).tolist() == [[0, 10, 60, 80]] * 20
    assert boxes(20, 100, 60, least=1.0).tolist() == [[10, 0, 80, 60]] * 20


def test_every_image_has_a_part_of_its_own_and_the_same_state_gives_the_same_batch() -> None:
    slope = torch.linspace(0, 1, 32).expand(50, 3, 32, 32)

    def drawn(seed: int) -> torch.Tensor:
        return augment(slope, torch.Generator().manual_seed(seed), crop=0, flip=False, area=0.08)

    first = drawn(0)
    assert torch.equal(first, drawn(0))
    assert not torch.equal(first, drawn(1))
    assert len({tuple(row[0, 0, :].tolist()) for row in first}) > 35, "of 50; some differ in their rows alone"
    assert float(first.min()) >= 0
    assert float(first.max()) <= 1
