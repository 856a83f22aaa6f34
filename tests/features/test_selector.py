"""`FeatureMapSelector` as a scikit-learn estimator."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nasight.errors import RequestError
from nasight.features import SELECTION_METHODS, FeatureMapSelector

Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def digits() -> Arrays:
    x, y = load_digits(return_X_y=True)
    return x / 16, y


@parametrize_with_checks([FeatureMapSelector(n_configs=8, dimension=100, random_state=0)])
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_every_method_finds_a_map_that_beats_the_linear_model_on_a_circle(method: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    y = (np.square(x).sum(1) > 1.4).astype(int)
    selector = FeatureMapSelector(n_configs=16, method=method, dimension=100, random_state=0).fit(x[:1600], y[:1600])
    assert selector.score(x[1600:], y[1600:]) > 0.9  # a linear model does not pass 0.6


def test_weight_sharing_finds_the_one_good_map_among_useless_ones() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1500, 3))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    maps = [FunctionTransformer(np.roll, kw_args={"shift": i}) for i in range(7)]
    maps.insert(4, FunctionTransformer(_product))
    selector = FeatureMapSelector(maps=maps, n_configs=8, dimension=3, random_state=0).fit(x, y)
    assert selector.best_map_.transform(x[:1])[0, 1] == pytest.approx(x[0, 0] * x[0, 1])
    assert selector.best_score_ > 0.9


def _product(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.stack([np.zeros(len(x)), x[:, 0] * x[:, 1], np.zeros(len(x))], axis=1)


def test_the_same_random_state_gives_the_same_map_history_and_predictions(digits: Arrays) -> None:
    x, y = digits
    first, second = (
        FeatureMapSelector(n_configs=8, dimension=100, random_state=3).fit(x[:600], y[:600]) for _ in range(2)
    )
    assert first.best_config_ == second.best_config_
    for one, two in zip(first.history_, second.history_, strict=True):
        assert {**one, "seconds": 0} == {**two, "seconds": 0}
    assert np.array_equal(first.decision_function(x[600:]), second.decision_function(x[600:]))


def test_it_works_in_a_pipeline_and_clones(digits: Arrays) -> None:
    x, y = digits
    chain = make_pipeline(StandardScaler(), FeatureMapSelector(n_configs=8, dimension=300, random_state=0))
    assert clone(chain).fit(x[:1000], y[:1000]).score(x[1000:], y[1000:]) > 0.85


def test_labels_may_be_words_and_best_map_is_a_fitted_transformer(digits: Arrays) -> None:
    x, y = digits
    words = np.array(["zero", "one", "two"])[y % 3]
    selector = FeatureMapSelector(n_configs=4, dimension=150, random_state=0).fit(x, words)
    assert set(selector.predict(x)) == {"zero", "one", "two"}
    assert selector.best_map_.transform(x[:5]).shape == (5, 150)


@pytest.mark.slow
def test_shared_accuracy_goes_with_accuracy_alone_on_the_digits(digits: Arrays) -> None:
    x, y = digits
    selector = FeatureMapSelector(n_configs=16, dimension=200, random_state=0, compute_correlation=True).fit(x, y)
    found = selector.correlation_
    assert len(found.shared) == len(found.alone) == 16
    assert found.pearson == pytest.approx(np.corrcoef(found.shared, found.alone)[0, 1])
    assert found.spearman > 0.5


def test_correlation_is_there_only_when_asked_for(digits: Arrays) -> None:
    x, y = digits
    selector = FeatureMapSelector(n_configs=2, dimension=20, random_state=0).fit(x[:200], y[:200])
    with pytest.raises(AttributeError, match="compute_correlation=True"):
        _ = selector.correlation_


def test_texts_are_classified_by_n_grams() -> None:
    good, bad = "what a fine film , truly great", "a dull film , truly bad"
    texts = [f"{good} {i}" for i in range(40)] + [f"{bad} {i}" for i in range(40)]
    labels = ["pos"] * 40 + ["neg"] * 40
    selector = FeatureMapSelector(maps="ngrams", n_configs=4, dimension=256, random_state=0).fit(texts, labels)
    assert list(selector.predict([good, bad])) == ["pos", "neg"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "grid"}, "there is no method 'grid'"),
        ({"scoring": "auc"}, "there is no score 'auc'"),
        ({"n_configs": 0}, "configs is more than 0, got 0"),
        ({"validation_fraction": 1.0}, "validation_fraction lies between 0 and 1, got 1.0"),
        ({"maps": "ngrams"}, "a list of texts"),
    ],
)
def test_a_wrong_setting_is_named_at_fit(digits: Arrays, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        FeatureMapSelector(**settings).fit(*digits)
