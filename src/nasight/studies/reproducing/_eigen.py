"""Measurements of EigenNAS's claims: the kernel with skips, and the bounds on its smallest eigenvalue."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import torch
from numpy.typing import NDArray

from nasight.data import Dataset
from nasight.kernels import ntk, ntk_diagonal, schur_bound, theorem_1, theorem_1_printed
from nasight.reproducible import seeded
from nasight.spaces.mlp import ACTIVATIONS, Mlp

WIDTH, DRAWS, INPUTS = 512, 50, 8
NETWORKS = 25
"""Random networks per seed."""
ROUNDING = 1e-9
"""Of an eigenvalue, as a share of the largest entry of its matrix."""
RELU, SKIPS = ("relu",) * 3, (1.0, 1.0)
Array = NDArray[np.float64]


def wide_networks(data: Dataset, seed: int) -> dict[str, float]:
    """K_ii of real networks (ReLU, four layers, both skips, an example of norm 1), and how far both forms are off."""
    space = Mlp(layers=4, parametrization="ntk")
    arch, x = space.parse("relu,relu,relu/1,1"), np.eye(1, INPUTS)
    drawn = []
    for draw in range(DRAWS):
        with seeded(seed, "reproduce", "wide networks", draw):
            network = space.network(arch, (INPUTS,), 1, width=WIDTH)
        drawn.append(float(ntk_diagonal(network, torch.tensor(x, dtype=torch.float32))[0]))
    simulated = fmean(drawn)
    exact, printed = (float(ntk(x, RELU, SKIPS, form=form)[0, 0]) for form in ("exact", "printed"))
    return {
        "off the exact form, %": 100 * (simulated / exact - 1),
        "off the printed form, %": 100 * (simulated / printed - 1),
        "simulated": simulated,
        "exact": exact,
        "printed": printed,
    }


def repaired_bounds(data: Dataset, seed: int) -> dict[str, float]:
    """Random networks and rows whose smallest eigenvalue leaves a repaired bound."""
    rng, violations, cases, informative = np.random.default_rng([seed, 4]), 0, 0, 0
    for _ in range(NETWORKS):
        names, skips = _network(rng)
        x = _unit_rows(rng, int(rng.integers(1, 9)), int(rng.integers(1, 25)))
        for form in ("exact", "printed"):
            kernel, layers = ntk(x, names, skips, form=form, layers=True)
            proved = theorem_1(x, names, skips, form=form)
            informative += (proved.lower or 0.0) > 0
            for bound in (proved, schur_bound(layers, skips, form=form)):
                violations += _violated(kernel, bound.lower, bound.upper)
                cases += 1
    return {"violations": violations, "cases": cases, "Theorem 1 says more than 0, cases": informative}


def printed_bounds(data: Dataset, seed: int) -> dict[str, float]:
    """Random networks on points of a circle (N >= d^4, isotropic, norm 1) whose eigenvalue leaves the printed bound."""
    rng, violations, cases = np.random.default_rng([seed, 5]), 0, 0
    for _ in range(NETWORKS):
        names, skips = _network(rng)
        count = int(rng.integers(16, 65))
        angles = 2 * np.pi * (np.arange(count) + rng.random()) / count
        x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        bound = theorem_1_printed(x, names, skips)
        if bound.holds:
            violations += _violated(ntk(x, names, skips, form="printed"), bound.lower, bound.upper)
            cases += 1
    return {"violations": violations, "cases": cases}


def _network(rng: np.random.Generator) -> tuple[list[str], list[float]]:
    depth = int(rng.integers(2, 8))
    names = [str(name) for name in rng.choice(ACTIVATIONS, depth - 1)]
    return names, [float(skip) for skip in rng.choice([0.0, 0.5, 1.0], depth - 2)]


def _unit_rows(rng: np.random.Generator, count: int, dimensions: int) -> Array:
    x = rng.normal(size=(count, dimensions))
    unit: Array = x / np.linalg.norm(x, axis=1, keepdims=True)
    return unit


def _violated(kernel: Array, lower: float | None, upper: float | None) -> bool:
    smallest, rounding = float(np.linalg.eigvalsh(kernel)[0]), ROUNDING * float(kernel.max())
    below = lower is not None and smallest < lower - rounding
    return below or (upper is not None and smallest > upper + rounding)
