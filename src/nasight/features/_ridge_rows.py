"""The centered rows of a ridge problem as an operator: products and Gram matrices, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import blas

from nasight.errors import RequestError
from nasight.features._family import RowSource

Array = NDArray[Any]


class DesignMatrix:
    """Rows minus their mean, never formed as a whole: `x - 1 (shift + offset)^T`.

    `shift`, the mean of the first block, is subtracted from every dense block before it is multiplied where the
    mean outweighs what varies, so that a large mean costs no digits; what is left of it, `offset`, enters the
    products by a rank-one correction. With `copy` the subtraction is done once for all passes in float32.
    """

    def __init__(self, x: Any, *, center: bool, step: int, copy: bool = False) -> None:
        self.x, self.step = x, step
        self.made = isinstance(x, RowSource)
        self.n, self.dimension = (x.n, x.dimension) if isinstance(x, RowSource) else map(int, x.shape)
        self.sparse = bool(x.sparse) if isinstance(x, RowSource) else sparse.issparse(x)
        self.wide = not self.made and self.x.dtype == np.float64
        self.center = center
        self.shift: Array | None = None
        self.offset = np.zeros(self.dimension)
        self.energy = 0.0
        """Sum of squares of all shifted entries."""
        self.shifted: Array | None = None
        if center and not self.sparse:
            self._choose_shift()
            if copy and self.shift is not None:
                self.shifted = np.empty((self.n, self.dimension), np.float32)
                for where in (slice(i, min(i + step, self.n)) for i in range(0, self.n, step)):
                    self.shifted[where] = self._subtract(where, np.float32)

    def _choose_shift(self) -> None:
        first = np.asarray(self._raw(0, self.step), dtype=np.float64)
        mean = first.mean(0)
        if len(first) * (mean @ mean) > 0.5 * np.vdot(first, first):
            # A number of float32, so that it is the same in every precision.
            self.shift = mean.astype(np.float32).astype(np.float64)

    @property
    def mean(self) -> Array:
        return self.offset if self.shift is None else self.shift + self.offset

    def _raw(self, start: int, stop: int) -> Any:
        return self.x.rows(start, stop) if self.made else self.x[start:stop]

    def blocks(self, dtype: type = np.float32, step: int | None = None, start: int = 0) -> Iterator[tuple[slice, Any]]:
        """The shifted rows, in order."""
        step = step or self.step
        for begin in range(start, self.n, step):
            where = slice(begin, min(begin + step, self.n))
            yield where, self.block(where, dtype)

    def block(self, where: slice, dtype: type = np.float32) -> Any:
        if self.shifted is not None and dtype is np.float32:
            return self.shifted[where]
        if self.shift is not None:
            return self._subtract(where, dtype)
        raw = self._raw(where.start, where.stop)
        return raw.astype(dtype, copy=False) if self.sparse else np.ascontiguousarray(raw, dtype=dtype)

    def _subtract(self, where: slice, dtype: type) -> Array:
        assert self.shift is not None
        # The difference is taken in the precision of the rows, and only then rounded.
        fine = np.float64 if self.wide else dtype
        with np.errstate(invalid="ignore"):  # `survey` refuses what is not finite
            difference = np.subtract(self._raw(where.start, where.stop), self.shift.astype(fine), dtype=fine)
        return np.asarray(difference, dtype=dtype)

    def survey(self, y: Array, dtype: type = np.float32) -> Array:
        """One pass: `offset`, `energy`, and the centered rows' (dimension, k) products with centered targets."""
        both: Array = np.column_stack([y, np.ones(self.n)]).astype(dtype)
        products, energy = np.zeros((self.dimension, both.shape[1])), 0.0
        for where, block in self.blocks(dtype):
            energy += _energy(block)
            if not np.isfinite(energy):
                raise RequestError("the rows hold NaN, infinite or too large values but should be finite")
            products += block.T @ both[where]
        self.energy = energy
        if self.center:
            self.offset = products[:, -1] / self.n
        return products[:, :-1]

    def forward(self, p: Array, dtype: type = np.float32) -> Array:
        """(n, k): centered rows times (dimension, k)."""
        narrow: Array = p.astype(dtype)
        out, level = np.empty((self.n, p.shape[1])), self.offset @ p
        for where, block in self.blocks(dtype):
            out[where] = block @ narrow - level
        return out

    def adjoint(self, q: Array, dtype: type = np.float32) -> Array:
        """(dimension, k): centered rows, transposed, times (n, k)."""
        narrow: Array = q.astype(dtype)
        out = np.zeros((self.dimension, q.shape[1]))
        for where, block in self.blocks(dtype):
            out += block.T @ narrow[where]
        return out - np.outer(self.offset, q.sum(0))

    def normal(self, p: Array, dtype: type = np.float32) -> Array:
        """(dimension, k): `X^T X p`, reading each block once."""
        return self._pull(p, None, dtype)[0]

    def residual(self, w: Array, y: Array, dtype: type = np.float64) -> tuple[Array, float]:
        """(dimension, k) `X^T (y - X w)`, and the sum of squares of `y - X w`."""
        return self._pull(w, y, dtype)

    def _pull(self, p: Array, y: Array | None, dtype: type) -> tuple[Array, float]:
        narrow: Array = p.astype(dtype)
        out, level = np.zeros(p.shape), self.offset @ p
        total, squares = np.zeros(p.shape[1]), 0.0
        for where, block in self.blocks(dtype):
            image = block @ narrow - level
            if y is not None:
                image = y[where] - image
                squares += float(np.vdot(image, image))
            out += block.T @ image.astype(dtype)
            total += image.sum(0)
        return out - np.outer(self.offset, total), squares

    def squares(self) -> Array:
        """(dimension,) sums of squares of the centered columns."""
        total = np.zeros(self.dimension)
        for _, block in self.blocks():
            total += block.multiply(block).sum(0).A1 if self.sparse else np.einsum("ij,ij->j", block, block)
        return np.maximum(total - self.n * self.offset**2, 0)

    def gram(self, dtype: type = np.float32) -> Array:
        """Upper triangle, in Fortran order, of the (dimension, dimension) `X^T X`."""
        update = blas.ssyrk if dtype is np.float32 else blas.dsyrk
        total: Array = np.zeros((self.dimension, self.dimension), dtype, order="F")
        for _, block in self.blocks(dtype):
            if self.sparse:
                total += (block.T @ block).toarray()
            else:
                total = update(1.0, block.T, beta=1.0, c=total, overwrite_c=1)
        add = blas.ssyr if dtype is np.float32 else blas.dsyr
        return np.asarray(add(-float(self.n), self.offset.astype(dtype), a=total, overwrite_a=1))

    def kernel(self, dtype: type = np.float32) -> Array:
        """Upper triangle, in Fortran order, of the (n, n) `X X^T`."""
        total: Array = np.zeros((self.n, self.n), dtype, order="F")
        for rows, left in self.blocks(dtype):
            for columns, right in self.blocks(dtype, start=rows.start):
                part = left @ right.T
                total[rows, columns] = part.toarray() if self.sparse else part
        if self.center:
            image = np.concatenate([np.asarray(block @ self.offset) for _, block in self.blocks(np.float64)])
            for begin in range(0, self.n, self.step):
                part = total[:, begin : begin + self.step]
                part -= image[:, None] + (image[begin : begin + self.step] - self.offset @ self.offset)
        return total


def hold(source: RowSource, step: int) -> Array:
    """All rows of a source as one float32 array."""
    whole = np.empty((source.n, source.dimension), np.float32)
    for begin in range(0, source.n, step):
        end = min(begin + step, source.n)
        whole[begin:end] = source.rows(begin, end)
    return whole


def _energy(block: Any) -> float:
    values = block.data if sparse.issparse(block) else block.ravel()
    return float(np.vdot(values, values))
