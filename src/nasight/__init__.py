"""Neural architecture search with shared weights, and the insight to trust what it finds.

>>> import nasight
>>> run = nasight.search(data="digits", preset="tiny", epochs=1, out=tmp / "first")
>>> len(run.history)
1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nasight.architecture import Architecture
    from nasight.errors import RequestError, RunError
    from nasight.features import FeatureMapSelector, select
    from nasight.geometry import ExponentiatedGradient, MirrorDescent
    from nasight.report._diagnosis import explain
    from nasight.report._ranking import rank
    from nasight.search import Run, resume, search
    from nasight.spaces._module import Choice
    from nasight.training import train

# Imported when they are first used: `import nasight` itself takes no time.
_WHERE = {
    "Architecture": "architecture",
    "Choice": "spaces._module",
    "ExponentiatedGradient": "geometry",
    "FeatureMapSelector": "features",
    "MirrorDescent": "geometry",
    "RequestError": "errors",
    "Run": "search",
    "RunError": "errors",
    "explain": "report._diagnosis",
    "rank": "report._ranking",
    "resume": "search",
    "search": "search",
    "select": "features",
    "train": "training",
}

__all__ = [
    "Architecture",
    "Choice",
    "ExponentiatedGradient",
    "FeatureMapSelector",
    "MirrorDescent",
    "RequestError",
    "Run",
    "RunError",
    "__version__",
    "explain",
    "rank",
    "resume",
    "search",
    "select",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'nasight' has no attribute {name!r}")
    return getattr(import_module(f"nasight.{_WHERE[name]}"), name)
