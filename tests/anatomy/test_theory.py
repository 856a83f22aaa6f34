"""Theorems 4.1 to 4.3 of Cells: what holds under which assumption, over random matrices, and what does not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nasight.anatomy import theory
from nasight.anatomy._theory_cells import block_gradient, own_gradients
from nasight.errors import RequestError

CASES = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**31)
nodes_of = st.integers(1, 4)
sizes = st.integers(1, 4)


def draw(seed: int, n: int, d: int, m: int) -> tuple[list[Tensor], Tensor, torch.Generator]:
    generator = torch.Generator().manual_seed(seed)
    scale = torch.rand((), generator=generator, dtype=torch.float64) * 1.5 + 0.1
    weights = [scale * torch.randn(d, d, generator=generator, dtype=torch.float64) for _ in range(n)]
    return weights, torch.randn(m, d, generator=generator, dtype=torch.float64), generator


def linear(slopes: Tensor) -> theory.Objective:
    """<c_i, z>, another c_i (n, d) for each example: output gradients agree whatever the cell."""
    return lambda z: (slopes * z).sum((1, 2))


def curved(z: Tensor) -> Tensor:
    """A function in which every node meets every other."""
    return torch.tanh(z.sum(1)).square().sum(1) + z.flatten(1).sin().prod(1) + z.square().sum((1, 2)) / 2


@CASES
@given(seed=seeds, n=nodes_of, d=sizes)
def test_equations_1_to_3_are_the_gradients_that_autograd_finds(seed: int, n: int, d: int) -> None:
    weights, x, _ = draw(seed, n, d, 3)
    for cell in ("widest", "narrowest"):
        leaves = [w.clone().requires_grad_() for w in weights]
        grads = torch.autograd.grad(curved(theory.nodes(leaves, x, cell)).sum(), leaves)
        own = own_gradients(weights, x, curved, cell)
        for block, expected in enumerate(grads, 1):
            found = own[:, block - 1] if cell == "widest" else block_gradient(weights, own, block)
            torch.testing.assert_close(found.sum(0), expected)


@CASES
@given(seed=seeds, n=nodes_of, d=sizes, m=st.integers(1, 6), norm=st.sampled_from(["frobenius", "spectral"]))
def test_theorem_43_is_never_violated_where_output_gradients_agree(
    seed: int, n: int, d: int, m: int, norm: str
) -> None:
    weights, x, generator = draw(seed, n, d, m)
    objective = linear(torch.randn(m, n, d, generator=generator, dtype=torch.float64))
    for block in range(1, n + 1):
        printed, repaired = theory.check_theorem_43(weights, x, objective, block=block, norm=norm)
        assert printed.holds
        assert not printed.violated
        assert repaired.bound <= printed.bound * (1 + 1e-9) + 1e-15


@CASES
@given(seed=seeds, n=nodes_of, d=sizes, m=st.integers(1, 6), norm=st.sampled_from(["frobenius", "spectral"]))
def test_the_repaired_theorem_43_is_never_violated(seed: int, n: int, d: int, m: int, norm: str) -> None:
    weights, x, _ = draw(seed, n, d, m)
    for block in range(1, n + 1):
        assert not theory.check_theorem_43(weights, x, curved, block=block, norm=norm)[1].violated


def agreeing_pairs(
    seed: int, n: int, d: int, block: int
) -> tuple[list[Tensor], Tensor, theory.Objective, list[Tensor]]:
    """f = (q . y_i)^2 / 2 + something linear in the other nodes, and matrices W_i with q^T W_i (P - 1) x = 0.

    P = W_{i-1} ... W_1, so that q . y_i, on which the output gradients depend, is the same in both cells although their
    nodes differ.
    """
    weights, x, generator = draw(seed, n, d, 1)
    slopes = torch.randn(n, d, generator=generator, dtype=torch.float64)
    q = torch.randn(d, generator=generator, dtype=torch.float64)
    before = x[0]
    for w in weights[: block - 1]:
        before = w @ before
    gap = before - x[0]

    def fit(w: Tensor) -> Tensor:
        size = gap.square().sum() * q.square().sum()
        return w if size == 0 else w - torch.outer(q, gap) * (q @ w @ gap) / size

    weights[block - 1] = fit(weights[block - 1])
    others = [fit(torch.randn(d, d, generator=generator, dtype=torch.float64)) for _ in range(3)]
    linear_part = slopes.clone()
    linear_part[block - 1] = 0

    def objective(z: Tensor) -> Tensor:
        return (z[:, block - 1] @ q).square() / 2 + (linear_part * z).sum((1, 2))

    return weights, x, objective, others


@CASES
@given(seed=seeds, n=nodes_of, d=st.integers(2, 4), data=st.data())
def test_theorem_42_is_never_violated_where_its_assumptions_hold(
    seed: int, n: int, d: int, data: st.DataObject
) -> None:
    block = data.draw(st.integers(1, n))
    weights, x, objective, others = agreeing_pairs(seed, n, d, block)
    for norm in ("spectral", "frobenius"):
        printed, _ = theory.check_theorem_42(weights, x, objective, block=block, others=others, norm=norm)
        assert printed.holds
        assert printed.bound > 0
        assert not printed.violated


@CASES
@given(seed=seeds, n=nodes_of, d=sizes, m=st.integers(1, 3))
def test_the_repaired_theorem_42_is_never_violated(seed: int, n: int, d: int, m: int) -> None:
    weights, x, generator = draw(seed, n, d, m)
    others = [torch.randn(d, d, generator=generator, dtype=torch.float64) for _ in range(3)]
    for block in range(1, n + 1):
        assert not theory.check_theorem_42(weights, x, curved, block=block, others=others)[1].violated


def test_theorem_42_as_printed_is_violated_by_nodes_that_meet_although_output_gradients_agree() -> None:
    def product(z: Tensor) -> Tensor:
        return (z[:, 0] * z[:, 1]).sum(1)

    weights = [torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])]
    other = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    printed, repaired = theory.check_theorem_42(weights, torch.tensor([[1.0, 0.0]]), product, block=1, others=[other])
    agreement, separate = printed.assumptions
    assert agreement.holds
    assert not separate.holds
    assert printed.bound == 0
    assert printed.value == pytest.approx(1)
    assert printed.violated
    assert repaired.bound == pytest.approx(math.sqrt(2))


def test_theorem_43_as_printed_is_violated_where_output_gradients_differ_and_says_so() -> None:
    def squares(z: Tensor) -> Tensor:
        return z.square().sum((1, 2)) / 2

    # W = 2: gradients are 2 x^2 in the widest cell and (2 + 2 * 4) x^2 for W_1 of the narrowest.
    weights, x = [torch.tensor([[2.0]])] * 2, torch.tensor([[1.0], [2.0], [3.0]])
    printed, repaired = theory.check_theorem_43(weights, x, squares, block=1)
    spread = float(x.square().var(correction=0))
    assert not printed.holds
    assert printed.value == pytest.approx(100 * spread)
    assert printed.bound == pytest.approx(40 * spread)
    assert printed.violated
    assert repaired.bound == pytest.approx(100 * spread)


def test_the_largest_eigenvalue_in_place_of_the_spectral_norm_would_break_theorem_43() -> None:
    weights = [torch.tensor([[0.0, 10.0], [0.0, 0.0]]), torch.eye(2)]
    x = torch.tensor([[0.0, 1.0], [0.0, 2.0]])
    check, _ = theory.check_theorem_43(weights, x, linear(torch.ones(2, 2, 2)), block=2)
    eigenvalues = [float(torch.linalg.eigvals(w).abs().max()) for w in weights]
    assert not check.violated
    assert check.value > 0
    assert theory.theorem_43(eigenvalues, [1.0, 1.0], block=2) == 0


@CASES
@given(
    seed=seeds,
    d=sizes,
    variance=st.floats(0, 10),
    shares=st.lists(st.floats(0.01, 0.999), min_size=1, max_size=12),
)
def test_theorem_41_holds_for_every_quadratic_with_rates_below_one_over_l(
    seed: int, d: int, variance: float, shares: Sequence[float]
) -> None:
    (root,), x, _ = draw(seed, 1, d, 1)
    hessian = root.T @ root + 1e-3 * torch.eye(d, dtype=torch.float64)
    smoothness = float(torch.linalg.eigvalsh(hessian)[-1])
    rates = [share / smoothness for share in shares]
    check = theory.check_theorem_41(hessian, x[0], variance=variance, rates=rates)
    assert check.holds
    assert not check.violated


def test_theorem_41_fails_for_rates_that_diverge_and_says_why() -> None:
    check = theory.check_theorem_41(torch.eye(1), torch.ones(1), variance=0.0, rates=[3.0] * 5)
    assert check.violated
    assert check.assumptions[0] == ("every learning rate is below 1/L (largest rate times L)", False, 3.0)


def test_theorem_41_s_exact_expectation_is_what_sampled_sgd_shows() -> None:
    generator = torch.Generator().manual_seed(0)
    hessian = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    w = torch.tensor([1.0, -2.0], dtype=torch.float64).expand(20_000, 2)
    rates, total = [0.3, 0.2, 0.1, 0.1], 0.0
    for rate in rates:
        gradient = w @ hessian
        total += rate * float(gradient.square().sum(1).mean())
        # Variance 3 in all, spread evenly over both coordinates.
        w = w - rate * (gradient + math.sqrt(1.5) * torch.randn(w.shape, generator=generator, dtype=torch.float64))
    check = theory.check_theorem_41(hessian, torch.tensor([1.0, -2.0]), variance=3.0, rates=rates)
    assert check.value == pytest.approx(total / sum(rates), rel=0.01)


@pytest.mark.parametrize(
    ("weights", "block", "message"),
    [
        ([torch.ones(2, 3)], 1, "matrix 1 must be 2 x 2 as the examples are, got shape (2, 3)"),
        ([torch.eye(2)], 2, "a block is 1 to 1, got 2"),
        ([torch.full((2, 2), math.nan)], 1, "matrix 1 has an infinite or undefined entry"),
    ],
)
def test_cells_that_do_not_fit_are_refused(weights: list[Tensor], block: int, message: str) -> None:
    with pytest.raises(RequestError) as error:
        theory.check_theorem_43(weights, torch.ones(3, 2), curved, block=block)
    assert str(error.value) == message
