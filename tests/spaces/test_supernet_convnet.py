"""The supernet of plain convolutional networks."""

import pytest
import torch
import torch.nn.functional as F

from nasight.spaces.convnet import ConvNet

SPACE = ConvNet()
TEXTS = ["k3/w1n1/w1n1/w1n1", "k5/w0.5n2/w2n2+/w1.5n3+", "k7/w2n3+/w0.5n1/w1n2", "k3/w1.5n2+/w1.5n2/w2n1"]


def inherited(network, supernet):
    """The network with the shared weights of the supernet."""
    before = network[0].layers[0][0].in_channels
    stages = [module for module in network if hasattr(module, "layers")]
    for stage, mixed in zip(stages, supernet.stages, strict=True):
        for i, layer in enumerate(stage.layers):
            conv = layer[0]
            kinds = {c.kernel_size: c for c in mixed.first}
            shared = mixed.others[i - 1] if i else kinds[conv.kernel_size]
            conv.weight.data.copy_(shared.weight[: conv.out_channels, :before])
            before = conv.out_channels
    network[-1].weight.data.copy_(supernet.head.weight[:, :before])
    network[-1].bias.data.copy_(supernet.head.bias)
    return network


@pytest.mark.parametrize("skip_zeros", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_at_ones_and_zeros_the_supernet_is_the_stand_alone_network(text, skip_zeros):
    arch = SPACE.parse(text)
    supernet = SPACE.supernet((3, 9, 8), 4, channels=4).double()
    network = inherited(SPACE.network(arch, (3, 9, 8), 4, channels=4).double(), supernet)
    x = torch.randn(5, 3, 9, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = {name: w.double() for name, w in SPACE.encode(arch).items()}
    torch.testing.assert_close(supernet(x, weights, skip_zeros=skip_zeros), network(x), rtol=1e-10, atol=1e-10)


def test_a_layer_is_masked_by_the_mean_of_its_widths_and_mixes_its_kernels_before_the_relu():
    supernet = SPACE.supernet((1, 6, 6), 2, channels=2).double()
    stage, x = supernet.stages[0], torch.randn(3, 1, 6, 6, dtype=torch.float64)
    kernels, widths = torch.tensor([0.2, 0.3, 0.5]).double(), torch.tensor([0.1, 0.2, 0.3, 0.4]).double()
    layers = torch.tensor([1.0, 0, 0, 0]).double()
    mixed = sum(
        w * F.batch_norm(F.conv2d(x, conv.weight, padding=side // 2), None, None, training=True)
        for w, conv, side in zip(kernels, stage.first, (3, 5, 7), strict=True)
    )
    # Widths 1, 0.5, 1.5 and 2 of 2 channels are 2, 1, 3 and 4: the first channel is in all, the last in one.
    mask = torch.tensor([1.0, 0.8, 0.7, 0.4]).double()[None, :, None, None]
    found = stage(x, (kernels, [True] * 3), (widths, [True] * 4), (layers, [True] * 4))
    torch.testing.assert_close(found, F.relu(mixed) * mask)


def test_gradients_of_the_weights_are_right():
    torch.manual_seed(0)
    supernet = SPACE.supernet((1, 4, 4), 2, channels=2).double()
    x = torch.randn(3, 1, 4, 4, dtype=torch.float64)
    weights = [torch.rand(g.shape, dtype=torch.float64, requires_grad=True) for g in SPACE.groups()]

    def logits(*given):
        return supernet(x, {g.name: w for g, w in zip(SPACE.groups(), given, strict=True)})

    assert torch.autograd.gradcheck(logits, weights)


def test_a_weight_of_zero_has_a_gradient_unless_zeros_are_skipped():
    supernet = SPACE.supernet((1, 8, 8), 2, channels=2)
    x = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    for skip_zeros in (None, True):
        weights = {n: w.requires_grad_() for n, w in SPACE.encode(SPACE.parse(TEXTS[1])).items()}
        supernet(x, weights, skip_zeros=skip_zeros).square().sum().backward()
        assert bool(weights["layers"].grad[0, 3] != 0) is (skip_zeros is None)
