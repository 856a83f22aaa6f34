"""Potentials: their divergences, and the step as the minimum it is defined to be."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from nasight.geometry import Euclidean, MirrorDescent, NegativeEntropy, Potential, bregman, project_simplex


class Tsallis(Potential):
    """phi(x) = (sum_i x_i^q - 1) / (q - 1): steep at 0 for q < 1, flat there (so weights can vanish) for q > 1."""

    def __init__(self, q):
        self.q = q

    def value(self, x):
        return (x.pow(self.q).sum(-1) - 1) / (self.q - 1)

    def gradient(self, x):
        return self.q / (self.q - 1) * x.pow(self.q - 1)

    def inverse_gradient(self, y):
        return (y * (self.q - 1) / self.q).pow(1 / (self.q - 1))


class LogBarrier(Potential):
    def value(self, x):
        return -x.log().sum(-1)

    def gradient(self, x):
        return -1 / x

    def inverse_gradient(self, y):
        return -1 / y


class OwnEntropy(NegativeEntropy):
    mirror_step = Potential.mirror_step


class OwnEuclidean(Euclidean):
    mirror_step = Potential.mirror_step


ALL = [NegativeEntropy(), Euclidean(), Tsallis(0.5), Tsallis(1.5), Tsallis(3.0), LogBarrier()]
SEEDS = st.integers(0, 2**31)


def simplex(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    x = torch.empty(*shape, dtype=torch.float64).exponential_(generator=generator)
    return x / x.sum(-1, keepdim=True)


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(1, 12), st.sampled_from([1e-3, 1.0, 50.0, 1e4]))
def test_the_projection_meets_the_conditions_of_optimality(seed, k, scale):
    x = scale * normal(seed, 20, k)
    u = project_simplex(x)
    assert (u.sum(-1) - 1).abs().max() < 1e-12
    assert u.min() >= 0
    # x - u is one number where u > 0 and no more than it elsewhere.
    gap, inside = x - u, u > 0
    c = torch.where(inside, gap, -math.inf).amax(-1, keepdim=True)
    torch.testing.assert_close(torch.where(inside, gap, c), c.expand_as(gap), rtol=1e-9, atol=1e-9)
    assert (gap <= c + 1e-9 * max(1.0, scale)).all()


@pytest.mark.parametrize("seed", range(8))
def test_the_euclidean_step_is_the_quadratic_programme_solved_by_slsqp(seed):
    x, grad = simplex(seed, 6), normal(seed + 100, 6)
    target = (x - 0.4 * grad).numpy()
    solved = minimize(
        lambda u: np.sum((u - target) ** 2),
        np.full(6, 1 / 6),
        jac=lambda u: 2 * (u - target),
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda u: u.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    np.testing.assert_allclose(Euclidean().mirror_step(x, grad, 0.4).numpy(), solved.x, atol=1e-7)


@settings(deadline=None, max_examples=60)
@given(
    SEEDS,
    st.integers(1, 9),
    st.sampled_from([1e-3, 1.0, 1e4, 1e200]),
    st.sampled_from([(NegativeEntropy(), OwnEntropy()), (Euclidean(), OwnEuclidean())]),
    st.sampled_from([torch.float32, torch.float64]),
    st.booleans(),
)
def test_the_root_search_from_three_formulas_gives_the_closed_form(seed, k, scale, pair, dtype, zero):
    scale = min(scale, 1e30) if dtype == torch.float32 else scale
    x, grad = simplex(seed, 7, k), scale * normal(seed + 1, 7, k)
    if zero and k > 1:
        x[:, 0] = 0
        x /= x.sum(-1, keepdim=True)
    closed, searched = (p.mirror_step(x.to(dtype), grad.to(dtype), 0.3) for p in pair)
    # Numbers of size 1e4 carry an error of 1e4 eps, and so does what is left of the smaller weights.
    atol = 1e-12 if dtype == torch.float64 else 1e-6
    rtol = 1e-7 if dtype == torch.float64 else 1e-2
    torch.testing.assert_close(searched, closed, rtol=rtol, atol=atol)


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.integers(2, 8), st.sampled_from(ALL), st.sampled_from([0.1, 3.0]))
def test_the_step_minimizes_lr_times_the_linear_loss_plus_the_divergence(seed, k, potential, scale):
    x, grad, others = simplex(seed, k), scale * normal(seed + 1, k), simplex(seed + 2, 200, k)
    step = potential.mirror_step(x, grad, 0.5)

    def objective(u):
        return 0.5 * (u * grad).sum(-1) + bregman(potential, u, x.expand_as(u))

    assert step.sum().item() == pytest.approx(1, abs=1e-12)
    best = objective(step)
    assert (objective(others) >= best - 1e-9 * (1 + best.abs())).all()
    near = 0.999 * step + 0.001 * others
    assert (objective(near) >= best - 1e-9 * (1 + best.abs())).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_log_barrier_of_ones_own_steps_as_a_scalar_root_finder_says(seed):
    x, grad = simplex(seed, 5).numpy(), normal(seed + 50, 5).numpy()
    slope = 1 / x + 0.2 * grad
    c = brentq(lambda c: (1 / (slope + c)).sum() - 1, -slope.min() + 1e-9, 1e6, xtol=1e-14, rtol=1e-14)
    step = LogBarrier().mirror_step(torch.tensor(x), torch.tensor(grad), 0.2)
    np.testing.assert_allclose(step.numpy(), 1 / (slope + c), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("potential", ALL, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_potential_descends_to_the_best_vertex_and_stays_on_the_simplex(potential, dtype):
    loss = torch.tensor([[0.9, 0.1, 0.8, 0.7]], dtype=dtype)
    p = torch.full((1, 4), 0.25, dtype=dtype, requires_grad=True)
    optimizer = MirrorDescent([p], lr=1.0, potential=potential)
    for _ in range(300):
        p.grad = loss.clone()
        optimizer.step()
    assert p.detach().sum().item() == pytest.approx(1, abs=1e-6)
    assert p[0, 1].item() > 0.98


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.integers(1, 8), st.sampled_from(ALL))
def test_a_divergence_is_positive_and_zero_only_at_the_point_itself(seed, k, potential):
    x, y = simplex(seed, 20, k), simplex(seed + 1, 20, k)
    assert (bregman(potential, x, y) >= -1e-12).all()
    assert bregman(potential, x, x).abs().max() == 0
    if k > 1:
        assert (bregman(potential, x, y) > 0).all()


def test_the_divergence_of_the_entropy_is_kullback_and_leiblers_also_at_a_vertex():
    x, y = simplex(0, 9, 5), simplex(1, 9, 5)
    torch.testing.assert_close(bregman(NegativeEntropy(), x, y), (x * (x / y).log()).sum(-1))
    vertex, edge = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.5, 0.5, 0.0])
    assert bregman(NegativeEntropy(), vertex, edge).item() == pytest.approx(math.log(2))
    assert bregman(NegativeEntropy(), edge, vertex).item() == math.inf


def test_a_weight_of_zero_stays_zero_under_the_entropy_and_comes_back_under_the_euclidean_potential():
    x, grad = torch.tensor([0.0, 0.5, 0.5]), torch.tensor([-1e4, 0.0, 0.0])
    assert NegativeEntropy().mirror_step(x, grad, 1.0).tolist() == [0.0, 0.5, 0.5]
    assert Euclidean().mirror_step(x, grad, 1.0).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("potential", [NegativeEntropy(), OwnEntropy(), Euclidean(), OwnEuclidean(), LogBarrier()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_as_large_as_floats_can_be_lead_to_the_best_of_the_live_options(potential, dtype):
    huge = 0.9 * torch.finfo(dtype).max
    x = torch.tensor([[0.2, 0.3, 0.5, 0.0]], dtype=dtype)
    grad = torch.tensor([[huge, -huge, huge, huge]], dtype=dtype)
    assert potential.mirror_step(x, grad, 100.0).tolist() == [[0.0, 1.0, 0.0, 0.0]]
