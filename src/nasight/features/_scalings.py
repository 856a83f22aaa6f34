"""The four ways to scale numeric rows before a random map, fitted on training rows only."""

from __future__ import annotations

from typing import Any

from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

from nasight.errors import RequestError

SCALINGS: dict[str, Any] = {
    "none": FunctionTransformer,
    "min-max": MinMaxScaler,
    "normalize": Normalizer,
    "standardize": StandardScaler,
}
"""Columns to [0, 1]; rows to length 1; columns to mean 0 and deviation 1. A constant column becomes zeros."""


def scaling(name: str) -> Any:
    """The scikit-learn transformer of a scaling, not yet fitted."""
    if name not in SCALINGS:
        raise RequestError(f"a scaling is one of {', '.join(SCALINGS)}, got {name!r}")
    return SCALINGS[name]()
