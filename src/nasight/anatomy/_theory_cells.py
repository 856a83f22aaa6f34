"""The two linear cells of Cells, figure 26, as matrices, and their gradients block by block (Cells, Appendix C.2).

widest      y_k = W_k x                    narrowest   y_k = W_k ... W_1 x

An objective takes the nodes of all examples, (m, n, d), and gives one number an example, (m,); so the same function
follows both cells, and each example may have a function of its own (a label).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nasight.errors import RequestError

Objective = Callable[[Tensor], Tensor]
CELLS = ("widest", "narrowest")


def checked(weights: Sequence[Tensor], x: Tensor) -> tuple[list[Tensor], Tensor]:
    """The matrices and the examples in float64; all matrices are (d, d), since both cells use the same ones."""
    if x.dim() != 2 or len(x) == 0:
        raise RequestError(f"examples must be rows (m, d), at least one, got shape {tuple(x.shape)}")
    size = x.shape[1]
    if not weights:
        raise RequestError("a cell needs at least 1 matrix, got 0")
    for k, w in enumerate(weights, 1):
        if w.shape != (size, size):
            raise RequestError(f"matrix {k} must be {size} x {size} as the examples are, got shape {tuple(w.shape)}")
        if not bool(torch.isfinite(w).all()):
            raise RequestError(f"matrix {k} has an infinite or undefined entry")
    return [w.double() for w in weights], x.double()


def nodes(weights: Sequence[Tensor], x: Tensor, cell: str) -> Tensor:
    """y_1 ... y_n of every example, (m, n, d)."""
    if cell not in CELLS:
        raise RequestError(f"a cell is {' or '.join(CELLS)}, got {cell!r}")
    found, here = [], x
    for w in weights:
        here = (here if cell == "narrowest" else x) @ w.T
        found.append(here)
    return torch.stack(found, 1)


def output_gradients(weights: Sequence[Tensor], x: Tensor, objective: Objective, cell: str) -> Tensor:
    """The gradient of each example's objective with respect to the nodes, these taken as free: (m, n, d)."""
    with torch.enable_grad():
        free = nodes(weights, x, cell).detach().requires_grad_()
        values = objective(free)
        if values.shape != (len(x),):
            raise RequestError(
                f"an objective must give one number for each of {len(x)} examples, got shape {tuple(values.shape)}"
            )
        if not values.requires_grad:
            return torch.zeros_like(free)
        (found,) = torch.autograd.grad(values.sum(), free, allow_unused=True)
    return torch.zeros_like(free) if found is None else found.detach()


def own_gradients(weights: Sequence[Tensor], x: Tensor, objective: Objective, cell: str) -> Tensor:
    """(df/dy_k) x^T of every example, (m, n, d, d): for the widest cell the gradient of W_k (eq. 1)."""
    return torch.einsum("mki,mj->mkij", output_gradients(weights, x, objective, cell), x)


def block_gradient(weights: Sequence[Tensor], own: Tensor, block: int) -> Tensor:
    """The gradient of the narrowest cell's W_i (i = block, from 1) from that cell's `own_gradients` (eq. 3): (m, d, d).

    sum_{k >= i} (W_k ... W_{i+1})^T (df/dy_k x^T) (W_{i-1} ... W_1)^T
    """
    before = torch.eye(own.shape[2], dtype=own.dtype)
    for w in weights[: block - 1]:
        before = w @ before
    total, behind = torch.zeros_like(own[:, 0]), torch.eye(own.shape[2], dtype=own.dtype)
    for k in range(block, len(weights) + 1):
        if k > block:
            behind = weights[k - 1] @ behind
        total = total + behind.T @ own[:, k - 1] @ before.T
    return total


def norms(weights: Sequence[Tensor]) -> list[float]:
    """lambda_j: the spectral norm, which the paper calls the largest eigenvalue."""
    return [float(torch.linalg.matrix_norm(w.double(), ord=2)) for w in weights]
