"""NAS-Bench-201 as published."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.errors import RequestError
from nasight.spaces.nasbench201 import NasBench201

SPACE = NasBench201()
TEXT = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|"


def parameters(network):
    return sum(p.numel() for p in network.parameters())


@given(st.integers(0, 2**40))
@settings(max_examples=6, deadline=None)
def test_a_cell_has_the_parameters_the_benchmark_counts(seed):
    generator = torch.Generator().manual_seed(seed)
    arch = SPACE.sample(generator)
    while SPACE.usable(arch) is not None:
        arch = SPACE.sample(generator)
    used = [option for _, option in arch]
    wanted = 73306 + 243040 * used.count("nor_conv_3x3") + 28000 * used.count("nor_conv_1x1")
    assert parameters(SPACE.network(arch)) == wanted


@pytest.mark.parametrize(
    ("text", "wide", "narrow"),
    [
        (SPACE.format(SPACE.reference), 2, 0),
        (TEXT, 1, 1),
        ("|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|", 5, 0),
    ],
)
def test_a_cell_has_the_multiply_adds_that_are_counted_by_hand(text, wide, narrow):
    def convolution(kernel, before, after, side):
        return kernel * kernel * before * after * side * side

    stem, head = convolution(3, 3, 16, 32), 64 * 10
    # Two 3x3 convolutions, the first of stride 2, beside a 1x1 one behind a pool.
    reductions = sum(
        convolution(3, c, 2 * c, side) + convolution(3, 2 * c, 2 * c, side) + convolution(1, c, 2 * c, side)
        for c, side in ((16, 16), (32, 8))
    )
    cells = 5 * sum(
        wide * convolution(3, c, c, side) + narrow * convolution(1, c, c, side)
        for c, side in ((16, 32), (32, 16), (64, 8))
    )
    count = SPACE.multiply_adds((3, 32, 32), 10, channels=16, cells=5)
    assert count(SPACE.parse(text)) == stem + reductions + cells + head


def test_the_reference_has_78561920_multiply_adds_at_the_size_of_the_benchmark():
    assert SPACE.multiply_adds((3, 32, 32), 10, channels=16, cells=5)(SPACE.reference) == 78_561_920


def test_there_are_15625_cells_and_4096_without_none():
    assert (len(SPACE), len(NasBench201(none=False))) == (15625, 4096)


def test_the_text_of_a_cell_lists_edges_by_target():
    arch = SPACE.parse(f"  {TEXT}\n")
    assert [option for _, option in arch] == [
        "nor_conv_3x3",
        "none",
        "skip_connect",
        "avg_pool_3x3",
        "none",
        "nor_conv_1x1",
    ]
    assert SPACE.format(arch) == TEXT


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("|nor_conv_3x3~0|+", "", "3 parts joined by '\\+', this text has 2"),
        ("|none~0|skip", "none~0|skip", "part 2 must start and end with '|'"),
        ("|none~1|", "|", "part 3 must have 3 .* it has 2"),
        ("none~1", "none~2", "part 3, entry 2: the input must be 1, got 2"),
        ("none~1", "none", "part 3, entry 2: expected 'operation~1', got 'none'"),
        ("skip_connect~1", "skip~1", "part 2, entry 2: unknown operation 'skip', not one of none"),
    ],
)
def test_a_wrong_text_is_told_where_it_is_wrong(old, new, message):
    with pytest.raises(RequestError, match=message):
        SPACE.parse(TEXT.replace(old, new))


def test_none_is_no_operation_of_the_space_without_it():
    with pytest.raises(RequestError, match="part 2, entry 1: unknown operation 'none'"):
        NasBench201(none=False).parse(TEXT)


def test_a_cell_without_a_path_is_not_a_network():
    cut = SPACE.parse("|nor_conv_3x3~0|+|nor_conv_3x3~0|none~1|+|none~0|none~1|none~2|")
    assert SPACE.usable(cut) is not None
    with pytest.raises(RequestError, match="no path of operations"):
        SPACE.network(cut)
    assert SPACE.usable(SPACE.parse(TEXT)) is None


def test_images_of_any_size_and_colors_pass_and_other_shapes_are_refused():
    network = SPACE.network(SPACE.parse(TEXT), (1, 7, 9), 3, channels=4, cells=1)
    assert network(torch.randn(2, 1, 7, 9)).shape == (2, 3)
    with pytest.raises(RequestError, match=r"needs images .* got examples of shape \(64,\)"):
        SPACE.network(SPACE.parse(TEXT), (64,))
