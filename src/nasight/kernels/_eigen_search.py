"""Eigen-NAS, and KNAS before it: score many, keep k, pick by validation (EigenNAS, Section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nasight.architecture import Architecture
from nasight.data import Dataset
from nasight.errors import RequestError, RunError
from nasight.kernels._scored import Scores
from nasight.kernels._scoring import Progress, score
from nasight.spaces import Space
from nasight.spaces import load as load_space

TOP = 20
Evaluate = Callable[[list[str]], Iterable[float]]
"""From the texts of the architectures that were kept to their validation accuracies, in percent."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An architecture that was kept, and what it came to."""

    architecture: str
    score: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Found:
    """The best by validation among the best by score."""

    architecture: str
    accuracy: float
    candidates: list[Candidate]
    scored: int
    forms: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def eigen_search(
    space: Space | str,
    data: Dataset | str | Path | tuple[Any, ...],
    evaluate: Evaluate,
    *,
    metric: str = "eigen",
    sample: int | None = 1000,
    architectures: Iterable[Architecture | str] | None = None,
    top: int = TOP,
    seed: int = 0,
    out: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> Found:
    """Score a sample (or the architectures given) by `metric`, keep the `top`, return the best of them.

    `evaluate` gets the architectures kept and gives their validation accuracies: a short training, or a table.
    `how` are settings of `score`: size, batch, resolution, space_options, data_folder.
    """
    where = load_space(space, **(how.get("space_options") or {})) if isinstance(space, str) else space
    scores = score(
        space,
        [metric],
        data,
        architectures=architectures,
        sample=None if architectures is not None else sample,
        seed=seed,
        out=out,
        executor=executor,
        workers=workers,
        progress=progress,
        **how,
    )
    kept = best_forms(where, scores, metric, top)
    accuracies = list(evaluate([text for text, _ in kept]))
    candidates = [Candidate(text, value, a) for (text, value), a in zip(kept, accuracies, strict=True)]
    # The better score decides between equal accuracies: candidates are in its order.
    best = max(candidates, key=lambda c: c.accuracy)
    return Found(best.architecture, best.accuracy, candidates, len(scores.architectures), scores.forms)


def best_forms(space: Space, scores: Scores, metric: str, number: int) -> list[tuple[str, float]]:
    """The best architectures by a metric, one of each form, without those that have no score."""
    if number < 1:
        raise RequestError(f"at least 1 architecture must be kept, got {number}")
    found: dict[str, tuple[str, float]] = {}
    for i in scores.order(metric):
        text = scores.architectures[i]
        if metric not in scores.failed.get(text, {}):
            found.setdefault(space.canonical(space.parse(text)), (text, scores.values[metric][i]))
        if len(found) == number:
            break
    if not found:
        raise RunError(f"none of {len(scores.architectures)} architectures has a score by {metric!r}; sample more")
    return list(found.values())
