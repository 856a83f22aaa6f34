"""A linear model with one column of weights for each target, and the rows it is fitted on and scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nasight.errors import RequestError
from nasight.features._family import RowSource

BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class LinearModel:
    """Scores `x @ coef + intercept`, with what the solver has to say about them; `ridge` and `svm` make one."""

    coef: NDArray[Any]  # (dimension, targets)
    intercept: NDArray[Any]  # (targets,)
    form: str = ""
    """How it was solved: `primal`, `dual`, `cg` or `svm`."""
    peak_bytes: int = 0
    """The most memory that the solver held at once, beside the rows it was given."""
    seconds: float = 0.0
    objective: float = float("nan")
    """What was minimized, at these weights, to about the tolerance asked for."""
    iterations: int = 0
    excess: float = float("nan")
    """Bound on how far the objective is above its minimum, relative to it."""
    converged: bool = True

    def scores(self, x: Any) -> NDArray[Any]:
        """(n, targets) scores of an array, a sparse matrix or a source of rows, block by block."""
        if _width(x) != len(self.coef):
            raise RequestError(f"the rows have {_width(x)} features but the model was fitted on {len(self.coef)}")
        blocks = [block @ self.coef + self.intercept for block in read(x)]
        return np.concatenate(blocks) if blocks else np.zeros((0, len(self.intercept)))

    def predict(self, x: Any) -> NDArray[np.int64]:
        """The class of the highest score; of one column, the second class where it is positive."""
        scores = self.scores(x)
        return np.asarray(scores.argmax(1) if scores.shape[1] > 1 else scores[:, 0] > 0, dtype=np.int64)


def one_vs_rest(labels: Any, classes: int) -> NDArray[np.float32]:
    """Targets for one linear model per class: +1 in the column of a row's class and -1 elsewhere.

    (n, classes), or (n, 1) for two classes: only the second's.

    Parameters
    ----------
    labels : class numbers 0 to `classes` - 1, (n,).
    classes : the number of classes.

    >>> one_vs_rest([0, 2], classes=3)
    array([[ 1., -1., -1.],
           [-1., -1.,  1.]], dtype=float32)
    """
    given = np.asarray(labels)
    if given.ndim != 1 or given.size == 0 or not np.issubdtype(given.dtype, np.integer):
        raise RequestError(f"labels of shape {given.shape} and type {given.dtype} should be one class number per row")
    if classes < 2 or given.min() < 0 or given.max() >= classes:
        raise RequestError(
            f"labels between {given.min()} and {given.max()} should be class numbers below classes={classes}"
        )
    targets = np.full((len(given), classes), -1, dtype=np.float32)
    targets[np.arange(len(given)), given] = 1
    return targets[:, 1:] if classes == 2 else targets


def read(x: Any, block_bytes: int = BLOCK_BYTES) -> Iterator[Any]:
    """The rows in blocks of about this many bytes, as arrays or CSR."""
    if isinstance(x, RowSource):
        step = max(1, block_bytes // (4 * x.dimension))
        yield from (x.rows(start, min(start + step, x.n)) for start in range(0, x.n, step))
    elif sparse.issparse(x):
        yield x.tocsr()
    else:
        rows = np.asarray(x)
        step = max(1, block_bytes // (rows.itemsize * rows.shape[1]))
        yield from (rows[start : start + step] for start in range(0, len(rows), step))


def _width(x: Any) -> int:
    return x.dimension if isinstance(x, RowSource) else int(x.shape[1])
