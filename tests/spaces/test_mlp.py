"""The fully connected space of EigenNAS."""

import itertools

import pytest
import torch

from nasight.errors import RequestError
from nasight.spaces.mlp import ACTIVATIONS, Mlp


def matched(space_a, space_b, text, inputs, width):
    """A standard and an ntk network whose matrices are those that the docstring relates."""
    a = space_a.network(space_a.parse(text), (inputs,), 3, width=width).double()
    b = space_b.network(space_b.parse(text), (inputs,), 3, width=width).double()
    with torch.no_grad():
        for i, (mine, theirs) in enumerate(zip(a.matrices, b.matrices, strict=True)):
            first = inputs**-0.5 if space_a.scale_inputs else 1.0
            mine.weight.copy_(theirs.weight * ((2 / width) ** 0.5 if i else first))
    return a, b


def test_the_network_is_equation_1_with_the_factor_of_the_kernel():
    torch.manual_seed(0)
    space = Mlp(layers=5, parametrization="ntk", slope=0.2)
    net = space.network(space.parse("leaky_relu,sigmoid,tanh,swish/1,0,1"), (6,), 2, width=32).double()
    w = [m.weight.detach() for m in net.matrices]
    x = torch.randn(4, 6, dtype=torch.float64)
    c = (2 / 32) ** 0.5
    z = x @ w[0].T
    h1 = c * torch.where(z > 0, z, 0.2 * z)
    h2 = c * (1 / (1 + torch.exp(-h1 @ w[1].T)) - 0.5) + h1
    h3 = c * torch.tanh(h2 @ w[2].T)
    z = h3 @ w[3].T
    h4 = c * z / (1 + torch.exp(-z)) + h3
    torch.testing.assert_close(net(x), h4 @ w[4].T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("text", ["relu,tanh,swish/1,0", "sigmoid,leaky_relu,relu/1,1"])
def test_both_parametrizations_are_one_function_of_matching_matrices(text, scale):
    spaces = [Mlp(parametrization=p, scale_inputs=scale) for p in ("standard", "ntk")]
    a, b = matched(*spaces, text, 7, 64)
    x = torch.randn(5, 7, dtype=torch.float64)
    torch.testing.assert_close(a(x), b(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("scale", [False, True])
def test_both_parametrizations_have_the_same_output_variance_at_initialization(scale):
    torch.manual_seed(0)
    x = torch.randn(1, 12)
    variances = []
    for parametrization in ("standard", "ntk"):
        space = Mlp(parametrization=parametrization, scale_inputs=scale)
        arch = space.parse("relu,tanh,swish/1,0")
        outs = torch.cat([space.network(arch, (12,), 400, width=64)(x) for _ in range(60)])
        variances.append(outs.var().item())
    assert variances[0] == pytest.approx(variances[1], rel=0.12)


def test_a_wide_relu_network_keeps_the_norm_of_its_input():
    # K's A_L for unit-norm ReLU without skips is 1: the output's variance is the input's squared norm.
    torch.manual_seed(0)
    space = Mlp(layers=4, parametrization="ntk")
    x = torch.nn.functional.normalize(torch.randn(1, 10))
    out = space.network(space.parse("relu,relu,relu/0,0"), (10,), 20000, width=1024)(x)
    assert out.var().item() == pytest.approx(1, abs=0.15)


def test_by_default_the_standard_form_scales_its_inputs_and_the_formula_does_not():
    assert (Mlp().scale_inputs, Mlp(parametrization="ntk").scale_inputs) == (True, False)


def test_the_paper_s_space_has_five_activations_a_layer_and_two_skips_an_inner_layer():
    assert len(Mlp(layers=4)) == 5**3 * 2**2
    assert len(Mlp(layers=10)) == 5**9 * 2**8


def test_two_layers_are_one_activation_without_skips():
    space = Mlp(layers=2)
    assert [space.format(a) for a in space] == list(ACTIVATIONS)
    assert [g.name for g in space.groups()] == ["activations"]
    assert [g.shape for g in Mlp(layers=4).groups()] == [(3, 5), (2, 2)]


def test_every_activation_is_zero_at_zero_and_no_two_are_the_same():
    z = torch.linspace(-2, 2, 5)
    values = [Mlp().form.activation(name)(z) for name in ACTIVATIONS]
    assert all(v[2] == 0 for v in values)
    assert all(not torch.allclose(a, b) for a, b in itertools.combinations(values, 2))


def test_inputs_of_any_shape_are_flattened():
    space = Mlp(layers=3)
    net = space.network(space.parse("relu,relu/1"), (3, 4, 5), 7, width=8)
    assert net(torch.randn(2, 3, 4, 5)).shape == (2, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("relu,relu,relu", "expected a text like 'relu,relu,relu/0,0' for 4 layers"),
        ("relu,relu/0,0", r"4 layers has 3 activation\(s\), this text has 2"),
        ("relu,relu,relu/0", r"4 layers has 2 skip\(s\), this text has 1"),
        ("relu,gelu,relu/0,0", "activation 2: unknown option 'gelu', not one of relu"),
        ("relu,relu,relu/0,2", "skip 2: unknown option '2', not one of 0, 1"),
        ("", "expected a text like"),
    ],
)
def test_a_wrong_text_is_told_where_it_is_wrong(text, message):
    with pytest.raises(RequestError, match=message):
        Mlp(layers=4).parse(text)


def test_wrong_settings_are_refused():
    with pytest.raises(RequestError, match="at least 2, got 1"):
        Mlp(layers=1)
    with pytest.raises(RequestError, match="one of standard, ntk, got 'mup'"):
        Mlp(parametrization="mup")
