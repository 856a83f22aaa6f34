"""Plain convolutional networks: names, counts, and the network that a person writes first."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nasight.errors import RequestError
from nasight.spaces import PlainSpace, load, multiply_adds
from nasight.spaces.convnet import ConvNet

SPACE = ConvNet()
ARCHITECTURES = st.builds(
    lambda *options: SPACE.architecture({d.name: o for d, o in zip(SPACE.decisions, options, strict=True)}),
    *(st.sampled_from(d.options) for d in SPACE.decisions),
)


@pytest.mark.parametrize("inputs", [(3, 16, 16), (1, 3, 9), (1, 1, 1)])
def test_the_reference_is_the_plain_network_to_the_bit(inputs):
    plain = PlainSpace()
    torch.manual_seed(0)
    ours = SPACE.network(SPACE.reference, inputs, 10).eval()
    torch.manual_seed(0)
    theirs = plain.network(plain.reference, inputs, 10).eval()
    x = torch.randn(4, *inputs, generator=torch.Generator().manual_seed(0))
    assert torch.equal(ours(x), theirs(x))


@given(ARCHITECTURES)
def test_a_text_is_read_back_as_the_architecture_that_wrote_it(arch):
    assert SPACE.parse(SPACE.format(arch)) == arch


@settings(max_examples=30, deadline=None)
@given(ARCHITECTURES, st.sampled_from([(3, 16, 16), (1, 5, 9), (2, 1, 3)]), st.sampled_from([1, 3, 8]))
def test_counts_by_the_formula_are_those_of_the_network(arch, inputs, channels):
    network = SPACE.network(arch, inputs, 7, channels=channels)
    parameters = SPACE.parameters(inputs, 7, channels=channels)
    products = SPACE.multiply_adds(inputs, 7, channels=channels)
    assert parameters(arch) == sum(p.numel() for p in network.parameters())
    assert products(arch) == multiply_adds(network, inputs)


def test_the_plain_network_has_94186_parameters_on_gray_images_and_94762_on_colored_ones():
    # 9 * (1 * 32 + 32 * 64 + 64 * 128) kernels, 2 * (32 + 64 + 128) of batch norm, 129 * 10 of the linear layer.
    assert SPACE.parameters((1, 8, 8), 10)(SPACE.reference) == 94_186
    assert SPACE.parameters((3, 32, 32), 10)(SPACE.reference) == 94_762


def test_none_is_lighter_than_the_lightest():
    count = SPACE.parameters((3, 16, 16), 10)
    (least,) = SPACE.lightest()
    assert count(least) == min(map(count, SPACE))


def test_a_skip_adds_what_enters_a_layer_to_what_leaves_it():
    arch = SPACE.parse("k3/w1n1/w1n3+/w1n1")
    network = SPACE.network(arch, (1, 8, 8), 3, channels=4).eval()
    stage, x = network[2], torch.randn(2, 4, 4, 4, generator=torch.Generator().manual_seed(0))
    first = stage.layers[0](x)
    second = first + stage.layers[1](first)
    assert torch.equal(stage(x), second + stage.layers[2](second))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("w1n1/w1n1/w1n1", "is written like 'k3/w1n1/w1n1/w1n1', got 'w1n1/w1n1/w1n1'"),
        ("k3/w1n1/w1n1", "is written like"),
        ("k3/w1n1/w1/w1n1", "stage 2 must be written like 'w1n1' or 'w1.5n2+', got 'w1'"),
        ("k4/w1n1/w1n1/w1n1", "decision 'first kernel' is '4', not one of 3, 5, 7"),
        ("k3/w1n1/w1n1/w3n1", "decision 'width 3' is '3', not one of 1, 0.5, 1.5, 2"),
        ("k3/w1n3/w1n1/w1n1", "decision 'layers 1' is '3', not one of 1, 2, 2+, 3+"),
    ],
)
def test_a_wrong_text_is_named(text, says):
    with pytest.raises(RequestError, match=re.escape(says)):
        SPACE.parse(text)


def test_vectors_are_refused():
    with pytest.raises(RequestError, match="this space needs images"):
        load("convnet").network(SPACE.reference, (64,), 10)


def test_a_network_is_told_stage_by_stage():
    told = SPACE.described(SPACE.parse("k7/w2n3+/w1n2/w0.5n1"), channels=16)
    assert told == (
        "stage 1: three convolutions of 7x7 and 3x3 with skips, 32 channels",
        "stage 2: two convolutions of 3x3, 32 channels",
        "stage 3: one convolution of 3x3, 32 channels",
    )
