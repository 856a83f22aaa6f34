import math

import torch

from nasight.searching._relaxations import HardGumbel, Mixture, StepContext, UniformSample
from nasight.spaces import load

SPACE = load("nasbench201", none=False)
GROUPS = SPACE.groups()


def moment(seed: int = 0, progress: float = 0.0) -> StepContext:
    return StepContext(SPACE, GROUPS, progress, torch.Generator().manual_seed(seed))


def theta() -> torch.Tensor:
    return torch.tensor([[0.1, 0.2, 0.3, 0.4]]).repeat(6, 1)


def test_hard_gumbel_draws_each_operation_as_often_as_its_weight_says() -> None:
    weights, at = theta(), moment()
    drawn = sum(
        HardGumbel().weights({"operations": weights}, {"operations": weights.log()}, at)["operations"]
        for _ in range(2000)
    )
    shares = drawn.sum(0) / drawn.sum()
    # 12,000 draws: three standard errors are at most 3 sqrt(.25 / 12,000) = 0.0137.
    assert (shares - weights[0]).abs().max() < 0.0137


def test_hard_gumbel_gives_exact_ones_and_zeros_with_the_gradient_of_the_softmax() -> None:
    weights = theta().requires_grad_()
    hard = HardGumbel(hottest=2.0).weights({"operations": weights}, {"operations": weights.log()}, moment(3))
    assert set(hard["operations"].detach().flatten().tolist()) == {0.0, 1.0}
    coefficients = torch.arange(24.0).view(6, 4)
    (by_hard,) = torch.autograd.grad((hard["operations"] * coefficients).sum(), weights)

    generator = torch.Generator().manual_seed(3)
    noise = [-torch.empty(4).exponential_(generator=generator).log() for _ in range(6)]
    soft = ((weights.log() + torch.stack(noise)) / 2.0).softmax(1)
    (by_soft,) = torch.autograd.grad((soft * coefficients).sum(), weights)
    assert torch.allclose(by_hard, by_soft, atol=1e-6)


def test_a_cold_temperature_makes_the_gradient_larger() -> None:
    sizes = []
    for progress in (0.0, 1.0):
        weights = theta().requires_grad_()
        hard = HardGumbel().weights({"operations": weights}, {"operations": weights.log()}, moment(1, progress))
        (grad,) = torch.autograd.grad((hard["operations"] * torch.arange(24.0).view(6, 4)).sum(), weights)
        sizes.append(float(grad.abs().max()))
    assert sizes[1] > 2 * sizes[0]


def test_uniform_samples_ignore_the_weights_and_cover_all_operations_alike() -> None:
    at = moment()
    drawn = sum(UniformSample().weights({"operations": theta()}, {}, at)["operations"] for _ in range(1000))
    assert (drawn / 1000 - 0.25).abs().max() < 4 * math.sqrt(0.25 * 0.75 / 1000)


def test_a_mixture_is_the_weights_themselves() -> None:
    weights = {"operations": theta()}
    assert Mixture().weights(weights, {}, moment())["operations"] is weights["operations"]
