"""Batches: normalized as a float copy of all data would be, and each a function of its place alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from nasight.data import Augment, Dataset, Loader, augment, batches, load, prepare
from nasight.errors import RequestError
from nasight.reproducible import generator_for

ROWS = 50


def images(dtype: torch.dtype = torch.uint8) -> Dataset:
    x = torch.randint(0, 256, (ROWS, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    return load((x.to(dtype), torch.arange(ROWS) % 5, x[:20].to(dtype), torch.arange(20) % 5))


def loader(**changes: object) -> Loader:
    data = images()
    settings: dict[str, object] = {"batch_size": 8, "seed": 3, "stream": "weights", "augment": Augment(2, True, 3)}
    prepared = prepare(data)
    return Loader(data.train_x, data.train_y, mean=prepared.mean, std=prepared.std, **{**settings, **changes})  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [
        ("cifar-10", [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
        ("fashion-mnist", [0.2860], [0.3530]),
        ("mnist", [0.1307], [0.3081]),
    ],
)
def test_mean_and_deviation_are_the_figures_the_field_uses(
    name: str, mean: list[float], std: list[float], published: Callable[[str], Dataset]
) -> None:
    prepared = prepare(published(name))
    assert prepared.mean.tolist() == pytest.approx(mean, abs=5e-5)
    assert prepared.std.tolist() == pytest.approx(std, abs=5e-5)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_batches_in_order_are_the_rows_standardized_by_the_training_part(dtype: torch.dtype) -> None:
    data = images(dtype)
    scaled = data.train_x.double() / (255 if dtype == torch.uint8 else 1)
    mean, std = scaled.mean((0, 2, 3), keepdim=True), scaled.std((0, 2, 3), correction=0, keepdim=True)
    prepared = prepare(data)
    for part, x in (("train", scaled), ("test", scaled[:20])):
        found = torch.cat([batch for batch, _ in prepared.batches(part, size=7)])
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), (x - mean) / std, rtol=1e-5, atol=1e-5)


def test_statistics_can_be_those_of_the_rows_that_a_search_may_see() -> None:
    data = images()
    rows = torch.arange(10)
    only = load((data.train_x[:10], data.train_y[:10]))
    assert torch.equal(prepare(data, rows).mean, prepare(only).mean)
    assert not torch.equal(prepare(data).mean, prepare(only).mean)


def test_a_constant_feature_becomes_zero_and_a_large_offset_costs_no_accuracy() -> None:
    x = np.stack([np.full(100, 7.1), 1e6 + np.arange(100.0)], 1)
    prepared = prepare(load((x, np.arange(100) % 2)))
    ((batch, _),) = prepared.batches("train", size=100)
    assert batch[:, 0].abs().max() < 1e-5
    assert batch[:, 1].std(correction=0) == pytest.approx(1, abs=1e-3)
    assert batch[:, 1].mean() == pytest.approx(0, abs=1e-2)


def test_a_batch_fetched_alone_is_the_one_of_a_whole_run() -> None:
    run = [(epoch, step) for epoch in range(3) for step in range(6)]
    first = loader()
    together = {place: first.batch(*place) for place in run}
    for place in reversed(run):
        x, y = loader().batch(*place)
        assert torch.equal(x, together[place][0])
        assert torch.equal(y, together[place][1])
        assert x.is_contiguous()


def test_the_bytes_of_a_batch_depend_on_seed_stream_epoch_and_step() -> None:
    variants = [loader(), loader(seed=4), loader(stream="architecture")]
    places = [(0, 0), (1, 0), (0, 1)]
    found = {v.batch(*place)[0].numpy().tobytes() for v in variants for place in places}
    assert len(found) == 9


@pytest.mark.parametrize(("size", "drop", "lengths"), [(8, True, [8] * 6), (8, False, [8] * 6 + [2]), (90, True, [50])])
def test_an_epoch_visits_each_row_once_and_drops_only_a_short_last_batch(
    size: int, drop: bool, lengths: list[int]
) -> None:
    ordered = Loader(
        torch.arange(ROWS, dtype=torch.float32)[:, None],
        torch.arange(ROWS),
        batch_size=size,
        mean=torch.zeros(1),
        std=torch.ones(1),
        seed=0,
        stream="s",
        drop_last=drop,
    )
    epochs = [[y for _, y in ordered.epoch(epoch)] for epoch in (0, 1)]
    assert [len(y) for y in epochs[0]] == lengths
    assert ordered.steps == len(lengths)
    seen = torch.cat(epochs[0]).tolist()
    assert len(set(seen)) == sum(lengths)
    assert seen != torch.cat(epochs[1]).tolist()
    assert all(torch.equal(x[:, 0].long(), y) for x, y in ordered.epoch(2))


def test_augmentation_pads_with_black_and_cuts_to_the_mean() -> None:
    """As in the CIFAR-10 recipe of DARTS: crop and flip before normalization, cutout after it."""
    found, _ = loader().batch(1, 2)
    data, prepared = images(), prepare(images())
    rows = torch.randperm(ROWS, generator=generator_for(3, "weights", 1))[16:24]
    noise = generator_for(3, "weights", 1, 2)
    cropped = augment(data.train_x[rows], noise, crop=2, flip=True)
    normal = (cropped / 255 - prepared.mean.view(3, 1, 1)) / prepared.std.view(3, 1, 1)
    expected = augment(normal, noise, crop=0, flip=False, cutout=3)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert (found == 0).any()


def test_a_prepared_set_augments_as_the_data_set_declares() -> None:
    data = images().augmented(Augment(crop=1, flip=True))
    declared = prepare(data).loader(batch_size=8, seed=0, stream="s", rows=torch.arange(20))
    assert declared.augment == data.augmentation == Augment(crop=1, flip=True)
    assert declared.steps == 2
    with_hole = prepare(data).loader(batch_size=8, seed=0, stream="s", cutout=4)
    assert with_hole.augment == Augment(crop=1, flip=True, cutout=4)
    assert prepare(data).loader(batch_size=8, seed=0, stream="s", augment=False).augment is None
    unknown = prepare(images())
    assert unknown.loader(batch_size=8, seed=0, stream="s").augment is None
    assert unknown.loader(batch_size=8, seed=0, stream="s", cutout=4).augment == Augment(0, False, 4)


def test_shuffled_batches_are_a_function_of_the_generator() -> None:
    data, prepared = images(), prepare(images())

    def draw(seed: int) -> Tensor:
        found = batches(
            data.train_x,
            data.train_y,
            size=8,
            mean=prepared.mean,
            std=prepared.std,
            generator=torch.Generator().manual_seed(seed),
            augment=Augment(2),
            drop_last=True,
        )
        return torch.cat([x for x, _ in found])

    assert len(draw(0)) == 48
    assert torch.equal(draw(0), draw(0))
    assert not torch.equal(draw(0), draw(1))


def test_what_cannot_be_batched_is_refused() -> None:
    x, y, one = torch.zeros(4, 2), torch.zeros(4, dtype=torch.long), torch.ones(2)
    for sentence, call in {
        "4 examples do not fit 3 labels": lambda: batches(x, y[:3], size=2, mean=one, std=one),
        "batch size of 0": lambda: batches(x, y, size=0, mean=one, std=one),
        "at least 1 row, got 0": lambda: batches(x[:0], y[:0], size=2, mean=one, std=one),
        r"must have shape \(2,\)": lambda: batches(x, y, size=2, mean=one[:1], std=one),
        "needs a generator": lambda: batches(x[..., None, None], y, size=2, mean=one, std=one, augment=Augment()),
        "augmentation needs images": lambda: batches(x, y, size=2, mean=one, std=one, augment=Augment()),
        "no step 6 in epoch 0: steps are 0 to 5": lambda: loader().batch(0, 6),
        "got 'validation'": lambda: prepare(images()).batches("validation", size=2),
        "has no test part": lambda: prepare(load((x, [0, 1, 0, 1]))).batches(size=2),
    }.items():
        with pytest.raises(RequestError, match=sentence):
            call()
