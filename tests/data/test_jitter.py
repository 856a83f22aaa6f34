"""Random colors: each of the four changes by hand, and all of them together."""

from __future__ import annotations

import colorsys
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from nasight.data import Augment, Loader, augment
from nasight.data._jitter import brightness, contrast, hue, jitter, saturation
from nasight.errors import RequestError


def pixel(*colors: float) -> Tensor:
    return torch.tensor(colors, dtype=torch.float32).view(1, -1, 1, 1)


def random_images(b: int = 12, c: int = 3) -> Tensor:
    return torch.randint(0, 256, (b, c, 6, 5), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


def test_a_third_of_the_circle_turns_red_into_green_green_into_blue_and_blue_into_red() -> None:
    third = torch.tensor(1 / 3)
    colors = [pixel(1, 0, 0), pixel(0, 1, 0), pixel(0, 0, 1), pixel(1, 0, 0)]
    for color, after in pairwise(colors):
        torch.testing.assert_close(hue(color, third), after, atol=1e-6, rtol=0)
        torch.testing.assert_close(hue(after, -third), color, atol=1e-6, rtol=0)


def test_hues_turn_as_in_pythons_own_hsv() -> None:
    x = torch.rand(1, 3, 4, 25, generator=torch.Generator().manual_seed(0))
    for turn in (-0.2, 0.05, 0.5):
        found = hue(x, torch.tensor(turn)).flatten(2)[0].T.tolist()
        for before, after in zip(x.flatten(2)[0].T.tolist(), found, strict=True):
            h, s, v = colorsys.rgb_to_hsv(*before)
            assert after == pytest.approx(colorsys.hsv_to_rgb((h + turn) % 1, s, v), abs=1e-5)


def test_grays_have_no_hue_to_turn() -> None:
    assert torch.equal(hue(pixel(0.3, 0.3, 0.3), torch.tensor(0.2)), pixel(0.3, 0.3, 0.3))


def test_no_saturation_is_the_gray_of_299_587_and_114_thousandths() -> None:
    found = saturation(pixel(1, 0.5, 0.25), torch.tensor(0.0))
    assert found.flatten().tolist() == pytest.approx([0.299 + 0.2935 + 0.0285] * 3)
    assert saturation(pixel(1, 0, 0), torch.tensor(2.0)).flatten().tolist() == [1, 0, 0], "1.701 and -0.299, cut off"


def test_half_the_brightness_halves_every_value_and_white_stays_white() -> None:
    assert brightness(pixel(1, 0.5, 0.25), torch.tensor(0.5)).flatten().tolist() == [0.5, 0.25, 0.125]
    assert brightness(pixel(1, 0.9, 0.25), torch.tensor(1.4)).flatten().tolist() == pytest.approx([1, 1, 0.35])


def test_contrast_moves_values_to_or_from_the_mean_gray_of_their_image() -> None:
    x = torch.tensor([[0.2, 0.6], [0.0, 0.4]]).view(1, 1, 2, 2)
    for factor, expected in ((0.0, [0.3] * 4), (0.5, [0.25, 0.45, 0.15, 0.35]), (2.0, [0.1, 0.9, 0.0, 0.5])):
        assert contrast(x, torch.tensor(factor)).flatten().tolist() == pytest.approx(expected)
    red = contrast(pixel(1, 0, 0), torch.tensor(0.0))
    assert red.flatten().tolist() == pytest.approx([0.299] * 3)


def test_a_batch_has_the_four_changes_image_by_image_in_the_order_that_was_drawn() -> None:
    images = random_images()
    found = jitter(images, torch.Generator().manual_seed(5), 0.4)
    chance = torch.rand(12, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    for row, image in enumerate(images):
        x = image[None] / 255
        for number in chance[row, 4:].argsort().tolist():
            share = float(chance[row, number])
            change = (brightness, contrast, saturation, hue)[number]
            x = change(x, torch.tensor(0.6 + 0.8 * share if number < 3 else 0.4 * share - 0.2))
        torch.testing.assert_close(found[row].float(), (x[0] * 255).round(), atol=1, rtol=0)
    assert found.dtype == torch.uint8
    assert len({tuple(order) for order in chance[:, 4:].argsort(1).tolist()}) > 4


def test_fractions_change_as_the_same_pixels_of_8_bits_do() -> None:
    images = random_images()
    whole = jitter(images, torch.Generator().manual_seed(5), 0.4)
    fractions = jitter(images / 255, torch.Generator().manual_seed(5), 0.4)
    torch.testing.assert_close(fractions, whole / 255, atol=0.51 / 255, rtol=0)
    assert 0 <= float(fractions.min()) <= float(fractions.max()) <= 1


def test_gray_images_change_in_brightness_and_contrast_as_color_images_of_the_same_grays() -> None:
    gray = random_images(c=1) / 255
    found = jitter(gray, torch.Generator().manual_seed(5), 0.4)
    color = jitter(gray.expand(-1, 3, -1, -1), torch.Generator().manual_seed(5), 0.4)
    torch.testing.assert_close(color, found.expand_as(color), atol=1e-5, rtol=0)
    assert not torch.allclose(found, gray)


def test_colors_of_two_channels_are_refused() -> None:
    with pytest.raises(RequestError, match="1 or 3 channels, not of 2"):
        augment(torch.rand(2, 2, 4, 4), torch.Generator(), jitter=0.4)
    for wrong in ({"jitter": 1.5}, {"area": -0.1}, {"area": float("nan")}):
        with pytest.raises(RequestError, match="must be between 0 and 1"):
            Augment(**wrong)  # type: ignore[arg-type]


def test_a_slice_of_a_batch_has_the_crops_and_colors_that_it_has_in_the_whole() -> None:
    images, one = random_images(30), torch.ones(3)
    settings = Augment(crop=1, flip=True, cutout=2, area=0.08, jitter=0.4)
    loader = Loader(
        images, torch.arange(30), batch_size=10, mean=0 * one, std=one, seed=1, stream="train", augment=settings
    )
    whole, labels = loader.batch(2, 1)
    part, some = loader.batch(2, 1, slice(3, 7))
    assert torch.equal(some, labels[3:7])
    torch.testing.assert_close(part, whole[3:7], atol=1.01 / 255, rtol=0)
    assert torch.equal(whole, loader.batch(2, 1)[0])


def test_colors_change_before_images_are_normalized() -> None:
    images = random_images(10)
    mean, std = torch.tensor([0.2, 0.3, 0.4]), torch.tensor([0.5, 0.25, 2.0])
    settings = Augment(crop=0, flip=False, jitter=0.4)
    plain, normal = (
        Loader(images, torch.arange(10), batch_size=10, mean=m, std=s, seed=1, stream="train", augment=settings)
        for m, s in ((torch.zeros(3), torch.ones(3)), (mean, std))
    )
    expected = (plain.batch(0, 0)[0] - mean.view(3, 1, 1)) / std.view(3, 1, 1)
    torch.testing.assert_close(normal.batch(0, 0)[0], expected, atol=1e-5, rtol=1e-5)
