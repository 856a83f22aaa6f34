"""Random Fourier features: the formulas, the kernels they approach, and which draws are shared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from nasight.errors import RequestError
from nasight.features._fourier import FourierDraws, RandomFourierFeatures
from nasight.features._scalings import scaling

EXACT = {"gaussian": rbf_kernel, "laplacian": laplacian_kernel}


@parametrize_with_checks([RandomFourierFeatures(n_components=20, random_state=0), RandomFourierFeatures("laplacian")])
def test_scikit_learn_accepts_the_transformer(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_kernel_error_falls_as_one_over_the_root_of_the_number_of_features(kernel: str) -> None:
    x = np.random.default_rng(0).normal(size=(40, 5))
    exact = EXACT[kernel](x, gamma=0.3)
    sizes = 2 ** np.arange(6, 15, 2)
    errors = []
    for size in sizes:
        maps = [RandomFourierFeatures(kernel, 0.3, int(size), seed).fit_transform(x) for seed in range(10)]
        errors.append(np.mean([np.square(z @ z.T - exact).mean() ** 0.5 for z in maps]))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)
    assert errors[-1] < 0.01


def test_features_follow_the_formulas_in_double_precision() -> None:
    x = np.random.default_rng(1).normal(size=(7, 3))
    for kernel, scale in (("gaussian", np.sqrt(2 * 0.7)), ("laplacian", 0.7)):
        made = RandomFourierFeatures(kernel, 0.7, 11, 5).fit(x)
        w, b = made.frequencies_.T.astype(float), made.offsets_
        np.testing.assert_allclose(made.transform(x), np.sqrt(2 / 11) * np.cos(scale * x @ w + b), atol=1e-12)


def test_frequencies_are_normal_or_cauchy_and_offsets_uniform() -> None:
    draws = FourierDraws(50, 3)
    normal, cauchy = draws.frequencies("gaussian", 2000).ravel(), draws.frequencies("laplacian", 2000).ravel()
    assert (normal.mean(), normal.std()) == (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))
    # The quartiles of a standard Cauchy variable are -1 and 1, and it has no mean.
    np.testing.assert_allclose(np.quantile(cauchy, [0.25, 0.5, 0.75]), [-1, 0, 1], atol=0.03)
    offsets = draws.offsets(20_000)
    assert offsets.min() >= 0
    assert offsets.max() <= 2 * np.pi
    assert offsets.mean() == pytest.approx(np.pi, abs=0.05)


@settings(max_examples=25, deadline=None)
@given(
    inputs=st.integers(1, 9),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    seed=st.integers(0, 2**40),
    kernel=st.sampled_from(["gaussian", "laplacian"]),
)
def test_a_narrow_map_has_the_first_draws_of_a_wide_one(inputs: int, sizes: list[int], seed: int, kernel: str) -> None:
    wide, grown = FourierDraws(inputs, seed), FourierDraws(inputs, seed)
    whole, offsets = wide.frequencies(kernel, 60), wide.offsets(60)
    for size in sizes:
        assert np.array_equal(grown.frequencies(kernel, size), whole[:size])
        assert np.array_equal(grown.offsets(size), offsets[:size])


def test_draws_do_not_depend_on_gamma_but_on_the_seed() -> None:
    x = np.ones((2, 4), np.float32)
    a, b, c = (RandomFourierFeatures(gamma=g, random_state=s).fit(x) for g, s in ((0.1, 0), (9.0, 0), (0.1, 1)))
    assert np.array_equal(a.frequencies_, b.frequencies_)
    assert np.array_equal(a.offsets_, b.offsets_)
    assert not np.array_equal(a.frequencies_, c.frequencies_)


def test_float32_rows_give_float32_features_close_to_those_in_double_precision() -> None:
    x = np.random.default_rng(0).normal(size=(20, 10))
    made = RandomFourierFeatures(gamma=0.5, n_components=300, random_state=0).fit(x)
    low = made.transform(x.astype(np.float32))
    assert low.dtype == np.float32
    np.testing.assert_allclose(low, made.transform(x), atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kernel": "rbf"}, "kernel must be gaussian or laplacian, got 'rbf'"),
        ({"gamma": 0}, "gamma must be a positive number, got 0"),
        ({"gamma": float("nan")}, "gamma must be a positive number, got nan"),
        ({"n_components": 0}, "n_components must be a whole number of at least 1, got 0"),
        ({"random_state": -1}, "random_state must be at least 0, got -1"),
    ],
)
def test_a_wrong_parameter_is_named(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        RandomFourierFeatures(**wrong).fit(np.eye(2))  # type: ignore[arg-type]


def test_scalings_use_training_rows_only_and_turn_constant_columns_into_zeros() -> None:
    train, test = np.array([[0.0, 5.0], [4.0, 5.0]]), np.array([[8.0, 5.0]])
    found = {name: scaling(name).fit(train).transform(test) for name in ("none", "min-max", "normalize", "standardize")}
    assert found["none"].tolist() == [[8, 5]]
    assert found["min-max"].tolist() == [[2, 0]]
    assert found["standardize"].tolist() == [[3, 0]]
    np.testing.assert_allclose(found["normalize"], np.array([[8, 5]]) / np.sqrt(89))
    with pytest.raises(RequestError, match="one of none, min-max, normalize, standardize, got 'whiten'"):
        scaling("whiten")
