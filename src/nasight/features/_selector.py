"""Choosing a feature map inside scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from nasight.data import split_indices
from nasight.errors import RequestError
from nasight.features._correlation import Correlation, correlation
from nasight.features._evaluator import Evaluator, seed_for
from nasight.features._families import family as load_family
from nasight.features._family import Family
from nasight.features._fourier import seed_of
from nasight.features._linear import one_vs_rest
from nasight.features._ridge import ridge
from nasight.features._run import SelectionRun
from nasight.features._settings import OWN, resolve
from nasight.features._split import Part, SelectionData
from nasight.features._svm import svm
from nasight.reproducible import generator_for


class FeatureMapSelector(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier on the feature map that a search with shared weights finds best.

    `fit` holds rows out, lets `method` choose among `n_configs` configurations of `maps` by them, and then fits the
    chosen map and its linear model on all rows. Texts are a list of strings, with `maps="ngrams"`.

    Parameters
    ----------
    maps : "fourier", "ngrams", a list of transformers, or a dict of distributions; see `nasight.features.family`.
    n_configs : configurations that the method begins with.
    method : "weight-sharing", "fast-weight-sharing", "random", "successive-halving" or "hyperband".
    dimension : features of the chosen map.
    penalty : ridge's lambda.
    scoring : "accuracy" or "loss", by which configurations are compared.
    validation_fraction : the share of rows held out, every class in proportion.
    compute_correlation : also train every configuration of the first round alone (one solve each), for `correlation_`.
    random_state : everything random follows from it.
    published : n-grams and their SVM as in the authors' released code; see `HashedNgrams`.

    Attributes
    ----------
    best_map_ : the chosen transformer, fitted on all rows.
    best_config_ : its configuration.
    best_score_ : its accuracy on the rows held out.
    history_ : one row per solver call; see `nasight.features.select`.
    correlation_ : accuracies with shared weights and alone over the first round's configurations, where asked for.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> x, y = load_digits(return_X_y=True)
    >>> selector = FeatureMapSelector(n_configs=8, dimension=200, random_state=0).fit(x[:500], y[:500])
    >>> bool(selector.score(x[500:], y[500:]) > 0.8)
    True
    """

    def __init__(
        self,
        maps: Any = "fourier",
        n_configs: int = 64,
        method: str = "weight-sharing",
        dimension: int = 1000,
        penalty: float = 0.5,
        scoring: str = "accuracy",
        validation_fraction: float = 0.2,
        compute_correlation: bool = False,
        random_state: int | np.random.RandomState | None = None,
        published: bool = False,
    ) -> None:
        self.maps = maps
        self.n_configs = n_configs
        self.method = method
        self.dimension = dimension
        self.penalty = penalty
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.compute_correlation = compute_correlation
        self.random_state = random_state
        self.published = published

    def fit(self, X: Any, y: Any) -> FeatureMapSelector:
        """Choose a map by held-out rows, then fit it and its linear model on all rows."""
        X = self._rows(X, y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise RequestError(f"a classifier needs rows of 2 classes or more, got 1 class: {self.classes_[0]!r}")
        seed = seed_of(self.random_state)
        family = load_family(self.maps, published=self.published)
        evaluator = Evaluator(family, self._split(X, labels, seed), penalty=self.penalty, seed=seed)
        settings = resolve(
            maps=OWN,
            data=OWN,
            method=self.method,
            configs=self.n_configs,
            dimension=self.dimension,
            score=self.scoring,
            penalty=self.penalty,
            seed=seed,
        )
        run = SelectionRun(family, evaluator, settings)
        run.finish()
        self.history_ = run.history
        found = run.result()
        self.best_config_, self.best_score_ = found["config"], found["validation_accuracy"]
        if self.compute_correlation:
            first = run.history[0]["dimension"]
            self._correlation = correlation(evaluator, run.schedule.configs[: self.n_configs], first)
        self._refit(family, X, labels, seed)
        return self

    def _refit(self, family: Family, X: Any, labels: NDArray[np.int64], seed: int) -> None:
        """The chosen map and its linear model, on all rows."""
        own = seed_for(seed, "refit")
        self.best_map_ = family.transformer(self.best_config_, self.dimension, own).fit(X, labels)
        features = self.best_map_.transform(X)
        if family.solver == "svm":
            self.model_ = svm(features, labels, tolerance=family.tolerance, classes=len(self.classes_))
        else:
            self.model_ = ridge(features, one_vs_rest(labels, len(self.classes_)), penalty=self.penalty)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores, (rows, classes), or (rows,) for the second of two classes."""
        check_is_fitted(self)
        features = self.best_map_.transform(self._rows(X))
        scores: NDArray[np.float64] = features @ self.model_.coef.astype(np.float64) + self.model_.intercept
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[scores.argmax(1) if scores.ndim == 2 else (scores > 0).astype(np.int64)])

    @property
    def correlation_(self) -> Correlation:
        """Accuracies with shared weights and alone; there after `fit` with `compute_correlation=True`."""
        if not hasattr(self, "_correlation"):
            raise AttributeError("correlation_ is there after fit with compute_correlation=True")
        return self._correlation

    def _rows(self, X: Any, y: Any = None) -> Any:
        """Checked rows: a list of texts for n-grams, texts or an array for one's own maps, an array otherwise."""
        fitting = {} if y is None else {"y": y}
        if self._text() or (not isinstance(self.maps, str) and _are_texts(X)):
            if not _are_texts(X):
                raise RequestError(f"n-grams are made of a list of texts, got {type(X).__name__}")
            check_consistent_length(X, *fitting.values())
            return list(X)
        checked = validate_data(self, X, **fitting, reset=y is not None, dtype=[np.float64, np.float32])
        return checked[0] if fitting else checked

    def _text(self) -> bool:
        return self.maps == "ngrams" if isinstance(self.maps, str) else getattr(self.maps, "name", "") == "ngrams"

    def _split(self, X: Any, labels: NDArray[np.int64], seed: int) -> SelectionData:
        if not 0 < self.validation_fraction < 1:
            raise RequestError(f"validation_fraction lies between 0 and 1, got {self.validation_fraction}")
        count = len(labels)
        held = min(max(round(self.validation_fraction * count), 1), count - 1)
        parts = split_indices(torch.from_numpy(labels), [held, count - held], generator_for(seed, "validation"))
        whole = Part(X, labels)
        validation, train = (whole.take(part.numpy()) for part in parts)
        return SelectionData(train, validation, None, len(self.classes_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self._text()
        return tags


def _are_texts(X: Any) -> bool:
    return not isinstance(X, str) and hasattr(X, "__len__") and len(X) > 0 and all(isinstance(text, str) for text in X)
