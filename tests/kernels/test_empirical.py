"""The empirical kernel: equal to what a backward pass an example gives, and what it costs in assumptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.kernels import (
    empirical_ntk,
    extreme_eigenvalues,
    gradient_moments,
    ntk,
    ntk_diagonal,
    ntk_trace,
    per_example_square_norms,
)
from nasight.spaces import load

CELL = "|nor_conv_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|avg_pool_3x3~0|nor_conv_3x3~1|nor_conv_1x1~2|"
CROSS_ENTROPY = partial(F.cross_entropy, reduction="none")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def cell_network() -> nn.Module:
    space = load("nasbench201")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = space.network(space.parse(CELL), (3, 8, 8), 4, channels=4, cells=1).double()
        for norm in (m for m in network.modules() if isinstance(m, nn.BatchNorm2d)):
            for p in norm.parameters():
                nn.init.normal_(p, 1.0, 0.3)
    return network


def with_fixed_norms(network: nn.Module, x: Tensor) -> nn.Module:
    """The network whose batch norms are the affine maps that they are on this batch."""

    def fix(norm: nn.Module, args: tuple[Any, ...], out: Tensor) -> None:
        assert isinstance(norm, nn.BatchNorm2d)
        norm.running_mean = args[0].detach().mean((0, 2, 3))
        norm.running_var = args[0].detach().var((0, 2, 3), unbiased=False)

    hooks = [m.register_forward_hook(fix) for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    network.train()(x)
    for hook in hooks:
        hook.remove()
    return network.eval()


def gradients(network: nn.Module, x: Tensor, value: Callable[[Tensor, int], Tensor]) -> Tensor:
    """A forward and a backward pass for every example alone: (n, parameters)."""
    rows = []
    for i in range(len(x)):
        network.zero_grad()
        value(network(x[i : i + 1]), i).sum().backward()  # type: ignore[no-untyped-call]
        rows.append(torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None]))
    network.zero_grad()
    return torch.stack(rows)


@pytest.mark.parametrize("outputs", ["sum", "trace"])
def test_the_kernel_of_a_cell_is_that_of_passes_example_by_example(outputs: str, generator: torch.Generator) -> None:
    x = torch.randn(6, 3, 8, 8, dtype=torch.float64, generator=generator)
    network = with_fixed_norms(cell_network(), x)
    classes = [None] if outputs == "sum" else range(4)
    expected = torch.zeros(6, 6, dtype=torch.float64)
    for c in classes:
        rows = gradients(network, x, lambda out, i, c=c: out if c is None else out[:, c])  # type: ignore[misc]
        expected += rows @ rows.t()
    network.train()
    for batch_norm in ("train", "eval"):
        torch.testing.assert_close(empirical_ntk(network, x, outputs=outputs, batch_norm=batch_norm), expected)
        torch.testing.assert_close(
            ntk_diagonal(network, x, outputs=outputs, batch_norm=batch_norm), expected.diagonal()
        )
    assert ntk_trace(network, x, outputs=outputs) == pytest.approx(float(expected.trace()))


def test_the_full_kernel_holds_every_pair_of_outputs(generator: torch.Generator) -> None:
    x = torch.randn(3, 3, 8, 8, dtype=torch.float64, generator=generator)
    network = cell_network()
    full = empirical_ntk(network, x, outputs="full").view(3, 4, 3, 4)
    torch.testing.assert_close(full.sum((1, 3)), empirical_ntk(network, x, outputs="sum"))
    torch.testing.assert_close(torch.einsum("icjc->ij", full), empirical_ntk(network, x, outputs="trace"))
    flat = full.reshape(12, 12).diagonal()
    torch.testing.assert_close(ntk_diagonal(network, x, outputs="full"), flat)


def test_coupled_batch_norm_is_the_jacobian_of_the_network_in_training_mode(generator: torch.Generator) -> None:
    x = torch.randn(5, 3, 8, 8, dtype=torch.float64, generator=generator)
    network = cell_network()
    frozen = empirical_ntk(network, x)
    coupled = empirical_ntk(network, x, batch_norm="coupled")
    out = network.train()(x).sum(1)
    grads = [torch.autograd.grad(v, list(network.parameters()), retain_graph=True) for v in out]
    rows = torch.stack([torch.cat([g.flatten() for g in row]) for row in grads])
    torch.testing.assert_close(coupled, rows @ rows.t())
    assert (coupled - frozen).norm() > 0.05 * frozen.norm()


@settings(max_examples=40, deadline=None)
@given(
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2, 4]),
    bias=st.booleans(),
    size=st.integers(7, 12),
    patches=st.sampled_from([0, 2**19]),
)
def test_every_kind_of_convolution_is_contracted_exactly(
    kernel: int, stride: int, padding: int, dilation: int, groups: int, bias: bool, size: int, patches: int
) -> None:
    from nasight.gradients import _contract

    torch.manual_seed(0)
    layer = nn.Conv2d(4, 8, kernel, stride, padding, dilation, groups, bias)
    network = nn.Sequential(layer, nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 2)).double()
    x = torch.randn(3, 4, size, size, dtype=torch.float64)
    rows = gradients(network, x, lambda out, i: out)
    before, _contract.PATCHES = _contract.PATCHES, patches
    try:
        torch.testing.assert_close(empirical_ntk(network, x), rows @ rows.t())
        torch.testing.assert_close(ntk_diagonal(network, x), rows.square().sum(1))
    finally:
        _contract.PATCHES = before


class Odd(nn.Module):
    """Layers used twice, in place, over places, and sharing an input."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(5, 5)
        self.last = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu_(self.twice(x))
        h = torch.relu_(self.twice(h)) + x
        return self.last(h).sum(1)  # type: ignore[no-any-return]


