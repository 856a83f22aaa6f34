"""The proposition without realizability."""

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from nasight.errors import RequestError
from nasight.trust import check, without_realizability

NUMBERS = st.floats(-10, 10, allow_nan=False, width=32)


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    h, n = draw(st.integers(2, 5)), draw(st.integers(1, 6))
    f = draw(arrays(np.float64, (h, n), elements=NUMBERS))
    raw = draw(arrays(np.float64, h, elements=st.integers(0, 20).map(float)))
    assume(raw.sum() > 0)
    return f, raw / raw.sum(), draw(arrays(np.float64, n, elements=NUMBERS))


@given(problems())
def test_whenever_the_condition_holds_the_order_is_right(problem: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    f, alpha, y = problem
    found = without_realizability(f, alpha, y, resamples=2)
    i, j = np.nonzero(found.concludes)
    assert (alpha[i] > alpha[j]).all()
    assert not (found.condition_by_size & ~found.condition).any()


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.floats(0, 2))
def test_random_problems_with_noise_are_never_concluded_wrongly(seed: int, h: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    f, alpha = rng.normal(size=(h, 30)), rng.dirichlet(np.ones(h))
    found = without_realizability(f, alpha, alpha @ f + noise * rng.normal(size=30), resamples=2)
    i, j = np.nonzero(found.concludes)
    assert (alpha[i] > alpha[j]).all()


@given(problems())
def test_the_loss_is_the_mixture_term_less_the_cross_term_plus_the_residual(
    problem: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    f, alpha, y = problem
    assume(alpha.max() < 1)
    found = without_realizability(f, alpha, y, resamples=1)
    again = (1 - alpha) ** 2 * found.mixture_losses - found.cross + found.residual
    np.testing.assert_allclose(found.losses, again, atol=1e-9)


def test_with_a_mixture_that_fits_it_is_theorem_7() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        f, alpha = rng.normal(size=(4, 40)), rng.dirichlet(np.ones(4))
        exact, found = check(f, alpha, alpha @ f), without_realizability(f, alpha, alpha @ f, resamples=1)
        assert (exact.concludes == found.concludes).all()


def test_at_the_least_loss_inside_the_simplex_the_cross_term_is_zero_however_large_the_residual() -> None:
    rng = np.random.default_rng(3)
    f = rng.normal(size=(3, 200))
    y = np.array([0.5, 0.3, 0.2]) @ f + 2 * rng.normal(size=200)
    rule = {"type": "eq", "fun": lambda a: a.sum() - 1}
    best = minimize(
        lambda a: ((y - a @ f) ** 2).mean() / 2, np.full(3, 1 / 3), constraints=rule, bounds=[(0, 1)] * 3, tol=1e-14
    ).x
    assert best.min() > 0.05
    found = without_realizability(f, best / best.sum(), y, resamples=1)
    assert found.residual > 1
    assert found.slope < 1e-5
    plain = found.mixture_losses[:, None] >= found.mixture_losses[None, :]
    apart = ~np.eye(3, dtype=bool)
    assert (found.condition[apart] == plain[apart]).all()


@pytest.mark.slow
def test_a_conclusion_of_few_noisy_examples_is_not_one_at_95_percent() -> None:
    rng = np.random.default_rng(5)
    alpha = np.array([0.36, 0.33, 0.31])
    f = rng.normal(size=(3, 20_000))
    y = alpha @ f + rng.normal(size=20_000)
    # The three lose nearly the same: 20 examples cannot tell them apart, and say so.
    few = [without_realizability(f[:, s : s + 20], alpha, y[s : s + 20]) for s in range(0, 2000, 20)]
    wrong = sum(bool(c.at_level[1, 0] | c.at_level[2, 0]) for c in few)
    assert wrong == 0
    assert any(c.concludes.any() and not c.at_level.any() for c in few)


@pytest.mark.slow
def test_the_bootstrap_is_the_same_for_the_same_seed_and_fast_for_64_options() -> None:
    rng = np.random.default_rng(6)
    f, alpha = rng.normal(size=(64, 5_000)), rng.dirichlet(np.ones(64))
    y = alpha @ f + 0.1 * rng.normal(size=5_000)
    start = time.monotonic()
    first = without_realizability(f, alpha, y, resamples=200, seed=1)
    assert time.monotonic() - start < 10
    assert (first.confidence == without_realizability(f, alpha, y, resamples=200, seed=1).confidence).all()
    assert 0 <= first.confidence.min() <= first.confidence.max() <= 1


def test_a_wrong_level_is_named() -> None:
    with pytest.raises(RequestError, match="level must be between 0 and 1, got 95"):
        without_realizability([[0.0], [1.0]], [0.5, 0.5], [0.0], level=95)
