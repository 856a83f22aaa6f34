"""The supernet of a user's own module."""

import copy

import pytest
import torch
from torch import nn

from nasight.errors import RequestError
from nasight.spaces.module import Choice, ModuleSpace


class Counted(nn.Module):
    """Counts how often it is called."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, x):
        self.calls += 1
        return self.inner(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.act = Choice({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        inner = Choice({"half": nn.Linear(8, 8), "same": nn.Identity(), "sigmoid": nn.Sigmoid()})
        self.body = Choice({"deep": nn.Sequential(nn.Linear(8, 8), inner), "skip": Counted(nn.Identity())})
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.act(self.body(self.act(self.first(x)))))


SPACE = ModuleSpace(Net)


def copied(space, supernet, arch):
    """The stand-alone network with the supernet's parameters, built by hand for `Net`."""
    net, model = space.network(arch).double(), supernet.model
    net.first, net.last = copy.deepcopy(model.first), copy.deepcopy(model.last)
    if arch["body"] == "deep":
        net.body[0] = copy.deepcopy(model.body.options[0][0])
        inner = model.body.options[0][1]
        net.body[1] = copy.deepcopy(inner.options[inner.names.index(arch["body.deep.1"])])
    return net


def test_at_ones_and_zeros_the_supernet_is_the_stand_alone_network():
    supernet = SPACE.supernet().double()
    x = torch.randn(5, 6, dtype=torch.float64)
    for arch in SPACE:
        weights = {name: w.double() for name, w in SPACE.encode(arch).items()}
        for skip in (False, True):
            torch.testing.assert_close(supernet(x, weights, skip_zeros=skip), copied(SPACE, supernet, arch)(x))


def test_a_nested_choice_contributes_within_its_parent_s_option():
    supernet = SPACE.supernet().double()
    m, x = supernet.model, torch.randn(5, 6, dtype=torch.float64)
    rows = [torch.rand(n, dtype=torch.float64) for n in (2, 2, 3)]
    a, b, c = ([float(v) for v in row] for row in rows)

    def act(z):
        return a[0] * z.relu() + a[1] * z.tanh()

    h = act(m.first(x))
    z = m.body.options[0][0](h)
    inner = c[0] * m.body.options[0][1].options[0](z) + c[1] * z + c[2] * z.sigmoid()
    wanted = m.last(act(b[0] * inner + b[1] * h))
    torch.testing.assert_close(supernet(x, {"choices": torch.cat(rows)}), wanted)


def test_gradients_of_the_weights_are_right():
    supernet = SPACE.supernet().double()
    x = torch.randn(5, 6, dtype=torch.float64)
    weights = torch.rand(SPACE.groups()[0].shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: supernet(x, {"choices": w}), weights)


def test_options_of_weight_zero_are_called_only_for_a_gradient_of_the_weights():
    supernet = SPACE.supernet()
    counted = supernet.model.body.options[1]
    weights = SPACE.encode(SPACE.parse("act=relu, body=deep, body.deep.1=half"))
    supernet(torch.randn(2, 6), weights)
    assert counted.calls == 0
    leaf = {"choices": weights["choices"].clone().requires_grad_()}
    supernet(torch.randn(2, 6), leaf).sum().backward()
    assert counted.calls == 1
    assert leaf["choices"].grad[3] != 0
    supernet(torch.randn(2, 6), leaf, skip_zeros=True)
    assert counted.calls == 1


def test_a_row_of_zeros_gives_zeros():
    supernet = ModuleSpace(lambda: Choice({"a": nn.Linear(2, 3), "b": nn.Linear(2, 3)})).supernet()
    assert torch.equal(supernet(torch.randn(4, 2), {"choices": torch.zeros(1, 2)}), torch.zeros(4, 3))


def test_no_weights_are_left_behind_by_a_pass_that_ends_or_fails():
    class Failing(nn.Module):
        fail = True

        def forward(self, x):
            if self.fail:
                raise RuntimeError("no")
            return x

    choice = Choice({"relu": nn.ReLU(), "minus": nn.Identity()})
    supernet = ModuleSpace(nn.Sequential(choice, Failing())).supernet()
    x, weights = torch.randn(3, 2), {"choices": torch.tensor([[1.0, 0.0]])}
    with pytest.raises(RequestError, match=r"does not take a batch of shape .*: no"):
        supernet(x, weights)
    mean = (x.relu() + x) / 2
    torch.testing.assert_close(supernet.model[0](x), mean)
    supernet.model[1].fail = False
    torch.testing.assert_close(supernet(x, weights), x.relu())
    torch.testing.assert_close(supernet.model[0](x), mean)
    assert list(supernet.parameters()) == []
    assert supernet.state_dict() == {}


def test_a_supernet_inside_a_supernet_keeps_its_own_weights():
    inner = ModuleSpace(lambda: Choice({"double": Times(2), "triple": Times(3)})).supernet()

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.pick = Choice({"ten": Times(10), "five": Times(5)})

        def forward(self, x):
            return self.pick(inner(self.pick(x), {"choices": torch.tensor([[0.0, 1.0]])}))

    outer = ModuleSpace(Outer()).supernet()
    assert outer(torch.ones(1), {"choices": torch.tensor([[1.0, 0.0]])}).item() == 10 * 3 * 10


class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def test_a_copied_supernet_uses_its_own_choices():
    supernet = copy.deepcopy(SPACE.supernet())
    x = torch.randn(2, 6)
    one, two = (supernet(x, SPACE.encode(a)) for a in list(SPACE)[:8:7])
    assert not torch.allclose(one, two)


@pytest.mark.parametrize("name", [None, "mine"])
def test_options_of_different_shapes_are_named_with_both(name):
    space = ModuleSpace(lambda: nn.Sequential(Choice({"wide": nn.Linear(2, 4), "thin": nn.Linear(2, 1)}, name)))
    message = rf"choice '{name or 0}': option 'wide' returns shape \(3, 4\), but option 'thin' returns \(3, 1\)"
    with pytest.raises(RequestError, match=message):
        space.supernet()(torch.randn(3, 2), {"choices": torch.tensor([[0.5, 0.5]])})


def test_an_option_that_returns_no_tensor_is_named():
    space = ModuleSpace(lambda: nn.Sequential(Choice({"gru": nn.GRU(2, 2), "none": nn.Identity()})))
    with pytest.raises(RequestError, match="choice '0': option 'gru' must return a tensor, got tuple"):
        space.supernet()(torch.randn(3, 2), {"choices": torch.tensor([[0.5, 0.5]])})


def test_batch_norms_of_the_model_are_left_as_they_are():
    space = ModuleSpace(lambda: nn.Sequential(Choice({"norm": nn.BatchNorm1d(2), "none": nn.Identity()})))
    supernet = space.supernet()
    norm = supernet.model[0].options[0]
    supernet(torch.randn(8, 2) + 5, {"choices": torch.tensor([[0.5, 0.5]])})
    assert norm.running_mean.min() > 0.3
    assert norm.affine
    kept = norm.running_mean.clone()
    supernet.eval()(torch.randn(8, 2), {"choices": torch.tensor([[0.5, 0.5]])})
    assert torch.equal(norm.running_mean, kept)
