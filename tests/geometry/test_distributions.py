"""Distributions over answers, on spaces small enough to list every answer."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nasight.errors import RequestError
from nasight.geometry import Categorical, Controller, Distribution, NaturalGradient
from nasight.geometry._natural import natural_gradient, transported
from nasight.spaces import Group

GROUP = Group("questions", ("a", "b", "c"), (("x", "y"), ("x", "y", "z"), ("x", "y")))
EVERY = torch.tensor(list(product(range(2), range(3), range(2))))
REWARD = torch.rand(len(EVERY), generator=torch.Generator().manual_seed(5), dtype=torch.float64)
BOTH = pytest.mark.parametrize("geometry", [Controller(spread=2.0), Categorical()], ids=["controller", "categorical"])


def parameters(geometry: Distribution) -> dict[str, torch.Tensor]:
    """Away from the uniform distribution, in float64."""
    made = geometry.initial((GROUP,), torch.Generator().manual_seed(1))
    params = {name: p.detach().double() for name, p in made.items()}
    if isinstance(geometry, Categorical):
        params = {"questions": torch.tensor([0.3, 0.7, 0.2, 0.5, 0.3, 0.9, 0.1], dtype=torch.float64)}
    return {name: p.requires_grad_() for name, p in params.items()}


@BOTH
def test_the_probabilities_of_all_architectures_sum_to_one(geometry: Distribution) -> None:
    log_prob = geometry.likelihood(parameters(geometry), (GROUP,), EVERY)[0].detach()
    assert float(log_prob.exp().sum()) == pytest.approx(1, abs=1e-12)
    assert float(log_prob.max() - log_prob.min()) > 0.5


@BOTH
@pytest.mark.parametrize("baseline", [0.0, 0.7])
def test_the_score_function_gradient_is_unbiased_with_any_baseline(geometry: Distribution, baseline: float) -> None:
    """The mean of (reward - baseline) grad log p over all architectures, against the gradient of the mean reward."""
    params = parameters(geometry)
    log_prob, _ = geometry.likelihood(params, (GROUP,), EVERY)
    expected_reward = (log_prob.exp() * REWARD).sum()
    estimate = (log_prob.exp().detach() * (REWARD - baseline) * log_prob).sum()
    found, exact = (
        torch.autograd.grad(value, list(params.values()), retain_graph=True) for value in (estimate, expected_reward)
    )
    for (name, p), f, e in zip(params.items(), found, exact, strict=True):
        if name == "questions":  # only the part along the simplex means anything
            f, e = (natural_gradient(p.detach(), g, GROUP.sizes) for g in (f, e))
        assert torch.allclose(f, e, atol=1e-12)
        assert float(e.abs().max()) > 0


@BOTH
def test_draws_are_as_frequent_as_their_probabilities(geometry: Distribution) -> None:
    params = parameters(geometry)
    drawn = geometry.sample(params, (GROUP,), 20_000, torch.Generator().manual_seed(0))
    probabilities = geometry.likelihood(params, (GROUP,), EVERY)[0].exp().detach()
    shares = torch.stack([(drawn == one).all(1).double().mean() for one in EVERY])
    assert (shares - probabilities).abs().max() < 4 * (0.25 / 20_000) ** 0.5


@BOTH
def test_marginals_and_entropy_are_those_of_the_joint_distribution(geometry: Distribution) -> None:
    params = parameters(geometry)
    log_prob, entropy = (value.detach() for value in geometry.likelihood(params, (GROUP,), EVERY))
    p = log_prob.exp()
    rows = GROUP.split(geometry.weights(params, (GROUP,))["questions"].detach())
    for question, row in enumerate(rows):
        exact = torch.stack([p[EVERY[:, question] == option].sum() for option in range(len(row))])
        assert (row - exact).abs().max() < 0.05  # the controller's are means over 256 draws
    # The mean of the entropies met on the way is the entropy (chain rule).
    assert float((p * entropy).sum()) == pytest.approx(-float((p * log_prob).sum()), abs=1e-12)


def test_the_controller_s_answers_depend_on_each_other() -> None:
    geometry = Controller(spread=2.0)
    params = parameters(geometry)
    _, each = geometry.walk(params, (GROUP,), len(EVERY), lambda question, _: EVERY[:, question])
    assert float((each[1][EVERY[:, 0] == 0][0] - each[1][EVERY[:, 0] == 1][0]).detach().abs().max()) > 1e-2


@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=5), st.integers(0, 1000))
def test_the_natural_gradient_solves_the_fisher_matrix(weights: list[float], seed: int) -> None:
    """In the k - 1 free coordinates, where the last probability is 1 minus the others."""
    x = torch.tensor(weights, dtype=torch.float64)
    x = x / x.sum()
    grad = torch.randn(len(x), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    fisher = torch.diag(1 / x[:-1]) + 1 / x[-1]
    exact = torch.linalg.solve(fisher, grad[:-1] - grad[-1])
    found = natural_gradient(x, grad)
    assert torch.allclose(found[:-1], exact, atol=1e-10)
    assert float(found.sum()) == pytest.approx(0, abs=1e-12)
    assert float((found.square() / x).sum()) == pytest.approx(float(exact @ fisher @ exact), rel=1e-9)


PAIRS = [
    ([0, 1, 2, 0, 1, 2], [1, 1, 0, 2, 2, 0]),
    ([0, 0, 2, 1, 1, 2], [2, 1, 1, 0, 2, 1]),
    ([0, 1, 0, 0, 0, 2], [1, 2, 2, 1, 2, 1]),
]
"""A better and a worse answer to six questions of three options, for three steps."""


def released_root(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Entry by entry as the released code writes it, k - 1 numbers a row."""
    k = x.shape[1]
    return np.array(
        [
            [
                row_v[i] / math.sqrt(row_x[i])
                + math.sqrt(row_x[i]) * sum(row_v[: k - 1]) / (row_x[-1] + math.sqrt(row_x[-1]))
                for i in range(k - 1)
            ]
            for row_x, row_v in zip(x, v, strict=True)
        ]
    )


