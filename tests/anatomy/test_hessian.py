"""Curvature by products: equal to that of the whole Hessian of a small network."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, jacrev

from nasight.anatomy._hessian import hessian_spectrum
from nasight.errors import RequestError, RunError


def network_and_data(width: int = 4) -> tuple[nn.Module, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = nn.Sequential(
            nn.Conv2d(1, width, 3), nn.BatchNorm2d(width), nn.Tanh(), nn.Flatten(), nn.Linear(4 * width, 3)
        ).double()
        x = torch.randn(20, 1, 4, 4, generator=generator, dtype=torch.float64)
        network.train()(x)
    return network, x, torch.randint(0, 3, (20,), generator=generator)


def whole(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    parameters = {k: v.detach() for k, v in network.named_parameters()}
    sizes = [v.numel() for v in parameters.values()]

    def loss(flat: Tensor) -> Tensor:
        parts = torch.split(flat, sizes)
        given = {k: part.view_as(v) for (k, v), part in zip(parameters.items(), parts, strict=True)}
        return F.cross_entropy(functional_call(network, given, (x,)), y)

    found: Tensor = jacrev(jacrev(loss))(torch.cat([v.flatten() for v in parameters.values()]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [512, 7])
def test_ends_and_trace_equal_those_of_the_whole_hessian(chunk: int) -> None:
    network, x, y = network_and_data()
    exact = whole(network.eval(), x, y)
    values = torch.linalg.eigvalsh(exact)
    found = hessian_spectrum(
        network, x, y, generator=torch.Generator().manual_seed(0), probes=200, tolerance=1e-8, chunk=chunk
    )
    assert found.largest == pytest.approx(float(values[-1]), rel=1e-6)
    assert found.smallest == pytest.approx(float(values[0]), abs=1e-6 * float(values[-1]))
    assert abs(found.trace - float(exact.trace())) < 4 * found.trace_error
    # The variance of Hutchinson's estimate with signs is 2 sum_{i != j} H_ij^2.
    off = exact - torch.diag(exact.diagonal())
    assert found.trace_error == pytest.approx(float((2 * off.square().sum() / 200).sqrt()), rel=0.2)
    assert found.parameters == len(exact)


def test_few_parameters_take_the_dense_road_to_the_same_numbers() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Linear(3, 3).double()
    x = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.arange(8) % 3
    values = torch.linalg.eigvalsh(whole(network, x, y))
    found = hessian_spectrum(network, x, y, generator=torch.Generator().manual_seed(0))
    assert (found.smallest, found.largest) == pytest.approx((float(values[0]), float(values[-1])), abs=1e-12)


def test_the_same_seed_gives_the_same_figures_and_the_mode_stays() -> None:
    network, x, y = network_and_data()
    network.train()
    once, again = (hessian_spectrum(network, x, y, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert once == again
    assert network.training


def test_a_linear_loss_has_no_curvature() -> None:
    found = hessian_spectrum(
        nn.Linear(20, 2),
        torch.ones(4, 20),
        torch.zeros(4, dtype=torch.int64),
        generator=torch.Generator(),
        loss=lambda out, y: out.sum(1),
    )
    assert (found.smallest, found.largest, found.trace) == (0.0, 0.0, 0.0)


def test_an_undefined_loss_is_named() -> None:
    network, x, y = network_and_data()
    with torch.no_grad():
        next(network.parameters()).fill_(float("nan"))
    with pytest.raises(RunError, match="infinite or undefined"):
        hessian_spectrum(network, x, y, generator=torch.Generator())


def test_frozen_networks_and_too_few_probes_are_refused() -> None:
    network, x, y = network_and_data()
    with pytest.raises(RequestError, match="at least 2 probes, got 1"):
        hessian_spectrum(network, x, y, generator=torch.Generator(), probes=1)
    with pytest.raises(RequestError, match="no parameter that requires a gradient"):
        hessian_spectrum(network.requires_grad_(False), x, y, generator=torch.Generator())
