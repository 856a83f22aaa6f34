"""Stratified parts and keyed generators."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.data import split_indices
from nasight.errors import RequestError
from nasight.reproducible import generator_for


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    """Rows of each class, sizes of the parts, seed."""
    counts = draw(st.lists(st.integers(1, 40), min_size=1, max_size=8))
    left, sizes = sum(counts), []
    for _ in range(draw(st.integers(1, 4))):
        if left:
            sizes.append(draw(st.integers(1, left)))
            left -= sizes[-1]
    return counts, sizes, draw(st.integers(0, 2**40))


def labels(counts: list[int], seed: int) -> torch.Tensor:
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return y[torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))]


@given(problems())
@settings(max_examples=150, deadline=None)
def test_parts_are_disjoint_of_the_asked_sizes_and_the_same_for_a_seed(
    problem: tuple[list[int], list[int], int],
) -> None:
    counts, sizes, seed = problem
    y = labels(counts, seed)
    parts = split_indices(y, sizes, torch.Generator().manual_seed(seed))
    rows = torch.cat(parts).tolist()
    assert [len(part) for part in parts] == sizes
    assert len(set(rows)) == len(rows)
    again = split_indices(y, sizes, torch.Generator().manual_seed(seed))
    assert all(torch.equal(a, b) for a, b in zip(parts, again, strict=True))


@given(problems())
@settings(max_examples=150, deadline=None)
def test_a_part_large_enough_holds_every_class_that_has_a_row_for_it(problem: tuple[list[int], list[int], int]) -> None:
    counts, sizes, seed = problem
    y = labels(counts, seed)
    parts = split_indices(y, sizes, torch.Generator().manual_seed(seed))
    if all(size >= len(counts) for size in sizes) and min(counts) >= len(sizes):
        for part in parts:
            assert y[part].unique().tolist() == list(range(len(counts)))


@pytest.mark.parametrize("sizes", [[5000, 5000], [9000, 500, 500], [100], [3333, 3333, 3333]])
def test_each_class_is_within_one_row_of_its_proportion(sizes: list[int]) -> None:
    counts = [5000, 3000, 1500, 300, 150, 50]
    y = labels(counts, 0)
    for size, part in zip(sizes, split_indices(y, sizes, torch.Generator().manual_seed(1)), strict=True):
        exact = [size * count / 10_000 for count in counts]
        assert y[part].bincount(minlength=6).tolist() == pytest.approx(exact, abs=1)


def test_which_rows_and_which_rounded_up_classes_are_chosen_is_random() -> None:
    y = labels([10] * 10, 0)
    chosen = [split_indices(y, [5], torch.Generator().manual_seed(seed))[0] for seed in range(40)]
    assert len({tuple(part.tolist()) for part in chosen}) > 35
    assert torch.cat([y[part] for part in chosen]).bincount(minlength=10).min() > 5


@pytest.mark.parametrize(
    ("sizes", "sentence"), [([3, 2], "5 rows, but there are 4"), ([2, 0], "at least 1"), ([], "at least 1")]
)
def test_a_split_that_cannot_be_made_is_refused(sizes: list[int], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        split_indices(torch.tensor([0, 1, 0, 1]), sizes, torch.Generator())


def test_keys_that_only_look_alike_give_different_generators() -> None:
    keys: list[tuple[str | int, ...]] = [(1, 2), (12,), ("1", 2), (1, "2"), ("1, 2",), (2, 1), (1, 2, 0), ()]
    draws = {tuple(torch.rand(2, generator=generator_for(*key)).tolist()) for key in keys}
    assert len(draws) == len(keys)
