"""Gradients of single examples: their norms, mean and Gram matrices, without holding them."""

from nasight.gradients._contract import Layer, gram, square_norms
from nasight.gradients._jacobians import coupled, coupled_norm, materialised
from nasight.gradients._moments import (
    GradientMoments,
    Loss,
    check_examples,
    coupled_rows,
    gradient_moments,
    per_example_square_norms,
    target_square_norms,
)
from nasight.gradients._signals import (
    NotContractible,
    Targets,
    check_batch_norm,
    learned,
    logits_of,
    norms_as,
    signals,
)

__all__ = [
    "GradientMoments",
    "Layer",
    "Loss",
    "NotContractible",
    "Targets",
    "check_batch_norm",
    "check_examples",
    "coupled",
    "coupled_norm",
    "coupled_rows",
    "gradient_moments",
    "gram",
    "learned",
    "logits_of",
    "materialised",
    "norms_as",
    "per_example_square_norms",
    "signals",
    "square_norms",
    "target_square_norms",
]
