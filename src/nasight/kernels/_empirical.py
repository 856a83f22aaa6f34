"""The empirical neural tangent kernel of any network, by the cheapest exact route.

K_ij = <grad f(x_i), grad f(x_j)>, the gradients with respect to all parameters that require one. Linear and
convolutional layers and batch norms are contracted layer by layer (`nasight.gradients`): one forward and one
backward pass of the whole batch, no Jacobian. Any other module takes the road of torch.func, with the same result.

`batch_norm=` is "train", "eval" or "coupled", each as `nasight.gradients` has it.

Outputs, `outputs=`:
  "sum"      f is the sum of the network's outputs: one backward pass; the default, as in KNAS and TE-NAS, and
             the theory's single output for a network of one;
  "trace"    sum over classes c of <grad f_c(x_i), grad f_c(x_j)>: one backward pass per class;
  "full"     every pair of outputs: a matrix (n * classes, n * classes), examples first.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nasight.compute import double, double_zeros, to_host
from nasight.errors import RequestError
from nasight.gradients import (
    NotContractible,
    Targets,
    check_batch_norm,
    check_examples,
    coupled_rows,
    gram,
    materialized,
    signals,
    target_square_norms,
)

OUTPUTS = ("sum", "trace", "full")


def empirical_ntk(
    module: nn.Module, x: Tensor, *, batch_norm: str = "train", outputs: str = "sum", chunk: int | None = None
) -> Tensor:
    """The kernel of a network on some examples: (n, n), float64; for `outputs="full"` (n * classes, n * classes).

    Parameters
    ----------
    module : the network.
    x : examples, (n, ...).
    batch_norm : "train", "eval" or "coupled".
    outputs : "sum", "trace" or "full".
    chunk : at most this many examples are differentiated at once, where layers cannot be contracted.

    >>> net = nn.Linear(2, 1, bias=False)
    >>> empirical_ntk(net, torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    tensor([[1., 1.],
            [1., 5.]], dtype=torch.float64)
    """
    _check(x, batch_norm, outputs)
    if batch_norm == "coupled":
        return _of_rows(coupled_rows(module, x, _targets(outputs)), outputs)
    if outputs == "full":
        return _of_rows(_rows(module, x, batch_norm, chunk), outputs)
    total = double_zeros(len(x), len(x), like=x)
    try:
        for found in signals(module, x, batch_norm, _targets(outputs)):
            for layer in found.layers:
                total += gram(layer)
    except NotContractible:
        rows = materialized(module, x, batch_norm, _targets(outputs), chunk)
        return torch.stack([_of_rows(part.transpose(0, 1), outputs) for part in rows]).sum(0)
    return total


def ntk_diagonal(
    module: nn.Module, x: Tensor, *, batch_norm: str = "train", outputs: str = "sum", chunk: int | None = None
) -> Tensor:
    """K_ii, (n,), float64, without the rest of the kernel; for `outputs="full"` (n * classes,).

    The parameters are those of `empirical_ntk`.

    >>> net = nn.Linear(2, 1, bias=False)
    >>> ntk_diagonal(net, torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    tensor([1., 5.], dtype=torch.float64)
    """
    _check(x, batch_norm, outputs)
    rows = target_square_norms(module, x, batch_norm, _targets(outputs), chunk)  # (k, n)
    return rows.t().flatten() if outputs == "full" else rows.sum(0)


def ntk_trace(
    module: nn.Module, x: Tensor, *, batch_norm: str = "train", outputs: str = "sum", chunk: int | None = None
) -> float:
    """The sum of K_ii, for the cost of a forward pass, two backward passes and the contractions of as many products.

    The parameters are those of `empirical_ntk`.

    >>> ntk_trace(nn.Linear(2, 1, bias=False), torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    6.0
    """
    return float(ntk_diagonal(module, x, batch_norm=batch_norm, outputs=outputs, chunk=chunk).sum())


def extreme_eigenvalues(
    module: nn.Module, x: Tensor, *, batch_norm: str = "train", outputs: str = "sum", chunk: int | None = None
) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of the kernel, of the dense matrix in float64.

    The parameters are those of `empirical_ntk`.

    >>> extreme_eigenvalues(nn.Linear(2, 1, bias=False), torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    (1.0, 4.0)
    """
    # A small matrix: read once, and solved where no solver asks a device.
    kernel = to_host(empirical_ntk(module, x, batch_norm=batch_norm, outputs=outputs, chunk=chunk))
    if not bool(torch.isfinite(kernel).all()):
        raise RequestError("the kernel has infinite or undefined entries, so it has no eigenvalues")
    values = torch.linalg.eigvalsh(kernel)
    return float(values[0]), float(values[-1])


def _rows(module: nn.Module, x: Tensor, batch_norm: str, chunk: int | None) -> Tensor:
    """All gradients of all outputs, (classes, n, size): every pair of them is asked for."""
    return torch.cat(list(materialized(module, x, batch_norm, _targets("full"), chunk)), 2).transpose(0, 1)


def _of_rows(rows: Tensor, outputs: str) -> Tensor:
    """The kernel of gradients (k, n, size)."""
    rows = double(rows)
    if outputs == "full":
        flat = rows.transpose(0, 1).flatten(0, 1)
        return flat @ flat.t()
    return (rows @ rows.mT).sum(0)


def _targets(outputs: str) -> Targets:
    return (lambda logits, y: logits.sum(1)[None]) if outputs == "sum" else (lambda logits, y: logits.t())


def _check(x: Tensor, batch_norm: str, outputs: str) -> None:
    check_batch_norm(batch_norm)
    if outputs not in OUTPUTS:
        raise RequestError(f"outputs must be one of {', '.join(OUTPUTS)}, got {outputs!r}")
    check_examples(x)
