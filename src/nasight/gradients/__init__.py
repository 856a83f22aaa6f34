"""Gradients of single examples: their norms, mean and Gram matrices, without holding them.

Batch norm, `batch_norm=`:
  "train"    statistics of the batch, taken as constants (frozen): every example has a gradient of its own,
             that of the affine map which the batch norm is on this batch;
  "eval"     running statistics;
  "coupled"  statistics of the batch, and every output is differentiated through them, as one backward pass per
             output of the network in training mode does it: n passes, all gradients held at once.
Everything else is as in evaluation (no dropout); running statistics and modes are left as they were.
Any module has its gradients. They are contracted layer by layer where a backward pass with unequal factors for the
examples confirms it, else taken example by example (torch.func), confirmed in the same way, else by one backward pass
of the batch per example. `gradient_route` says which, and a `SlowGradients` warning where one would expect better.
Where examples meet (a batch norm written as `F.batch_norm`, attention over the rows of a batch), the gradient of an
example is that of its output in this batch.
"""

from nasight.gradients._contract import Layer, gram, square_norms
from nasight.gradients._guard import SlowGradients
from nasight.gradients._jacobians import coupled, coupled_norm, materialized
from nasight.gradients._moments import (
    GradientMoments,
    Loss,
    check_examples,
    coupled_rows,
    gradient_moments,
    per_example_square_norms,
    target_square_norms,
)
from nasight.gradients._route import gradient_route
from nasight.gradients._signals import signals
from nasight.gradients._tape import NotContractible, Targets, check_batch_norm, learned, logits_of, norms_as

__all__ = [
    "GradientMoments",
    "Layer",
    "Loss",
    "NotContractible",
    "SlowGradients",
    "Targets",
    "check_batch_norm",
    "check_examples",
    "coupled",
    "coupled_norm",
    "coupled_rows",
    "gradient_moments",
    "gradient_route",
    "gram",
    "learned",
    "logits_of",
    "materialized",
    "norms_as",
    "per_example_square_norms",
    "signals",
    "square_norms",
    "target_square_norms",
]