def test_asng_s_path_is_that_of_the_released_root() -> None:
    """|s|^2 and Delta of three steps by a numpy script of the released formulas, which prints these digits."""
    theta = torch.full((6, 3), 1 / 3, dtype=torch.float64, requires_grad=True)
    optimizer = NaturalGradient([theta])
    found = []
    for good, bad in PAIRS:
        x = theta.detach()
        eye = torch.eye(3, dtype=torch.float64)
        theta.grad = -(eye[good] - eye[bad]) / 2 / x
        optimizer.step()
        state = optimizer.state[theta]
        found.append((float(state["transported_path"].square().sum()), state["trust"]))
    expected = [(0.494017, 1.048685), (1.002148, 1.067954), (1.268109, 1.071740)]
    for mine, its in zip(found, expected, strict=True):
        assert mine == pytest.approx(its, abs=1e-6)
    assert theta.detach()[0].tolist() == pytest.approx([0.752732, 1 / 12, 0.163935], abs=1e-6)


@given(st.integers(2, 6), st.integers(0, 1000))
def test_transport_keeps_lengths_and_is_the_released_root(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.full(k, 2.0), 3).clip(1e-3)
    x /= x.sum(1, keepdims=True)
    v = rng.normal(size=(3, k))
    v -= v.mean(1, keepdims=True)
    found = transported(torch.from_numpy(x), torch.from_numpy(v)).numpy()
    np.testing.assert_allclose(found[:, :-1], released_root(x, v), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[:, -1], 0, atol=1e-9 * np.abs(v / np.sqrt(x)).max())
    np.testing.assert_allclose((found**2).sum(), (v**2 / x).sum(), rtol=1e-9)


