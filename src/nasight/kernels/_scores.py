"""What the scores compute: functions of a network with its initial weights, a batch and its labels."""

from __future__ import annotations

from functools import partial
from math import isfinite

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from nasight.compute import double, to_host
from nasight.gradients import coupled_norm, gradient_moments, norms_as
from nasight.kernels._empirical import empirical_ntk, extreme_eigenvalues, ntk_trace
from nasight.kernels._patterns import activation_patterns, distinct
from nasight.spaces import multiply_adds

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
    """TE-NAS, first half: largest over smallest eigenvalue of the kernel."""
    smallest, largest = extreme_eigenvalues(network, x)
    if smallest <= 0:
        raise NoScore(f"the smallest eigenvalue is {smallest:g}, not above 0")
    return largest / smallest


def regions(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """TE-NAS, second half: how many linear regions the examples fall into."""
    return float(distinct(_patterns(network, x)))


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
