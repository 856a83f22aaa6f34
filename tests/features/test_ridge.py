from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import Ridge

from nasight.errors import RequestError
from nasight.features._linear import LinearModel, one_vs_rest
from nasight.features._ridge import ridge
from nasight.features._ridge_cg import Nystrom, State, conjugate_gradients

Array = NDArray[Any]
FORMS = ("primal", "dual", "cg")


class Source:
    """Rows of an array that are handed out as copies, and counted."""

    def __init__(self, x: Any) -> None:
        self.x, self.n, self.dimension, self.sparse = x, x.shape[0], x.shape[1], sparse.issparse(x)
        self.most = self.read = 0

    def rows(self, start: int, stop: int) -> Any:
        self.most, self.read = max(self.most, stop - start), self.read + stop - start
        return self.x[start:stop].copy()


class Generated:
    """Many rows that exist only while they are read."""

    sparse = False

    def __init__(self, n: int, dimension: int) -> None:
        self.n, self.dimension = n, dimension

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        i, j = np.arange(start, stop, dtype=np.float32)[:, None], np.arange(self.dimension, dtype=np.float32)
        out = i * (j + 1)
        out *= np.float32(0.37)
        return np.cos(out, out=out)


def objective(x: Any, y: Array, model: LinearModel, penalty: float) -> float:
    w, level = model.coef.astype(np.float64), model.intercept.astype(np.float64)
    return float(np.square(y - x.astype(np.float64) @ w - level).sum() + penalty * np.square(w).sum())


