"""The empirical neural tangent kernel of any network, by the cheapest exact route.

K_ij = <grad f(x_i), grad f(x_j)>, the gradients with respect to all parameters that require one. Linear and
convolutional layers and batch norms are contracted layer by layer (`_contract`): one forward and one backward pass
of the whole batch, no Jacobian. Any other module takes the road of torch.func, with the same result.

Batch norm, `batch_norm=`:
  "train"    statistics of the batch, taken as constants (frozen): every example has a gradient of its own,
             that of the affine map which the batch norm is on this batch;
  "eval"     running statistics;
  "coupled"  statistics of the batch, and every output is differentiated through them, as one backward pass an
             output of the network in training mode does it: n passes, all gradients held at once.
Everything else is as in evaluation (no dropout); running statistics and modes are left as they were.
Examples must not meet elsewhere: batch norms written as `F.batch_norm` in a forward pass are for "coupled" only.

Outputs, `outputs=`:
  "sum"      f is the sum of the network's outputs: one backward pass; the default, as in KNAS and TE-NAS, and
             the theory's single output for a network of one;
  "trace"    sum over classes c of <grad f_c(x_i), grad f_c(x_j)>: a backward pass a class;
  "full"     every pair of outputs: a matrix (n * classes, n * classes), examples first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nasight.errors import RequestError
from nasight.kernels._contract import Layer, gram, square_norms
from nasight.kernels._jacobians import coupled, coupled_norm, materialised
from nasight.kernels._signals import NotContractible, Targets, check_batch_norm, learned, norms_as, signals

OUTPUTS = ("sum", "trace", "full")
Loss = Callable[..., Tensor]
"""`loss(outputs)`, or `loss(outputs, y)` where labels are given: one number an example, (n,)."""


def empirical_ntk(
    module: nn.Module, x: Tensor, *, batch_norm: str = "train", outputs: str = "sum", chunk: int | None = None
) -> Tensor:
    """The kernel of `module` on the rows of `x`: (n, n), float64; for `outputs="full"` (n * classes, n * classes).

    `chunk` bounds how many examples a module of other layers is differentiated for at once.

    >>> net = nn.Linear(2, 1, bias=False)
    >>> empirical_ntk(net, torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    tensor([[1., 1.],
            [1., 5.]], dtype=torch.float64)
    """
    _check(x, batch_norm, outputs)
    if batch_norm == "coupled":
        return _of_rows(_coupled(module, x, _targets(outputs)), outputs)
    if outputs == "full":
        return _of_rows(_rows(module, x, batch_norm, chunk), outputs)
    total = torch.zeros(len(x), len(x), dtype=torch.float64)
    try:
        for found in signals(module, x, batch_norm, _targets(outputs)):
            for layer in found.layers:
                total += gram(layer)
    except NotContractible:
        rows = materialised(module, x, batch_norm, _targets(outputs), chunk)
        return torch.stack([_of_rows(part.transpose(0, 1), outputs) for part in rows]).sum(0)
    return total


def ntk_diagonal(
    module: nn.Module, x: Tensor, *, batch_norm: str = "train", outputs: str = "sum", chunk: int | None = None
) -> Tensor:
    """K_ii, (n,), float64, without the rest of the kernel; with "full", (n * classes,)."""
    _check(x, batch_norm, outputs)
    rows = _square_norms(module, x, batch_norm, _targets(outputs), chunk)  # (k, n)
    return rows.t().flatten() if outputs == "full" else rows.sum(0)


def ntk_trace(
    module: nn.Module, x: Tensor, *, batch_norm: str = "train", outputs: str = "sum", chunk: int | None = None
) -> float:
    """The sum of K_ii: the cost of a forward pass, a backward pass and the contractions of as many products."""
    return float(ntk_diagonal(module, x, batch_norm=batch_norm, outputs=outputs, chunk=chunk).sum())


def extreme_eigenvalues(
    module: nn.Module, x: Tensor, *, batch_norm: str = "train", outputs: str = "sum", chunk: int | None = None
) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of the kernel, of the dense matrix in float64."""
    kernel = empirical_ntk(module, x, batch_norm=batch_norm, outputs=outputs, chunk=chunk)
    if not bool(torch.isfinite(kernel).all()):
        raise RequestError("the kernel has infinite or undefined entries, so it has no eigenvalues")
    values = torch.linalg.eigvalsh(kernel)
    return float(values[0]), float(values[-1])


def per_example_square_norms(
    module: nn.Module,
    x: Tensor,
    loss: Loss | None = None,
    y: Tensor | None = None,
    *,
    batch_norm: str = "train",
    chunk: int | None = None,
) -> Tensor:
    """|g_i|^2, (n,), float64: g_i the gradient of example i's loss, or of the sum of its outputs without one.

    >>> from functools import partial
    >>> loss = partial(nn.functional.cross_entropy, reduction="none")
    >>> per_example_square_norms(nn.Linear(2, 3), torch.randn(5, 2), loss, torch.tensor([0, 1, 2, 0, 1])).shape
    torch.Size([5])
    """
    _check(x, batch_norm, "sum")
    return _square_norms(module, x, batch_norm, _losses(loss), chunk, y)[0]


@dataclass(frozen=True, slots=True)
class GradientMoments:
    """First and second moment of the gradient over the examples of a batch."""

    square_norms: Tensor
    """|g_i|^2, (n,)."""
    mean: dict[str, Tensor]
    """The mean gradient, parameter by parameter."""

    @property
    def variance(self) -> float:
        """The mean of |g_i - mean|^2 over the examples."""
        mean = sum(float(g.double().square().sum()) for g in self.mean.values())
        return max(0.0, float(self.square_norms.mean()) - mean)


def gradient_moments(
    module: nn.Module,
    x: Tensor,
    loss: Loss | None = None,
    y: Tensor | None = None,
    *,
    batch_norm: str = "train",
    chunk: int | None = None,
) -> GradientMoments:
    """Norms of the examples' gradients and their mean, from one forward and one backward pass."""
    _check(x, batch_norm, "sum")
    parameters = learned(module)
    sums: list[Tensor | None]
    if batch_norm == "coupled":
        rows = _coupled(module, x, _losses(loss), y)[0]
        norms = rows.double().square().sum(1)
        sums = list(_split(rows.sum(0), list(parameters.values())))
    else:
        try:
            (found,) = signals(module, x, batch_norm, _losses(loss), y, list(parameters.values()))
            norms, sums = _norms_of(found.layers, len(x)), found.parameters
        except NotContractible:
            parts = [part[:, 0] for part in materialised(module, x, batch_norm, _losses(loss), chunk, y)]
            norms = torch.stack([part.double().square().sum(1) for part in parts]).sum(0)
            sums = [part.sum(0).view_as(p) for part, p in zip(parts, parameters.values(), strict=True)]
    means = {
        name: torch.zeros_like(p) if total is None else total / len(x)
        for (name, p), total in zip(parameters.items(), sums, strict=True)
    }
    return GradientMoments(norms, means)


def _square_norms(
    module: nn.Module, x: Tensor, batch_norm: str, targets: Targets, chunk: int | None, y: Tensor | None = None
) -> Tensor:
    """(k, n) for k rows of targets."""
    if batch_norm == "coupled":
        return _coupled(module, x, targets, y).double().square().sum(2)
    try:
        passes = signals(module, x, batch_norm, targets, y)
        return torch.stack([_norms_of(found.layers, len(x)) for found in passes])
    except NotContractible:
        parts = materialised(module, x, batch_norm, targets, chunk, y)
        return torch.stack([part.double().square().sum(2).t() for part in parts]).sum(0)


def _norms_of(layers: list[Layer], examples: int) -> Tensor:
    total = torch.zeros(examples, dtype=torch.float64)
    for layer in layers:
        total += square_norms(layer)
    return total


def _rows(module: nn.Module, x: Tensor, batch_norm: str, chunk: int | None) -> Tensor:
    """All gradients of all outputs, (classes, n, size): every pair of them is asked for."""
    return torch.cat(list(materialised(module, x, batch_norm, _targets("full"), chunk)), 2).transpose(0, 1)


def _coupled(module: nn.Module, x: Tensor, targets: Targets, y: Tensor | None = None) -> Tensor:
    with norms_as(module, coupled_norm):
        return coupled(module, x, targets, list(learned(module).values()), y)


def _of_rows(rows: Tensor, outputs: str) -> Tensor:
    """The kernel of gradients (k, n, size)."""
    rows = rows.double()
    if outputs == "full":
        flat = rows.transpose(0, 1).flatten(0, 1)
        return flat @ flat.t()
    return (rows @ rows.mT).sum(0)


def _split(flat: Tensor, like: list[nn.Parameter]) -> list[Tensor]:
    parts = torch.split(flat, [p.numel() for p in like])
    return [part.view_as(p) for part, p in zip(parts, like, strict=True)]


def _targets(outputs: str) -> Targets:
    return (lambda logits, y: logits.sum(1)[None]) if outputs == "sum" else (lambda logits, y: logits.t())


def _losses(loss: Loss | None) -> Targets:
    if loss is None:
        return _targets("sum")

    def targets(logits: Tensor, y: Tensor | None) -> Tensor:
        values = loss(logits) if y is None else loss(logits, y)
        if values.shape != (len(logits),):
            raise RequestError(
                f"a loss must give one number for each of {len(logits)} examples, got shape {tuple(values.shape)}"
            )
        return values[None]

    return targets


def _check(x: Tensor, batch_norm: str, outputs: str) -> None:
    check_batch_norm(batch_norm)
    if outputs not in OUTPUTS:
        raise RequestError(f"outputs must be one of {', '.join(OUTPUTS)}, got {outputs!r}")
    if x.dim() < 2 or len(x) == 0:
        raise RequestError(f"examples must be rows (n, ...), at least one of them, got shape {tuple(x.shape)}")
