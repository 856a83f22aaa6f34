"""Any module has its kernel and its gradient variance: modules of many kinds against brute force."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasight.gradients import SlowGradients, gradient_route
from nasight.kernels import empirical_ntk, gradient_moments


def _kinds() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "_module_kinds.py"
    spec = importlib.util.spec_from_file_location("_module_kinds", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["_module_kinds"] = module
    spec.loader.exec_module(module)
    return module


kinds = _kinds()
LAYERS = [
    "Linear",
    "Linear over time",
    "Conv2d",
    "Conv2d, groups, stride, dilation",
    "BatchNorm2d",
    "used twice, in place",
    "frozen layer",
    "unused layer",
    "checkpointed",
]
PASSES = ["PReLU", "GRU", "LSTM", "permuted rows", "permuted rows, put back", "attention over the batch"]


@pytest.mark.filterwarnings("ignore::nasight.gradients.SlowGradients")
@pytest.mark.parametrize("name", kinds.KINDS)
def test_kernel_and_variance_are_those_of_a_backward_pass_per_output(name: str) -> None:
    net, x = kinds.build(name, seed=1)
    found = kinds.errors(net, x)
    assert max(found.values()) < 1e-10, found
    assert not any(part._forward_pre_hooks or "forward" in part.__dict__ for part in net.modules())


def test_at_least_forty_kinds_are_tried() -> None:
    assert len(kinds.KINDS) >= 40
    assert {"tied autoencoder", "PReLU", "GRU", "Linear, time first, as many times"} <= set(kinds.KINDS)


@pytest.mark.parametrize("name", [*LAYERS, *PASSES, "tied autoencoder", "Linear, time first, as many times"])
def test_only_what_cannot_be_contracted_goes_a_slower_way(name: str) -> None:
    way = gradient_route(*kinds.build(name), batch_norm="eval").way
    assert way == ("layers" if name in LAYERS else "passes" if name in PASSES else "examples")


def test_a_slower_way_that_nobody_would_expect_is_said() -> None:
    net, x = kinds.build("tied autoencoder")
    with pytest.warns(SlowGradients, match="the weight of a Linear gets other gradients than its calls explain"):
        empirical_ntk(net, x)
    net, x = kinds.build("GRU")
    with pytest.warns(SlowGradients, match="Of takes one backward pass of the batch for every example and output"):
        gradient_moments(net, x)


class Pairs(nn.LayerNorm):
    """Refuses a single row, without a word."""

    def forward(self, x: Tensor) -> Tensor:
        if len(x) < 2:
            raise AssertionError
        return super().forward(x)


def test_the_reason_is_whole_where_torch_says_much_or_nothing() -> None:
    assert gradient_route(Pairs(3), torch.randn(4, 3)).why == "an example alone ends in AssertionError"
    net, x = kinds.build("PReLU")
    assert gradient_route(net, x).why.endswith(" ...")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_and_gradients_that_vanish_are_no_alarm(dtype: torch.dtype) -> None:
    """In single precision too, with a bias before a norm, whose gradient is 0 but for rounding."""
    torch.manual_seed(0)
    layers = [part for _ in range(6) for part in (nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())]
    net = nn.Sequential(nn.Conv2d(3, 8, 3), *layers, nn.Flatten(), nn.Linear(8 * 36, 10)).to(dtype)
    x = 100 * torch.randn(32, 3, 8, 8, dtype=dtype)
    assert gradient_route(net, x).way == "layers"
    normed = nn.Sequential(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.Flatten(), nn.Linear(8 * 36, 2))
    assert gradient_route(normed.to(dtype), x).way == "examples"


class OneClass(nn.Module):
    """Only the last output uses the weight a second time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        out = self.layer(x)
        again = F.linear(x, self.layer.weight).square().sum(1)
        return torch.stack([out[:, 0], out[:, 1], out[:, 2] + again], 1)


def test_every_output_is_checked_not_only_the_first() -> None:
    net, x = OneClass().double(), torch.randn(4, 3, dtype=torch.float64)
    rows = kinds.brute_force(net, x)
    with pytest.warns(SlowGradients):
        found = empirical_ntk(net, x, outputs="trace")
    torch.testing.assert_close(found, torch.einsum("ics,jcs->ij", rows, rows))