def reference(x: Array, y: Array, penalty: float, intercept: bool = True) -> LinearModel:
    """The singular value decomposition in float64."""
    wide = x.astype(np.float64)
    mean, level = (wide.mean(0), y.mean(0)) if intercept else (np.zeros(x.shape[1]), np.zeros(y.shape[1]))
    u, s, v = np.linalg.svd(wide - mean, full_matrices=False)
    w = v.T @ ((s / (s**2 + penalty))[:, None] * (u.T @ (y - level)))
    return LinearModel(w, level - mean @ w)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Array, Array, float]:
    n, dimension, k = draw(st.integers(2, 60)), draw(st.integers(1, 60)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    x = rng.standard_normal((n, dimension)) + draw(st.sampled_from([0.0, 3.0, 300.0]))
    if draw(st.booleans()):
        x[:, 0] = 7.0
    if draw(st.booleans()):
        x[:, -1] = x[:, 0]
    penalty = draw(st.sampled_from([1e-4, 0.5, 100.0]))
    return x.astype(draw(st.sampled_from([np.float32, np.float64]))), rng.standard_normal((n, k)), penalty


@pytest.mark.slow
@given(problem=problems(), form=st.sampled_from(("auto", *FORMS)), intercept=st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_form_has_the_weights_of_scikit_learns_ridge(
    problem: tuple[Array, Array, float], form: str, intercept: bool
) -> None:
    x, y, penalty = problem
    ours = ridge(x, y, penalty=penalty, form=form, intercept=intercept, tolerance=1e-13)
    theirs = Ridge(alpha=penalty, fit_intercept=intercept, solver="svd").fit(x.astype(np.float64), y)
    expected = np.asarray(theirs.coef_).reshape(y.shape[1], -1).T
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(ours.coef, expected, atol=1e-4 * scale)
    np.testing.assert_allclose(ours.scores(x), theirs.predict(x.astype(np.float64)).reshape(y.shape), atol=1e-3)
    assert ours.converged


@given(problem=problems(), form=st.sampled_from(FORMS), intercept=st.booleans(), digits=st.sampled_from([4, 6, 8]))
@settings(max_examples=100, deadline=None)
def test_the_objective_is_as_close_to_its_minimum_as_asked_for(
    problem: tuple[Array, Array, float], form: str, intercept: bool, digits: int
) -> None:
    x, y, penalty = problem
    model = ridge(x, y, penalty=penalty, form=form, intercept=intercept, tolerance=10.0**-digits)
    best = objective(x, y, reference(x, y, penalty, intercept), penalty)
    assert objective(x, y, model, penalty) <= best * (1 + 1.01 * 10.0**-digits)
    assert model.objective == pytest.approx(best, rel=max(3 * 10.0**-digits, 1e-5))


@pytest.mark.slow
@pytest.mark.parametrize(("form", "decades"), [("primal", 4), ("primal", 6), ("dual", 4), ("dual", 6), ("cg", 4)])
@pytest.mark.parametrize(("n", "dimension"), [(200, 60), (60, 100)])
def test_a_condition_number_of_1e8_and_more_is_finished_in_float64(
    form: str, decades: int, n: int, dimension: int
) -> None:
    rng = np.random.default_rng(decades)
    size = min(n, dimension)
    u, v = (np.linalg.qr(rng.standard_normal((m, size)))[0] for m in (n, dimension))
    x = (u * 10.0 ** np.linspace(0, -decades, size)) @ v.T
    y, penalty = rng.standard_normal((n, 2)), 10.0 ** (-2 * decades)
    model = ridge(x, y, penalty=penalty, form=form, intercept=False, tolerance=1e-8)
    expected = reference(x, y, penalty, intercept=False)
    assert model.converged
    assert model.coef.dtype == np.float64
    assert objective(x, y, model, penalty) == pytest.approx(objective(x, y, expected, penalty), rel=1e-8)
    np.testing.assert_allclose(x @ model.coef, x @ expected.coef, atol=1e-3)


def test_an_easy_problem_is_left_in_float32() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((500, 40)).astype(np.float32), rng.standard_normal((500, 3))
    for form in ("primal", "cg"):
        assert ridge(x, y, form=form).coef.dtype == np.float32
        assert ridge(x, y, form=form, tolerance=1e-14).coef.dtype == np.float64


@pytest.mark.parametrize("form", FORMS)
def test_all_classes_at_once_are_what_each_class_alone_is(form: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((80, 30)).astype(np.float32)
    targets = one_vs_rest(rng.integers(4, size=80), 4)
    together = ridge(x, targets, form=form, tolerance=1e-13)
    for column in range(4):
        alone = ridge(x, targets[:, column], form=form, tolerance=1e-13)
        np.testing.assert_allclose(together.coef[:, [column]], alone.coef, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_streamed_solve_is_that_of_the_whole_matrix(form: str, intercept: bool) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((900, 70)) + 5).astype(np.float32), rng.standard_normal((900, 2))
    whole = ridge(x, y, form=form, intercept=intercept, tolerance=1e-12)
    source = Source(x)
    room = 4_600_000 if form == "dual" else 360_000
    streamed = ridge(source, y, form=form, intercept=intercept, tolerance=1e-12, memory=room)
    assert source.most < 500
    assert streamed.peak_bytes <= room
    np.testing.assert_allclose(streamed.coef, whole.coef, atol=1e-6)
    np.testing.assert_allclose(streamed.scores(source), whole.scores(x), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "tolerance"), [("primal", 1e-6), ("cg", 1e-6), ("primal", 1e-13), ("cg", 1e-13)])
def test_a_matrix_larger_than_the_bound_streams_under_it(form: str, tolerance: float) -> None:
    source, memory = Generated(20_000, 200), 6_000_000
    assert 4 * source.n * source.dimension > 2 * memory
    y = np.random.default_rng(3).standard_normal((source.n, 2))
    tracemalloc.start()
    try:
        model = ridge(source, y, memory=memory, form=form, tolerance=tolerance)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.converged
    assert peak <= model.peak_bytes <= memory


def test_a_streamed_primal_solve_reads_the_rows_twice() -> None:
    rng = np.random.default_rng(4)
    source = Source(rng.standard_normal((4000, 50)).astype(np.float32))
    model = ridge(source, rng.standard_normal((4000, 2)), memory=700_000, tolerance=1e-6)
    assert model.form == "primal"
    # One for the Gram matrix, one for its products with the targets, and a first block for the mean.
    assert source.read <= 2.2 * source.n


@pytest.mark.parametrize("shape", [(60, 25), (25, 60)])
@pytest.mark.parametrize("form", ["auto", *FORMS])
def test_sparse_rows_are_solved_as_their_dense_ones(form: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    x = sparse.random(*shape, density=0.2, format="csr", dtype=np.float32, rng=rng)
    y = rng.standard_normal((shape[0], 2))
    dense = ridge(x.toarray(), y, tolerance=1e-13)
    for given_rows in (x, Source(x)):
        model = ridge(given_rows, y, form=form, tolerance=1e-13)
        np.testing.assert_allclose(model.coef, dense.coef, atol=1e-6)
        np.testing.assert_allclose(model.scores(given_rows), dense.scores(x.toarray()), atol=1e-6)


@given(seed=st.integers(0, 1000), penalty=st.sampled_from([1e-3, 0.5]))
@settings(max_examples=30, deadline=None)
def test_the_bound_of_conjugate_gradients_is_above_the_error(seed: int, penalty: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((60, 40)) * 10 ** rng.uniform(-2, 1, 40)
    a, b = x.T @ x + penalty * np.eye(40), rng.standard_normal((40, 3))
    exact = np.linalg.solve(a, b)
    preconditioner = Nystrom(lambda p: x.T @ (x @ p), 40, 8, penalty)
    state = State(np.zeros_like(b), b.copy())
    seen = list[tuple[float, float]]()

    def enough(now: State) -> bool:
        error = now.w - exact
        seen.append((now.bound, float(np.vdot(error, a @ error))))
        return now.bound < 1e-6 * seen[0][1]

    assert conjugate_gradients(lambda p: a @ p, preconditioner, state, enough, 200)
    assert all(bound >= 0.999 * error for bound, error in seen)


def test_two_classes_have_one_column_and_predict_the_second_where_positive() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((100, 3)).astype(np.float32)
    labels = (x[:, 0] > 0).astype(np.int64)
    model = ridge(x, one_vs_rest(labels, 2))
    assert model.coef.shape == (3, 1)
    assert (model.predict(x) == labels).mean() > 0.9
    many = ridge(x, one_vs_rest(labels + 1, 3))
    assert (many.predict(x) == labels + 1).mean() > 0.9


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_and_targets_that_are_not_finite_are_refused(form: str, bad: float) -> None:
    x, y = np.ones((6, 3), np.float32), np.ones((6, 1))
    x[4, 1] = bad
    with pytest.raises(RequestError, match="NaN"):
        ridge(x, y, form=form)
    with pytest.raises(RequestError, match="targets hold NaN"):
        ridge(np.ones((6, 3)), np.full((6, 1), bad), form=form)


def test_requests_that_cannot_be_met_are_refused_with_the_value() -> None:
    x, y = np.ones((600, 300), np.float32), np.ones((600, 1))
    for penalty in (0.0, -1.0, np.nan):
        with pytest.raises(RequestError, match=f"penalty is {penalty}"):
            ridge(x, y, penalty=penalty)
    with pytest.raises(RequestError, match="form is 'lsqr'"):
        ridge(x, y, form="lsqr")
    with pytest.raises(RequestError, match="tolerance is 0"):
        ridge(x, y, tolerance=0)
    with pytest.raises(RequestError, match="memory is 1000 bytes but a block of 16 rows"):
        ridge(x, y, memory=1000)
    with pytest.raises(RequestError, match="dual form needs"):
        ridge(x, y, memory=1_000_000, form="dual")
    with pytest.raises(RequestError, match="should have 600 rows"):
        ridge(x, y[:5])
    with pytest.raises(RequestError, match="5 features"):
        ridge(x, y).scores(np.ones((2, 5)))
    with pytest.raises(RequestError, match="below classes=3"):
        one_vs_rest(np.array([0, 3]), 3)
