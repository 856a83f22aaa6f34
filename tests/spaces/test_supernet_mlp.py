"""The supernet of fully connected networks."""

import pytest
import torch

from nasight.errors import RequestError
from nasight.spaces.mlp import Mlp

ONE_PASS = ["relu,tanh,swish/1,0", "sigmoid,leaky_relu,relu/0,1", "leaky_relu,sigmoid,tanh/1,1"]


@pytest.mark.parametrize("parametrization", ["standard", "ntk"])
@pytest.mark.parametrize("skip_zeros", [False, True])
@pytest.mark.parametrize("text", ONE_PASS)
def test_at_ones_and_zeros_the_supernet_is_the_stand_alone_network(text, skip_zeros, parametrization):
    space = Mlp(parametrization=parametrization, slope=0.3)
    arch = space.parse(text)
    supernet = space.supernet((2, 3), 4, width=16).double()
    network = space.network(arch, (2, 3), 4, width=16).double()
    network.matrices.load_state_dict(supernet.matrices.state_dict())
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    weights = {name: w.double() for name, w in space.encode(arch).items()}
    torch.testing.assert_close(supernet(x, weights, skip_zeros=skip_zeros), network(x), rtol=1e-12, atol=1e-12)


def test_a_layer_is_the_mixture_of_its_activations_plus_its_weighted_input():
    space = Mlp(layers=3, parametrization="ntk", slope=0.3)
    supernet = space.supernet((6,), 4, width=16).double()
    x = torch.randn(5, 6, dtype=torch.float64)
    weights = {g.name: torch.rand(g.shape, dtype=torch.float64) for g in space.groups()}
    w1, w2, w3 = (m.weight for m in supernet.matrices)
    c = (2 / 16) ** 0.5

    def mixed(z, row):
        parts = (z.relu(), z.clamp_min(0) + 0.3 * z.clamp_max(0), z.sigmoid() - 0.5, z.tanh(), z * z.sigmoid())
        return c * sum(w * part for w, part in zip(row, parts, strict=True))

    h = mixed(x @ w1.T, weights["activations"][0])
    h = mixed(h @ w2.T, weights["activations"][1]) + weights["skips"][0, 1] * h
    torch.testing.assert_close(supernet(x, weights), h @ w3.T)


@pytest.mark.parametrize("layers", [2, 4])
def test_gradients_of_the_weights_are_right(layers):
    space = Mlp(layers=layers)
    supernet = space.supernet((6,), 2, width=8).double()
    x = torch.randn(3, 6, dtype=torch.float64)
    weights = [torch.rand(g.shape, dtype=torch.float64, requires_grad=True) for g in space.groups()]

    def logits(*given):
        return supernet(x, {g.name: w for g, w in zip(space.groups(), given, strict=True)})

    assert torch.autograd.gradcheck(logits, weights)


def test_a_weight_of_zero_has_a_gradient_unless_zeros_are_skipped():
    space = Mlp(layers=3)
    supernet = space.supernet((6,), 2, width=8)
    for skip_zeros in (None, True):
        weights = {n: w.requires_grad_() for n, w in space.encode(space.parse("relu,relu/0")).items()}
        supernet(torch.randn(3, 6), weights, skip_zeros=skip_zeros).sum().backward()
        tanh, skip = weights["activations"].grad[0, 3], weights["skips"].grad
        assert (tanh != 0) == (skip_zeros is None)
        assert (skip is not None and bool(skip[0, 1] != 0)) == (skip_zeros is None)


def test_weights_that_do_not_fit_are_refused():
    supernet = Mlp(layers=4).supernet((6,), 2, width=8)
    with pytest.raises(RequestError, match="lack the group 'skips'; given: activations"):
        supernet(torch.randn(3, 6), {"activations": torch.ones(3, 5)})
    with pytest.raises(RequestError, match=r"weights\['skips'\] must have shape \(2, 2\), got \(3, 2\)"):
        supernet(torch.randn(3, 6), {"activations": torch.ones(3, 5), "skips": torch.ones(3, 2)})
    with pytest.raises(RequestError, match="path must be one of fast, plain, compiled, got 'slow'"):
        Mlp().supernet(path="slow")