def test_rows_of_different_lengths_have_the_path_of_each_length() -> None:
    ragged = torch.tensor([0.3, 0.7, 0.2, 0.5, 0.3, 0.9, 0.1], dtype=torch.float64, requires_grad=True)
    ragged.grad = torch.tensor([1.0, 0, 0, 2, 1, 0, 1], dtype=torch.float64)
    x, v = ragged.detach().clone(), natural_gradient(ragged.detach(), ragged.grad, GROUP.sizes)
    optimizer = NaturalGradient([{"params": [ragged], "sizes": GROUP.sizes}])
    optimizer.step()
    path = optimizer.state[ragged]["transported_path"]
    for row in (slice(0, 2), slice(2, 5), slice(5, 7)):
        root = released_root(x[row][None].numpy(), -v[row][None].numpy())[0]
        scale = math.sqrt(0.75) / float((v.square() / x).sum().sqrt())  # beta = 1 / sqrt(4)
        assert path[row][:-1].tolist() == pytest.approx((scale * root).tolist(), rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "least"),
    [((6, 4), 1 / 18), ((3, 2), 1 / 3), ((2, 3), 1 / 4), ((1, 4), 1 / 8), ((2, 2), 1 / 4)],
    ids=["6 rows of 4", "3 rows of 2", "2 rows of 3", "a single row", "2 rows of 2"],
)
def test_the_least_probability_is_the_released_one_where_it_leaves_room(shape: tuple[int, int], least: float) -> None:
    """1 / (rows (k - 1)) for the first three; for the others that is 1 / k or more, and nothing could ever move."""
    theta = torch.full(shape, 1 / shape[1], requires_grad=True)
    optimizer = NaturalGradient([theta])
    for _ in range(40):
        theta.grad = torch.tensor([1.0, *[0.0] * (shape[1] - 1)]).repeat(shape[0], 1)
        optimizer.step()
    assert float(theta.detach().min()) == pytest.approx(least, abs=1e-5)


def test_a_state_of_version_0_1_is_refused_in_a_sentence() -> None:
    first, _ = steps(0.0, 3)
    old = first.state_dict()
    old["state"][0]["path"] = old["state"][0].pop("transported_path")
    with pytest.raises(RequestError, match=r"that of version 0\.1, .* start the search anew"):
        NaturalGradient([torch.full((6, 4), 0.25, requires_grad=True)]).load_state_dict(old)


def steps(noise: float, number: int = 200) -> tuple[NaturalGradient, torch.Tensor]:
    theta = torch.full((6, 4), 0.25, requires_grad=True)
    optimizer, generator = NaturalGradient([theta]), torch.Generator().manual_seed(0)
    for _ in range(number):
        theta.grad = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(6, 1) + noise * torch.randn(6, 4, generator=generator)
        optimizer.step()
    return optimizer, theta


def test_the_step_shrinks_under_noise_and_not_under_a_steady_gradient() -> None:
    noisy, steady = (steps(noise, 30)[0].state_dict()["state"][0]["trust"] for noise in (1000.0, 0.0))
    assert noisy > 1.5
    assert steady < 1.0


def test_the_first_step_has_unit_length_in_the_fisher_metric_and_margins_hold() -> None:
    theta = torch.full((30, 4), 0.25, requires_grad=True)
    theta.grad = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    before = theta.detach().clone()
    NaturalGradient([theta]).step()
    assert float(((theta.detach() - before).square() / before).sum().sqrt()) == pytest.approx(1, abs=1e-3)
    _, moved = steps(0.0)
    assert float(moved.detach().min()) >= 1 / 18 - 1e-6
    assert torch.allclose(moved.detach().sum(1), torch.ones(6))


def test_a_gradient_without_direction_moves_nothing() -> None:
    theta = torch.full((2, 3), 1 / 3, requires_grad=True)
    theta.grad = torch.zeros(2, 3)
    optimizer = NaturalGradient([theta])
    optimizer.step()
    assert torch.equal(theta.detach(), torch.full((2, 3), 1 / 3))
    assert not optimizer.state_dict()["state"].get(0)


def test_a_reloaded_optimizer_goes_on_to_the_bit() -> None:
    first, theta = steps(1.0, 20)
    other = theta.detach().clone().requires_grad_()
    second = NaturalGradient([other])
    second.load_state_dict(first.state_dict())
    for optimizer, p in ((first, theta), (second, other)):
        p.grad = torch.arange(24.0).view(6, 4)
        optimizer.step()
    assert torch.equal(theta, other)
    assert first.state_dict()["state"][0]["trust"] == second.state_dict()["state"][0]["trust"]