class Bare(nn.Module):
    """A parameter that belongs to no known layer, beside a batch norm used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([0.5, 2.0, -1.0]))
        self.norm = nn.BatchNorm1d(3)
        self.last = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.norm(x) * self.scale))  # type: ignore[no-any-return]


class Borrowed(nn.Linear):
    """A layer whose parameters are used without calling it."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.square(), self.bias)


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (Odd(), (4, 3, 5)),
        (nn.Sequential(Borrowed(5, 3), nn.Tanh(), nn.Linear(3, 2)), (4, 5)),
        (nn.Sequential(nn.Linear(5, 3), nn.LayerNorm(3), nn.Linear(3, 2)), (4, 5)),
        (nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten(), nn.Linear(9, 2)), (4, 2, 5)),
        (nn.Sequential(nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 2)), (4, 3, 40)),
    ],
)
def test_unusual_modules_have_the_same_kernel_by_either_route(network: nn.Module, shape: tuple[int, ...]) -> None:
    network = network.double()
    x = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    rows = gradients(network, x, lambda out, i: out)
    torch.testing.assert_close(empirical_ntk(network, x), rows @ rows.t())
    torch.testing.assert_close(ntk_diagonal(network, x, chunk=3), rows.square().sum(1))


def test_frozen_statistics_hold_for_modules_that_are_not_contracted(generator: torch.Generator) -> None:
    network = Bare().double()
    x = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    first = nn.BatchNorm1d(3).double()(x) * network.scale.detach()
    rows = []
    for i in range(4):
        inner = (x[i] - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()
        h = inner * network.norm.weight + network.norm.bias
        again = (h * network.scale - first.mean(0).detach()) / (first.var(0, unbiased=False).detach() + 1e-5).sqrt()
        out = network.last(again * network.norm.weight + network.norm.bias).sum()
        grads = torch.autograd.grad(out, list(network.parameters()))
        rows.append(torch.cat([g.flatten() for g in grads]))
    expected = torch.stack(rows)
    torch.testing.assert_close(empirical_ntk(network, x), expected @ expected.t())


def test_frozen_parameters_are_left_out(generator: torch.Generator) -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    x = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    whole = empirical_ntk(network, x)
    network[0].requires_grad_(False)
    last = empirical_ntk(network, x)
    hidden = torch.relu(network[0](x)).detach()
    torch.testing.assert_close(last, 2 * (hidden @ hidden.t() + 1))
    assert whole.trace() > last.trace()


def test_a_network_keeps_its_mode_statistics_and_hooks(generator: torch.Generator) -> None:
    network = cell_network()
    network.train()
    network[2].eval()  # type: ignore[index]
    state = {name: value.clone() for name, value in network.state_dict().items()}
    modes = [m.training for m in network.modules()]
    x = torch.randn(4, 3, 8, 8, dtype=torch.float64, generator=generator)
    for batch_norm in ("train", "eval", "coupled"):
        empirical_ntk(network, x, batch_norm=batch_norm)
    with pytest.raises(RuntimeError):
        empirical_ntk(network, x[:, :2])
    assert modes == [m.training for m in network.modules()]
    assert not any(m._forward_hooks or "forward" in m.__dict__ for m in network.modules())
    torch.testing.assert_close(network.state_dict(), state, rtol=0, atol=0)


def test_moments_of_the_loss_gradient_are_those_of_the_examples(generator: torch.Generator) -> None:
    x = torch.randn(6, 3, 8, 8, dtype=torch.float64, generator=generator)
    y = torch.tensor([0, 1, 2, 3, 0, 1])
    network = with_fixed_norms(cell_network(), x)
    rows = gradients(network, x, lambda out, i: F.cross_entropy(out, y[i : i + 1]))
    for batch_norm in ("train", "eval"):
        moments = gradient_moments(network, x, CROSS_ENTROPY, y, batch_norm=batch_norm)
        torch.testing.assert_close(moments.square_norms, rows.square().sum(1))
        torch.testing.assert_close(torch.cat([g.flatten() for g in moments.mean.values()]), rows.mean(0))
        assert moments.variance == pytest.approx(float((rows - rows.mean(0)).square().sum(1).mean()))
    torch.testing.assert_close(per_example_square_norms(network, x, CROSS_ENTROPY, y), rows.square().sum(1))
    bare = Bare().double()
    x = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    slow = gradient_moments(bare, x, lambda out: out[:, 0])
    fast = per_example_square_norms(bare, x, lambda out: out[:, 0])
    torch.testing.assert_close(slow.square_norms, fast)
    assert list(slow.mean) == [name for name, _ in bare.named_parameters()]


def test_extreme_eigenvalues_bound_the_kernel_and_single_precision_is_enough(generator: torch.Generator) -> None:
    network = cell_network()
    x = torch.randn(8, 3, 8, 8, dtype=torch.float64, generator=generator)
    values = torch.linalg.eigvalsh(empirical_ntk(network, x))
    smallest, largest = extreme_eigenvalues(network, x)
    assert (smallest, largest) == pytest.approx((float(values[0]), float(values[-1])))
    single = extreme_eigenvalues(network.float(), x.float())
    assert single == pytest.approx((smallest, largest), rel=1e-3)


def test_wrong_words_are_refused() -> None:
    network, x = nn.Linear(2, 1), torch.randn(3, 2)
    with pytest.raises(RequestError, match="batch_norm must be one of train, eval, coupled, got 'frozen'"):
        empirical_ntk(network, x, batch_norm="frozen")
    with pytest.raises(RequestError, match="outputs must be one of sum, trace, full, got 'mean'"):
        ntk_diagonal(network, x, outputs="mean")
    with pytest.raises(RequestError, match="one number for each of 3 examples"):
        per_example_square_norms(network, x, lambda out: out.sum())


def test_the_kernel_tends_to_the_infinite_one_with_one_over_the_root_of_the_width(generator: torch.Generator) -> None:
    activations, skips, widths, networks = ["relu", "tanh", "swish"], [1, 0], (64, 256, 1024), 12
    space = load("mlp", layers=4, parametrization="ntk")
    arch = space.parse("relu,tanh,swish/1,0")
    x = F.normalize(torch.randn(5, 6, dtype=torch.float64, generator=generator))
    limit = torch.as_tensor(ntk(x.numpy(), activations, skips))
    errors = []
    for width in widths:
        squares = []
        for seed in range(networks):
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                network = space.network(arch, (6,), 1, width=width).double()
            squares.append(float((empirical_ntk(network, x) - limit).square().mean()))
        errors.append((sum(squares) / networks) ** 0.5)
    slopes = torch.tensor(errors).log2().diff() / 2  # the width grows fourfold
    assert float(slopes.mean()) == pytest.approx(-0.5, abs=0.12)
    assert errors[-1] < 0.1 * float(limit.diagonal().mean())
