"""Mirror descent in figures: divergences, stationarity, the constants of the theorems and their step counts."""

from nasight.geometry._theory_constants import GradientSizes, gamma_at, gamma_from_pairs, gradient_sizes
from nasight.geometry._theory_counts import (
    Iterations,
    best_rate,
    block_descent,
    corollary_1,
    corollary_1_bound,
    theorem_1,
    theorem_2_bound,
)
from nasight.geometry._theory_domain import FREE, Block, Domain
from nasight.geometry._theory_prox import (
    Estimate,
    Proximal,
    estimate_stationarity,
    gradient_mapping,
    proximal,
    stationarity,
)

__all__ = [
    "FREE",
    "Block",
    "Domain",
    "Estimate",
    "GradientSizes",
    "Iterations",
    "Proximal",
    "best_rate",
    "block_descent",
    "corollary_1",
    "corollary_1_bound",
    "estimate_stationarity",
    "gamma_at",
    "gamma_from_pairs",
    "gradient_mapping",
    "gradient_sizes",
    "proximal",
    "stationarity",
    "theorem_1",
    "theorem_2_bound",
]
