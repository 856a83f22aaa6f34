"""What the scores compute: functions of a network with its initial weights, a batch and its labels."""

from __future__ import annotations

from functools import partial
from math import isfinite

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from nasight.compute import double, to_host
from nasight.gradients import coupled_norm, gradient_moments, learned, logits_of, norms_as
from nasight.kernels._empirical import empirical_ntk, extreme_eigenvalues, ntk_trace
from nasight.kernels._patterns import activation_patterns
from nasight.kernels._te_nas_measures import condition_number, linear_regions, weights_of
from nasight.spaces import multiply_adds

KNAS_NUMBERS, KNAS_PARAMETERS = 50, 11
CROSS_ENTROPY = partial(cross_entropy, reduction="none")


class NoScore(Exception):
    """Why a network has no score of this kind; it gets the worst one."""


def eigen(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """Eigen-NAS: (1/N) sum_i K_ii, the upper bound of the smallest eigenvalue (EigenNAS, Section 5.2, corrected)."""
    return ntk_trace(network, x) / len(x)


def eigen_min(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """The smallest eigenvalue of the kernel itself."""
    return extreme_eigenvalues(network, x)[0]


def knas(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """KNAS as EigenNAS states it: the Frobenius norm of the Gram matrix of gradients."""
    return float(empirical_ntk(network, x).norm())


def knas_mean(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """KNAS by its own name: the mean of the Gram matrix, which is the square norm of the mean gradient."""
    means = gradient_moments(network, x).mean.values()
    return sum(float(double(g).square().sum()) for g in means)


def naswot(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """log|det K|, where K_ij = N_A - Hamming distance of the patterns of examples i and j over N_A rectified units."""
    patterns = _patterns(network, x)
    codes = patterns.float()
    agreeing = codes @ codes.t() + (1 - codes) @ (1 - codes).t()
    sign, logarithm = torch.linalg.slogdet(to_host(agreeing).double())
    if float(sign) == 0 or not isfinite(float(logarithm)):
        raise NoScore("two examples have the same pattern, so the matrix is singular")
    return float(logarithm)


def condition(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """TE-NAS, first half, as released: largest over smallest eigenvalue of the kernel of the weights, coupled."""
    with norms_as(network, coupled_norm):
        kappa = condition_number(network, x, weights_of(network))
    if not isfinite(kappa) or kappa <= 0:
        raise NoScore(f"the condition number is {kappa:g}: the smallest eigenvalue is not above 0")
    return kappa


def regions(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """TE-NAS, second half, as released: how many linear regions crops of images fall into."""
    with norms_as(network, coupled_norm):
        found = linear_regions(network, x)
    if found is None:
        raise NoScore("the network has no rectifier (relu, leaky_relu)")
    return float(found)


def knas_released(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """KNAS's score as its released code has it (functions.py), which is not the mean of a Gram matrix.

    The loss gradients of single examples, each a batch of its own in training mode, without a step between them; of the
    first 11 parameters with at least 50 numbers the first 50. A number is followed through the first and through the
    second half of the examples, the mean of each half is taken off, and the products of the halves are summed and
    divided by the square of the number of examples.
    """
    if y.is_floating_point():
        raise NoScore("it needs classes, and these data hold numbers or several labels")
    rows = []
    with norms_as(network, coupled_norm):
        chosen = [p for p in learned(network).values() if p.numel() >= KNAS_NUMBERS][:KNAS_PARAMETERS]
        for i in range(len(x)):
            loss = cross_entropy(logits_of(network(x[i : i + 1])), y[i : i + 1])
            grads = torch.autograd.grad(loss, chosen, allow_unused=True)
            kept = [torch.zeros_like(p) if g is None else g for p, g in zip(chosen, grads, strict=True)]
            rows.append(torch.cat([g.flatten()[:KNAS_NUMBERS] for g in kept]))
    half = len(rows) // 2
    first, second = (torch.stack(part).double() for part in (rows[:half], rows[half : 2 * half]))
    return float(((first - first.mean(0)) * (second - second.mean(0))).sum()) / (2 * half) ** 2


def nasi(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """NASI's estimate of the trace norm of the NTK: |sum_i grad L_i|^2 / b over one batch of b (NASI, Section 3.3).

    Its constraint and its search over architecture parameters are in `nasi_search`.
    """
    if y.is_floating_point():
        raise NoScore("it needs classes, and these data hold numbers or several labels")
    means = gradient_moments(network, x, CROSS_ENTROPY, y).mean.values()
    return len(x) * sum(float(double(g).square().sum()) for g in means)


def params(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """How many parameters there are."""
    return float(sum(p.numel() for p in network.parameters()))


def flops(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """Floating-point operations of the convolutions and linear layers for one example, two per product."""
    return 2.0 * multiply_adds(network, tuple(x.shape[1:]))


def _patterns(network: nn.Module, x: Tensor) -> Tensor:
    with norms_as(network, coupled_norm):
        patterns = activation_patterns(network, x)
    if patterns is None:
        raise NoScore("the network has no rectifier (relu, leaky_relu)")
    return patterns
