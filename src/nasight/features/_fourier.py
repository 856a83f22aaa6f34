"""Random Fourier features (Rahimi & Recht, 2008) whose draws are shared by all configurations of a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nasight.errors import RequestError

KERNELS = ("gaussian", "laplacian")
_STREAMS = {"gaussian": 0, "laplacian": 1, "offset": 2}
_BLOCK = 1 << 22
"""Numbers drawn at once in double precision before they are kept as float32."""


class FourierDraws:
    """The frequencies W and offsets b that one seed means for inputs of one width, drawn as far as asked for.

    Each kernel and the offsets have a stream of their own, and W is drawn column by column: the first columns
    of a wide W are the narrow W of the same seed.
    """

    def __init__(self, inputs: int, seed: int) -> None:
        self.inputs = inputs
        self._rng = {name: np.random.default_rng([seed, stream]) for name, stream in _STREAMS.items()}
        self._rows = {kernel: np.empty((0, inputs), np.float32) for kernel in KERNELS}
        self._offset = np.empty(0, np.float32)

    def frequencies(self, kernel: str, count: int) -> NDArray[np.float32]:
        """W transposed, (count, inputs): normal for the Gaussian kernel, standard Cauchy for the Laplacian."""
        have = self._rows[kernel]
        if len(have) < count:
            rng, grown = self._rng[kernel], np.empty((count, self.inputs), np.float32)
            grown[: len(have)] = have
            rest = grown[len(have) :].reshape(-1)
            for start in range(0, len(rest), _BLOCK):
                piece = rest[start : start + _BLOCK]
                if kernel == "gaussian":
                    piece[:] = rng.standard_normal(len(piece), dtype=np.float32)
                else:
                    piece[:] = rng.standard_cauchy(len(piece))
            self._rows[kernel] = have = grown
        return have[:count]

    def offsets(self, count: int) -> NDArray[np.float32]:
        """b, (count,): uniform in [0, 2 pi)."""
        more = count - len(self._offset)
        if more > 0:
            drawn = self._rng["offset"].uniform(0, 2 * np.pi, more).astype(np.float32)
            self._offset = np.concatenate([self._offset, drawn])
        return self._offset[:count]


def frequency_scale(kernel: str, gamma: float) -> float:
    """What gamma makes of the base frequencies: sqrt(2 gamma) for the Gaussian kernel, gamma for the Laplacian."""
    return float(np.sqrt(2 * gamma)) if kernel == "gaussian" else float(gamma)


def cosines(x: NDArray[Any], frequencies: NDArray[Any], offsets: NDArray[Any]) -> NDArray[Any]:
    """sqrt(2/D) cos(x W + b), (rows, D), for rows already multiplied by their frequency scale."""
    # numpy multiplies, torch takes cosines: on processors that are not Intel's, numpy's BLAS is the faster one.
    angles = x @ frequencies.T
    angles += offsets
    features: NDArray[Any] = torch.from_numpy(angles).cos_().mul_((2 / len(offsets)) ** 0.5).numpy()
    return features


class RandomFourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Cosine features whose inner products approach a kernel, with an error that falls as 1/sqrt(n_components).

    `gaussian`: exp(-gamma ||x - y||_2^2), features sqrt(2/D) cos(sqrt(2 gamma) x W + b), W standard normal;
    `laplacian`: exp(-gamma ||x - y||_1), features sqrt(2/D) cos(gamma x W + b), W standard Cauchy; b is uniform in
    [0, 2 pi). A random_state means one base W of each kernel, whatever gamma is, and the first columns of a wide
    map are drawn as those of a narrow one. float32 rows give float32 features.

    >>> x = np.eye(3)
    >>> RandomFourierFeatures(n_components=50, random_state=0).fit_transform(x).shape
    (3, 50)
    """

    def __init__(
        self,
        kernel: str = "gaussian",
        gamma: float = 1.0,
        n_components: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomFourierFeatures:
        """Draw W and b for rows of this width; the values of the rows do not matter."""
        if self.kernel not in KERNELS:
            raise RequestError(f"kernel must be gaussian or laplacian, got {self.kernel!r}")
        if not (isinstance(self.gamma, (int, float, np.number)) and np.isfinite(self.gamma) and self.gamma > 0):
            raise RequestError(f"gamma must be a positive number, got {self.gamma!r}")
        if not isinstance(self.n_components, (int, np.integer)) or self.n_components < 1:
            raise RequestError(f"n_components must be a whole number of at least 1, got {self.n_components!r}")
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        draws = FourierDraws(X.shape[1], seed_of(self.random_state))
        self.frequencies_ = draws.frequencies(self.kernel, int(self.n_components)).astype(X.dtype, copy=False)
        self.offsets_ = draws.offsets(int(self.n_components)).astype(X.dtype, copy=False)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """The features of the rows, (rows, n_components)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        w, b = self.frequencies_.astype(X.dtype, copy=False), self.offsets_.astype(X.dtype, copy=False)
        return cosines(X * X.dtype.type(frequency_scale(self.kernel, self.gamma)), w, b)

    @property
    def _n_features_out(self) -> int:
        return len(self.offsets_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """The number that a scikit-learn random_state stands for; a whole number stands for itself."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise RequestError(f"random_state must be at least 0, got {random_state}")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
