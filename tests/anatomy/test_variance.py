"""Gradient variance: equal to what a backward pass an example gives, by contraction and by torch.func."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.anatomy._variance import CROSS_ENTROPY, gradient_variance
from nasight.errors import RequestError
from nasight.gradients import materialized
from nasight.spaces import load

DARTS = "DARTS_V2"
CELL = "|nor_conv_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|avg_pool_3x3~0|nor_conv_3x3~1|nor_conv_1x1~2|"


def trained(space: str, cell: str, x: Tensor, **size: int) -> nn.Module:
    """A network with statistics and affine maps that are not the initial ones."""
    where = load(space)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = where.network(where.parse(cell), tuple(x.shape[1:]), 4, **size).to(x.dtype)
        for norm in (m for m in network.modules() if isinstance(m, nn.BatchNorm2d)):
            for p in norm.parameters():
                nn.init.normal_(p, 1.0, 0.3)
        network.train()(x)
    return network.eval()


def by_loop(network: nn.Module, x: Tensor, y: Tensor) -> float:
    rows = []
    for i in range(len(x)):
        out = network(x[i : i + 1])
        loss = F.cross_entropy(out[0] if isinstance(out, tuple) else out, y[i : i + 1])
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(network.parameters()))]))
    stacked = torch.stack(rows).double()
    return float((stacked - stacked.mean(0)).square().sum(1).mean())


def examples(dtype: torch.dtype, n: int = 12) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(n, 3, 8, 8, generator=generator, dtype=torch.float64)
    return x.to(dtype), torch.randint(0, 4, (n,), generator=generator)


@pytest.mark.parametrize(("space", "cell"), [("nasbench201", CELL), ("darts", DARTS)])
@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_the_contraction_equals_a_loop_of_backward_passes(
    space: str, cell: str, dtype: torch.dtype, within: float
) -> None:
    x, y = examples(dtype)
    network = trained(space, cell, x, channels=4, cells=3 if space == "darts" else 1)
    exact = by_loop(network.double(), x.double(), y)
    network.to(dtype)
    for chunk in (5, 128):
        assert gradient_variance(network, x, y, chunk=chunk) == pytest.approx(exact, rel=within)


def test_the_contraction_equals_the_gradients_of_torch_func() -> None:
    x, y = examples(torch.float64)
    network = trained("nasbench201", CELL, x, channels=4, cells=1)
    parts = materialized(network, x, "eval", lambda out, labels: CROSS_ENTROPY(out, labels)[None], 5, y)
    rows = torch.cat([part[:, 0] for part in parts], 1)
    expected = float((rows - rows.mean(0)).square().sum(1).mean())
    assert gradient_variance(network, x, y) == pytest.approx(expected, rel=1e-12)


def test_layers_that_are_not_contracted_have_the_same_variance_as_a_loop() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 4)).double()
    x = torch.randn(9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.arange(9) % 4
    assert gradient_variance(network, x, y, chunk=4) == pytest.approx(by_loop(network, x, y), rel=1e-12)


def test_the_mode_of_the_model_does_not_matter_and_is_left_alone() -> None:
    x, y = examples(torch.float64)
    network = trained("nasbench201", CELL, x, channels=2, cells=1)
    state = {k: v.clone() for k, v in network.state_dict().items()}
    in_eval = gradient_variance(network, x, y)
    assert gradient_variance(network.train(), x, y) == in_eval
    assert network.training
    assert all(torch.equal(v, state[k]) for k, v in network.state_dict().items())


def test_variance_follows_from_the_definition_for_two_opposite_gradients() -> None:
    network = nn.Linear(1, 2, bias=False)
    nn.init.zeros_(network.weight)
    # Softmax at 0: gradients (-1/2, 1/2) and (1/2, -1/2), their mean is 0 and their squares are 1/2.
    assert gradient_variance(network, torch.ones(2, 1), torch.tensor([0, 1])) == 0.5


def test_an_overflow_is_infinite_not_zero() -> None:
    network = nn.Linear(1, 2, bias=False)
    nn.init.constant_(network.weight, math.inf)
    assert gradient_variance(network, torch.ones(2, 1), torch.tensor([0, 1])) == math.inf


def test_labels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RequestError, match=r"as many, at least one, got 2 and 3"):
        gradient_variance(nn.Linear(1, 2), torch.ones(2, 1), torch.tensor([0, 1, 1]))
