from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from nasight.errors import RequestError
from nasight.features._svm import svm


def rows(n: int = 120, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    return (rng.standard_normal((n, 8)) + 3 * np.eye(8)[labels]).astype(np.float32), labels


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_and_classes_are_liblinears(classes: int) -> None:
    x, labels = rows(classes=classes)
    model = svm(x, labels, tolerance=1e-4, max_iter=20_000)
    theirs = LinearSVC(loss="hinge", random_state=0, tol=1e-4, max_iter=20_000).fit(x, labels)
    np.testing.assert_allclose(model.scores(x).squeeze(), theirs.decision_function(x), atol=1e-5)
    assert (model.predict(x) == theirs.predict(x)).all()
    assert model.converged


def test_the_objective_is_below_that_of_any_weights_near_it() -> None:
    x, labels = rows(classes=2)
    model = svm(x, labels, tolerance=1e-4, max_iter=100_000)
    signs = 2 * labels - 1

    def value(w: np.ndarray, level: float) -> float:
        return float((w @ w + level**2) / 2 + np.maximum(0, 1 - signs * (x @ w + level)).sum())

    w, level = model.coef[:, 0], float(model.intercept[0])
    assert model.objective == pytest.approx(value(w, level), rel=1e-6)
    rng = np.random.default_rng(1)
    assert all(value(w + 0.1 * rng.standard_normal(8), level) > model.objective for _ in range(50))


def test_the_tolerance_asked_for_is_met_and_a_smaller_one_ends_nearer_to_the_least_objective() -> None:
    x, labels = rows(n=600, classes=2, seed=2)
    loose, tight, least = (svm(x, labels, tolerance=t, max_iter=100_000) for t in (0.1, 1e-3, 1e-6))
    assert loose.iterations < tight.iterations < least.iterations
    assert least.objective <= tight.objective * (1 + 1e-9)
    assert tight.objective < loose.objective < 1.1 * least.objective


def test_sparse_rows_give_the_weights_of_their_dense_ones() -> None:
    x, labels = rows()
    x[np.abs(x) < 0.5] = 0
    dense, thin = (svm(form, labels, tolerance=1e-4, max_iter=50_000) for form in (x, sparse.csr_matrix(x)))
    np.testing.assert_allclose(thin.coef, dense.coef, atol=1e-3)


def test_stopping_early_is_recorded_without_a_warning() -> None:
    x, labels = rows()
    assert not svm(x * 1000, labels, max_iter=1).converged


def test_a_class_without_rows_keeps_its_column_and_is_never_predicted() -> None:
    x, labels = rows(classes=4)
    for present in ((0, 2, 3), (1, 3)):
        kept = np.isin(labels, present)
        model = svm(x[kept], labels[kept], classes=4, tolerance=1e-4, max_iter=20_000)
        assert model.coef.shape == (8, 4)
        assert set(model.predict(x[kept])) == set(present)
        assert (model.predict(x[kept]) == labels[kept]).mean() > 0.8


def test_requests_that_cannot_be_met_are_refused() -> None:
    x, labels = rows()
    with pytest.raises(RequestError, match="C is 0"):
        svm(x, labels, C=0)
    with pytest.raises(RequestError, match="tolerance is 0"):
        svm(x, labels, tolerance=0)
    with pytest.raises(RequestError, match="loss is 'log'"):
        svm(x, labels, loss="log")
    with pytest.raises(RequestError, match="all labels are 1"):
        svm(x, np.ones(len(x), int))
    with pytest.raises(RequestError, match="NaN"):
        svm(np.full_like(x, np.nan), labels)
    with pytest.raises(RequestError, match="120 rows but 3 labels"):
        svm(x, labels[:3])
