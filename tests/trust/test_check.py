"""The theorems of Simplex on random problems, and their assumptions when they fail."""

import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nasight.errors import RequestError
from nasight.trust import check, factor

NUMBERS = st.floats(-10, 10, allow_nan=False, width=32)


@st.composite
def problems(draw: st.DrawFn, least: int = 2, most: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Options and weights, ties and zeros among them."""
    h, n = draw(st.integers(least, most)), draw(st.integers(1, 6))
    f = draw(arrays(np.float64, (h, n), elements=NUMBERS))
    raw = draw(arrays(np.float64, h, elements=st.integers(0, 20).map(float)))
    assume(raw.sum() > 0)
    return f, raw / raw.sum()


@given(problems())
def test_a_conclusion_is_never_wrong(problem: tuple[np.ndarray, np.ndarray]) -> None:
    f, alpha = problem
    found = check(f, alpha, alpha @ f)
    better, worse = np.nonzero(found.concludes)
    assert (alpha[better] > alpha[worse]).all()
    assert (found.losses[better] < found.losses[worse]).all()


@given(problems(most=2))
def test_two_options_need_no_condition(problem: tuple[np.ndarray, np.ndarray]) -> None:
    f, alpha = problem
    found = check(f, alpha, alpha @ f)
    different = found.losses.max() - found.losses.min() > 1e-9 * (1 + (f**2).max())
    assume(different)
    assert found.concludes[found.best, 1 - found.best]
    assert found.best == found.chosen


@given(problems(least=3))
def test_the_losses_factor_as_lemma_5_says(problem: tuple[np.ndarray, np.ndarray]) -> None:
    f, alpha = problem
    assume(alpha.max() < 1)
    found = check(f, alpha, alpha @ f)
    np.testing.assert_allclose(found.losses, (1 - alpha) ** 2 * found.mixture_losses, atol=1e-9)
    for i in range(len(alpha)):
        rest, gamma = factor(alpha, i)
        mixture = gamma @ np.delete(f, i, 0)
        assert found.mixture_losses[i] == pytest.approx(((f[i] - mixture) ** 2).mean() / 2, abs=1e-9)
        assert gamma.sum() == pytest.approx(1)
        np.testing.assert_allclose(rest * gamma, np.delete(alpha, i), atol=1e-12)


def test_the_arg_max_is_wrong_where_an_option_is_near_the_mixture_of_the_others() -> None:
    # f_1 = 0 is the mixture of 3 and -3: it is best, though its weight is the least.
    f = np.array([[0.0], [3.0], [-3.0]])
    alpha = np.array([0.3, 0.36, 0.34])
    found = check(f, alpha, alpha @ f)
    assert (found.chosen, found.best) == (1, 0)
    assert not found.condition[0, 1]
    assert not found.concludes[0].any()
    assert found.theorem == "Theorem 4"


def test_the_loss_has_the_papers_factor_of_one_half() -> None:
    found = check([[2.0], [0.0]], [0.5, 0.5], [0.0])
    assert found.losses.tolist() == [2.0, 0.0]


def test_functions_that_coincide_make_the_condition_undecidable_not_a_division_by_zero() -> None:
    f = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    found = check(f, [0.4, 0.3, 0.3], np.array([0.4, 0.3, 0.3]) @ f)
    assert found.undecidable[0, 1]
    assert found.undecidable[1, 0]
    assert not found.undecidable[0, 2]
    assert not found.concludes[0, 1]
    assert "1 tie" in found.assumptions.total_order.says
    assert not found.assumptions.total_order.holds
    same = check(np.ones((3, 4)), [0.5, 0.25, 0.25], np.ones(4))
    assert same.undecidable.all()
    assert not same.concludes.any()


def test_a_residual_and_a_zero_weight_are_reported_with_their_size_and_nothing_is_concluded() -> None:
    rng = np.random.default_rng(0)
    f, noise = rng.normal(size=(4, 500)), rng.normal(size=500)
    f[0] *= 2
    alpha = np.array([0.6, 0.2, 0.1, 0.1])
    exact = check(f, alpha, alpha @ f)
    assert exact.assumptions.hold
    assert exact.concludes.any()
    noisy = check(f, alpha, alpha @ f + 0.1 * noise)
    assert not noisy.assumptions.realizability.holds
    assert noisy.assumptions.realizability.size == pytest.approx(0.005 * (noise**2).mean())
    assert not noisy.concludes.any()
    beta = np.array([0.7, 0.3, 0.0, 0.0])
    edge = check(f, beta, beta @ f)
    assert not edge.assumptions.interior.holds
    assert edge.assumptions.interior.size == 0
    assert "2 weights are zero" in edge.assumptions.interior.says
    assert not edge.concludes.any()


def test_a_weight_of_one_leaves_no_mixture_to_compare_with() -> None:
    found = check(np.eye(3), [1.0, 0.0, 0.0], np.eye(3)[0])
    assert np.isnan(found.mixture_losses[0])
    assert not found.condition[0].any()
    assert found.to_dict()["mixture_losses"][0] is None


def test_tensors_in_single_precision_give_what_arrays_give() -> None:
    rng = np.random.default_rng(1)
    f = torch.tensor(rng.normal(size=(5, 200)), dtype=torch.float32, requires_grad=True)
    alpha = torch.softmax(torch.tensor(rng.normal(size=5), dtype=torch.float32), 0)
    found = check(f, alpha, alpha @ f)
    assert found.assumptions.hold
    arrays_ = check(f.detach().double().numpy(), alpha.double().numpy(), (alpha @ f).detach().numpy())
    assert (found.concludes == arrays_.concludes).all()
    assert found.concludes.any()


@pytest.mark.slow
def test_all_pairs_of_64_options_on_100_000_examples_take_seconds() -> None:
    rng = np.random.default_rng(2)
    f, alpha = rng.normal(size=(64, 100_000)), rng.dirichlet(np.ones(64))
    start = time.monotonic()
    found = check(f, alpha, alpha @ f)
    assert time.monotonic() - start < 10
    assert found.condition.shape == (64, 64)


@pytest.mark.parametrize(
    ("outputs", "weights", "targets", "words"),
    [
        (np.ones((2, 3)), [0.5, 0.6], np.ones(3), "sum to 1, got a sum of 1.1"),
        (np.ones((2, 3)), [1.5, -0.5], np.ones(3), "must not be negative, got -0.5"),
        (np.ones((3, 3)), [0.5, 0.5], np.ones(3), "3 rows but there are 2 weights"),
        (np.ones((2, 3)), [0.5, 0.5], np.ones(4), "3 columns but there are 4 targets"),
        (np.array([[1, np.nan], [1, 1]]), [0.5, 0.5], np.ones(2), r"finite, got nan at \(0, 1\)"),
        (np.ones(3), [0.5, 0.5], np.ones(3), r"shape \(options, examples\), got \(3,\)"),
        ("no", [0.5, 0.5], np.ones(3), "outputs must be numbers"),
        (np.ones((1, 3)), [1.0], np.ones(3), "at least 2 options"),
    ],
)
def test_a_wrong_argument_is_named(outputs: Any, weights: Any, targets: Any, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        check(outputs, weights, targets)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(3, 8))
def test_theorem_7_on_random_functions(seed: int, h: int) -> None:
    rng = np.random.default_rng(seed)
    f, alpha = rng.normal(size=(h, 50)) * rng.uniform(0.2, 3, size=(h, 1)), rng.dirichlet(np.ones(h))
    found = check(f, alpha, alpha @ f)
    for i, j in zip(*np.nonzero(found.concludes), strict=True):
        assert alpha[i] > alpha[j]
