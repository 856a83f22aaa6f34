"""Neural architecture search with shared weights, and the insight to trust what it finds.

>>> import nasight
>>> run = nasight.search(data="digits", preset="tiny", epochs=1, examples=200, out=tmp / "first")
>>> len(run.history)
1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nasight.version import VERSION as __version__

if TYPE_CHECKING:
    from nasight import (  # noqa: F401
        anatomy,
        compute,
        data,
        export,
        features,
        geometry,
        gradients,
        kernels,
        runs,
        searching,
        spaces,
        studies,
        tables,
        training,
        trust,
    )
    from nasight.architecture import Architecture
    from nasight.errors import RequestError, RunError
    from nasight.features import FeatureMapSelector, select
    from nasight.geometry import ExponentiatedGradient, MirrorDescent
    from nasight.own import OwnParts
    from nasight.plugins import register
    from nasight.searching import Method, Run
    from nasight.spaces import Choice, Space
    from nasight.studies import Answer, Model, explain, find, load_model, rank, reproduce, resume, resume_find, search
    from nasight.training import train

# Imported when they are first used: `import nasight` itself takes no time.
_HOMES = {
    "Answer": "studies",
    "Architecture": "architecture",
    "Choice": "spaces",
    "ExponentiatedGradient": "geometry",
    "FeatureMapSelector": "features",
    "Method": "searching",
    "MirrorDescent": "geometry",
    "OwnParts": "own",
    "Model": "studies",
    "RequestError": "errors",
    "Run": "searching",
    "RunError": "errors",
    "Space": "spaces",
    "explain": "studies",
    "find": "studies",
    "load_model": "studies",
    "rank": "studies",
    "register": "plugins",
    "reproduce": "studies",
    "resume": "studies",
    "resume_find": "studies",
    "search": "studies",
    "select": "features",
    "train": "training",
}

_PACKAGES = (
    "anatomy",
    "compute",
    "data",
    "export",
    "features",
    "geometry",
    "gradients",
    "kernels",
    "runs",
    "searching",
    "spaces",
    "studies",
    "tables",
    "training",
    "trust",
)
"""Imported when they are first used, too: `nasight.data.load("digits")` needs no import of its own."""

__all__ = [
    "Answer",
    "Architecture",
    "Choice",
    "ExponentiatedGradient",
    "FeatureMapSelector",
    "Method",
    "MirrorDescent",
    "Model",
    "OwnParts",
    "RequestError",
    "Run",
    "RunError",
    "Space",
    "__version__",
    "explain",
    "find",
    "load_model",
    "rank",
    "register",
    "reproduce",
    "resume",
    "resume_find",
    "search",
    "select",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"nasight.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'nasight' has no attribute {name!r}")
    found = getattr(import_module(f"nasight.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
