"""Measurement of FeatureMaps' claim: accuracies with shared weights beside those of the same maps alone."""

from __future__ import annotations

import math

import numpy as np
import torch

from nasight.data import Dataset, rows
from nasight.errors import RunError
from nasight.reproducible import generator_for

ROWS = 3_000
"""At most so many are drawn from the training rows; a fifth of them validate."""
MAPS, DIMENSION = 32, 500


def maps(data: Dataset, seed: int) -> dict[str, float]:
    """The correlations of 32 random Fourier maps' accuracies, shared and alone."""
    # Imported here: it brings scikit-learn, which other studies do without.
    from nasight.features import Evaluator, correlation, family, split

    data.with_classes("features-correlation")
    chosen = torch.randperm(len(data.train_y), generator=generator_for("reproduce", "rows"))[:ROWS]
    x = data.train_x[chosen].flatten(1).float() / (255 if data.train_x.dtype == torch.uint8 else 1)
    fourier = family("fourier")
    evaluator = Evaluator(fourier, split(rows((x.numpy(), data.train_y[chosen].numpy()))), seed=seed)
    found = correlation(evaluator, fourier.sample(MAPS, np.random.default_rng([seed, 3])), DIMENSION)
    if math.isnan(found.spearman):
        raise RunError(f"all maps have the same accuracy on {data.name} with seed {seed}, so they have no ranks")
    return {"spearman": found.spearman, "pearson": found.pearson}
