"""Curvature of the loss: extreme eigenvalues and trace of its Hessian, from Hessian-vector products."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nasight.anatomy._variance import CROSS_ENTROPY, check_examples
from nasight.compute import double, double_zeros, to_device, to_host
from nasight.errors import RequestError, RunError
from nasight.gradients import Loss, learned, logits_of

Vector = np.ndarray[Any, np.dtype[np.float64]]
DENSE = 32
"""With no more parameters than this the whole matrix is cheaper than an iteration."""


@dataclass(frozen=True)
class HessianSpectrum:
    """The ends of the spectrum, and the trace with the standard error of its estimate."""

    largest: float
    smallest: float
    trace: float
    trace_error: float
    probes: int
    products: int
    """Hessian-vector products that it took."""
    parameters: int
    examples: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def hessian_spectrum(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    generator: torch.Generator,
    loss: Loss | None = None,
    probes: int = 32,
    tolerance: float = 1e-4,
    chunk: int = 512,
) -> HessianSpectrum:
    """Largest and smallest eigenvalue, and trace, of the Hessian of the mean loss over these examples.

    Over all parameters that require a gradient, in evaluation mode: batch norms use their running statistics. The
    eigenvalues come from Lanczos' method (scipy's eigsh), the largest to a relative `tolerance`, the smallest to that
    share of the distance between them; the trace from `probes` vectors of random signs (Hutchinson): the mean of
    v^T H v. The generator draws the signs and the first vector.

    >>> net = nn.Linear(1, 2, bias=False)
    >>> x, y = torch.ones(4, 1), torch.tensor([0, 1, 0, 1])
    >>> found = hessian_spectrum(net, x, y, generator=torch.Generator().manual_seed(0))
    >>> found.parameters, found.largest > 0.0, abs(found.smallest) < 1e-6
    (2, True, True)
    """
    check_examples(x, y, chunk)
    if probes < 2:
        raise RequestError(f"the error of a trace needs at least 2 probes, got {probes}")
    with _evaluating(model):
        product = _Product(model, x, y, loss or CROSS_ENTROPY, chunk)
        smallest, largest = _extremes(product, generator, tolerance)
        samples = []
        for _ in range(probes):
            signs = torch.randint(0, 2, (product.size,), generator=generator).double() * 2 - 1
            samples.append(float(signs.numpy() @ product(signs.numpy())))
    error = float(np.std(samples, ddof=1)) / math.sqrt(probes)
    return HessianSpectrum(
        largest, smallest, float(np.mean(samples)), error, probes, product.count, product.size, len(x)
    )


class _Product:
    """v -> H v. The graph of the gradient is kept when one chunk holds all examples, else built anew each time."""

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, loss: Loss, chunk: int) -> None:
        self.model, self.loss, self.examples = model, loss, len(x)
        self.parameters = list(learned(model).values())
        if not self.parameters:
            raise RequestError("the network has no parameter that requires a gradient, so its loss has no Hessian")
        self.size = sum(p.numel() for p in self.parameters)
        self.parts = list(zip(torch.split(x, chunk), torch.split(y, chunk), strict=True))
        self.count = 0
        self.kept = self._gradient(*self.parts[0]) if len(self.parts) == 1 else None

    def _gradient(self, x: Tensor, y: Tensor) -> Tensor:
        with torch.enable_grad():
            value = self.loss(logits_of(self.model(x)), y).sum() / self.examples
            grads = torch.autograd.grad(value, self.parameters, create_graph=True, allow_unused=True)
            return self._flat(grads)

    def _flat(self, grads: tuple[Tensor | None, ...]) -> Tensor:
        pairs = zip(grads, self.parameters, strict=True)
        return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs])

    def __call__(self, vector: Vector) -> Vector:
        self.count += 1
        v = torch.from_numpy(np.ascontiguousarray(vector.reshape(-1))).to(self.parameters[0].dtype)
        v = to_device(v, self.parameters[0].device)
        total = double_zeros(self.size, like=v)
        for part in self.parts:
            gradient = self._gradient(*part) if self.kept is None else self.kept
            if not gradient.requires_grad:
                continue
            grads = torch.autograd.grad(
                gradient, self.parameters, v, retain_graph=self.kept is not None, allow_unused=True
            )
            total += double(self._flat(grads).detach())
        near = to_host(total)
        if not bool(torch.isfinite(near).all()):
            raise RunError("the Hessian of the loss has infinite or undefined entries here")
        return near.numpy()


def _extremes(product: _Product, generator: torch.Generator, tolerance: float) -> tuple[float, float]:
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    size = product.size
    if size <= DENSE:
        dense = np.stack([product(row) for row in np.eye(size)])
        values = np.linalg.eigvalsh((dense + dense.T) / 2)
        return float(values[0]), float(values[-1])
    first = torch.randn(size, dtype=torch.float64, generator=generator).numpy()

    def top(shift: float, sign: float) -> float:
        """The largest eigenvalue of shift I + sign H."""

        def apply(vector: Vector) -> Vector:
            return shift * vector.reshape(-1) + sign * product(vector)

        if not apply(first).any():
            return 0.0  # the zero matrix, which Lanczos' method cannot start on
        operator = LinearOperator((size, size), matvec=apply, dtype=np.float64)
        try:
            return float(eigsh(operator, k=1, which="LA", v0=first, tol=tolerance, return_eigenvectors=False)[0])
        except ArpackNoConvergence as error:
            raise RunError(f"an eigenvalue of the Hessian did not settle: {error}") from error

    largest = top(0.0, 1.0)
    # The smallest is often near 0 and among many: measured from the largest, it settles in as few products.
    return largest - top(largest, -1.0), largest


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = [(part, part.training) for part in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for part, training in modes:
            part.training = training
