"""The infinite-width kernel against closed forms, brute-force integrals and real networks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad

from nasight.errors import RequestError
from nasight.kernels import constants, ntk
from nasight.kernels._activations import Array, derivative, expectation, function
from nasight.kernels._gauss import Pairs
from nasight.kernels._infinite import pair_expectations
from nasight.spaces.mlp import ACTIVATIONS

SMOOTH = ("sigmoid", "tanh", "swish")


def sphere(count: int, dimensions: int, seed: int = 0) -> Array:
    rows = np.random.default_rng(seed).normal(size=(count, dimensions))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def lattice(name: str, a: float, b: float, rho: float) -> tuple[float, float]:
    """E[s(u)s(v)] and E[s'(u)s'(v)] by a fine two-dimensional trapezoidal sum."""
    z = np.linspace(-8, 8, 801)
    weights = np.exp(-(z**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    u, v = a * z[:, None], b * (rho * z[:, None] + np.sqrt(1 - rho**2) * z)
    both = [weights @ (f(u) * f(v)) @ weights for f in (function(name), derivative(name))]
    return float(both[0]), float(both[1])


def finite(rows: Array, names: list[str], skips: list[float], width: int, rng: np.random.Generator) -> Array:
    """The tangent kernel of one network, layer by layer: <h, h'> times <delta, delta'>."""
    hidden, maps, slopes = [rows], [], []
    for name, alpha in zip(names, [0.0, *skips], strict=True):
        maps.append(rng.normal(size=(width, hidden[-1].shape[1])))
        z = hidden[-1] @ maps[-1].T
        slopes.append(np.sqrt(2 / width) * derivative(name)(z))
        out = np.sqrt(2 / width) * function(name)(z)
        hidden.append(out + alpha * hidden[-1] if alpha else out)
    kernel = hidden[-1] @ hidden[-1].T
    back = np.broadcast_to(rng.normal(size=width), (len(rows), width))
    for below, weights, slope, alpha in zip(hidden[-2::-1], maps[::-1], slopes[::-1], [0.0, *skips][::-1], strict=True):
        delta = back * slope
        kernel += (below @ below.T) * (delta @ delta.T)
        back = delta @ weights + alpha * back if alpha else delta @ weights
    return np.asarray(kernel)


def test_unit_norm_relu_with_both_skips_has_15_977_on_the_diagonal_and_9_as_printed() -> None:
    rows = sphere(5, 3)
    np.testing.assert_allclose(np.diagonal(ntk(rows, ["relu"] * 3, [1, 1])), 15.977, atol=5e-4)
    np.testing.assert_allclose(np.diagonal(ntk(rows, ["relu"] * 3, [1, 1], form="printed")), 9)


def test_two_layers_of_relu_give_the_arc_cosine_kernels() -> None:
    rows = sphere(6, 4)
    cosine = np.clip(rows @ rows.T, -1, 1)
    np.fill_diagonal(cosine, 1)
    angle = np.arccos(cosine)
    expected = (np.sin(angle) + 2 * (np.pi - angle) * cosine) / np.pi
    np.testing.assert_allclose(ntk(rows, ["relu"]), expected, atol=1e-12)


def test_the_forms_agree_without_skips() -> None:
    rows = sphere(6, 4)
    names = ["tanh", "relu", "swish", "sigmoid", "leaky_relu"]
    np.testing.assert_allclose(ntk(rows, names), ntk(rows, names, form="printed"), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_expectations_of_unequal_variances_are_those_of_brute_force(name: str) -> None:
    rng = np.random.default_rng(1)
    rows = sphere(60, 5) * np.exp(rng.uniform(-3, 1.6, (60, 1)))
    rows[1], rows[2], rows[3] = rows[0] * 1.3 + 1e-5 * rows[5], -rows[0] + 1e-3 * rows[6], -2 * rows[0]
    pairs = Pairs.of(rows @ rows.T)
    values, slopes = pair_expectations(name, pairs, 0.01, 1e-8)
    some = [(0, 1), (0, 2), (0, 3), (4, 4), *((int(i), int(j)) for i, j in rng.integers(0, 60, (4, 2)))]
    for i, j in some:
        a, b = pairs.deviations[[i, j]]
        value, slope = lattice(name, a, b, float(pairs.cosines[i, j]))
        assert abs(values[i, j] / 2 - value) <= 1e-8 * a * b
        assert abs(slopes[i, j] / 2 - slope) <= 1e-8


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(SMOOTH), st.floats(0.05, 6), st.floats(0.05, 6), st.floats(-1, 1))
def test_an_expectation_is_that_of_brute_force(name: str, a: float, b: float, rho: float) -> None:
    covariance = np.array([[a * a, a * b * rho], [a * b * rho, b * b]])
    values, slopes = pair_expectations(name, Pairs.of(covariance), 0.01, 1e-8)
    value, slope = lattice(name, a, b, rho)
    assert abs(values[0, 1] / 2 - value) <= 1e-8 * a * b
    assert abs(slopes[0, 1] / 2 - slope) <= 1e-8


def test_a_leaky_relu_is_that_of_an_adaptive_integral() -> None:
    a, b, rho, eta = 0.7, 1.9, -0.35, 0.2
    covariance = np.array([[a * a, a * b * rho], [a * b * rho, b * b]])
    values, _ = pair_expectations("leaky_relu", Pairs.of(covariance), eta, 1e-8)
    s = function("leaky_relu", eta)

    def integrand(y: float, x: float) -> float:
        v = b * (rho * x + np.sqrt(1 - rho**2) * y)
        return float(s(np.array(a * x)) * s(np.array(v)) * np.exp(-(x * x + y * y) / 2) / (2 * np.pi))

    cut = -rho / np.sqrt(1 - rho**2)  # where the second argument changes sign
    ends = [(x, y) for x in ((-8, 0), (0, 8)) for y in ((-9, None), (None, 9))]
    parts = [
        dblquad(
            integrand,
            *x,
            lambda x, low=low: cut * x if low is None else low,
            lambda x, high=high: cut * x if high is None else high,
            epsabs=1e-10,
        )[0]
        for x, (low, high) in ends
    ]
    assert values[0, 1] == pytest.approx(2 * sum(parts), abs=1e-8)


@pytest.mark.parametrize("skips", [[0, 0], [1, 1], [0.5, 1]], ids=str)
@pytest.mark.parametrize("names", [["relu", "swish", "relu"], ["tanh", "leaky_relu", "sigmoid"]], ids=",".join)
def test_wide_networks_average_to_the_exact_kernel(names: list[str], skips: list[float]) -> None:
    rows = np.array([[1.0, 0, 0], [0.6, 0.8, 0], [-0.5, 0.5, 1.0]])
    rng = np.random.default_rng(4)
    draws = np.stack([finite(rows, names, skips, 384, rng) for _ in range(60)])
    error = draws.std(0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(0) - ntk(rows, names, skips)) <= 3 * error).all()


def test_wide_networks_with_skips_do_not_average_to_the_printed_kernel() -> None:
    rows, rng = np.eye(2), np.random.default_rng(4)
    draws = np.stack([finite(rows, ["relu"] * 3, [1, 1], 256, rng) for _ in range(40)])[:, 0, 0]
    assert draws.mean() - 9 > 10 * draws.std(ddof=1) / np.sqrt(len(draws))


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(ACTIVATIONS), st.sampled_from([0.0, 0.3, 1.0])), min_size=1, max_size=4),
    st.integers(0, 10_000),
)
def test_a_kernel_is_symmetric_positive_and_follows_a_permutation(layers: list[tuple[str, float]], seed: int) -> None:
    names, skips = [name for name, _ in layers], [skip for _, skip in layers[1:]]
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5, 3)) * rng.uniform(0.2, 2)
    kernel, order = ntk(rows, names, skips), rng.permutation(5)
    size = kernel.max()
    np.testing.assert_array_equal(kernel, kernel.T)
    assert np.linalg.eigvalsh(kernel)[0] >= -1e-9 * size
    np.testing.assert_allclose(ntk(rows[order], names, skips), kernel[np.ix_(order, order)], atol=1e-9 * size)


def test_interpolation_between_norms_changes_no_entry_by_more_than_the_accuracy() -> None:
    """Eighty norms are interpolated, five are not; and a coarse accuracy is met, too."""
    rng = np.random.default_rng(3)
    rows = sphere(80, 6) * rng.uniform(0.5, 2, (80, 1))
    names, skips = ["swish", "tanh", "sigmoid"], [1, 1]
    kernel, few = ntk(rows, names, skips), ntk(rows[:5], names, skips)
    np.testing.assert_allclose(kernel[:5, :5], few, rtol=1e-8)
    size = np.sqrt(np.multiply.outer(np.diagonal(kernel), np.diagonal(kernel)))
    assert (np.abs(ntk(rows, names, skips, accuracy=1e-4) - kernel) <= 1e-4 * size).all()


def test_a_row_of_zeros_has_a_kernel_of_zero() -> None:
    rows = np.concatenate([np.zeros((1, 3)), sphere(3, 3)])
    kernel = ntk(rows, ["tanh", "relu", "swish"], [1, 0])
    np.testing.assert_allclose(kernel[0], 0, atol=1e-12)
    np.testing.assert_allclose(kernel[1:, 1:], ntk(rows[1:], ["tanh", "relu", "swish"], [1, 0]), rtol=1e-8)


@pytest.mark.parametrize(("name", "mu_1"), [("relu", 0.5), ("sigmoid", 0.20662), ("tanh", 0.60571), ("swish", 0.5)])
def test_first_hermite_coefficients_are_the_known_ones(name: str, mu_1: float) -> None:
    assert constants(name).mu_1 == pytest.approx(mu_1, abs=5e-6)
    assert expectation(derivative(name), 1.0) == pytest.approx(constants(name).mu_1, abs=1e-12)


def test_table_1_follows_from_its_integrals() -> None:
    row = {name: constants(name, t=3.0, slope=0.2) for name in ACTIVATIONS}
    assert row["leaky_relu"].mu_1 == pytest.approx(0.6)
    for name, beta in (("relu", 1), ("leaky_relu", 1.04)):
        assert (row[name].beta_1, row[name].beta_2, row[name].beta_3) == pytest.approx((beta,) * 3)
    for name, beta in (("sigmoid", 1 / 8), ("tanh", 2)):
        assert (row[name].beta_1, row[name].beta_2) == pytest.approx((beta, beta))
    assert (row["swish"].beta_1, row["swish"].beta_3) == pytest.approx((1, 0.5))
    assert row["swish"].lipschitz == pytest.approx(1.0998, abs=1e-4)
    bells = 2 * expectation(lambda x: derivative("tanh")(x) ** 2, np.sqrt(3.0))
    assert row["tanh"].beta_3 == pytest.approx(bells)


def test_the_paper_s_beta_2_of_swish_is_the_square_of_its_slope_and_no_gaussian_reaches_it() -> None:
    row = constants("swish")
    assert row.lipschitz**2 == pytest.approx(1.21, abs=1e-3)
    assert row.beta_2 == pytest.approx(1.0168, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((["relu", "gelu"], None), "unknown activation 'gelu', not one of relu, leaky_relu, sigmoid, tanh, swish"),
        ((["relu"] * 3, [1]), r"3 activation\(s\) take 2 skip\(s\).*got 1"),
        ((["relu"] * 2, [2]), "from 0 to 1, got 2"),
        (("relu", None), "a list"),
    ],
)
def test_a_wrong_network_is_refused(arguments: tuple[list[str], list[float] | None], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        ntk(np.eye(2), *arguments)
    with pytest.raises(RequestError, match="shape"):
        ntk(np.ones(3), ["relu"])
