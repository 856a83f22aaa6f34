"""Eigen-NAS, and KNAS before it: score many, keep k, pick by validation (EigenNAS, Section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nasight.architecture import Architecture
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
class EigenSearch:
    """The best by validation among the best by score."""

    architecture: str
    accuracy: float
    candidates: list[Candidate]
    scored: int
    forms: int

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return asdict(self)


def eigen_search(
    space: Space | str,
    data: Any,
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
) -> EigenSearch:
    """Score many architectures without training, keep the best of them, and give the best of these by validation.

    Parameters
    ----------
    space : a space or its name.
    data : what networks are scored on; see `nasight.data.load`.
    evaluate : gets the texts of the architectures that were kept and gives their validation accuracies, in percent: by
        a short training, or from a table.
    metric : a name of `SCORES`.
    sample : how many architectures are drawn and scored.
    architectures : these are scored instead of a sample.
    top : at most this many are kept, one of each form.
    seed, out, executor, workers, progress : as in `score`.
    how : other settings of `score`: size, batch, resolution, space_options, data_folder.

    >>> found = eigen_search("mlp", "digits", lambda texts: [float(len(t)) for t in texts], sample=4, top=2, workers=1)
    >>> found.scored, len(found.candidates)
    (4, 2)
    """
    loaded = load_space(space, **(how.get("space_options") or {})) if isinstance(space, str) else space
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
    kept = best_forms(loaded, scores, metric, top)
    accuracies = list(evaluate([text for text, _ in kept]))
    candidates = [Candidate(text, value, a) for (text, value), a in zip(kept, accuracies, strict=True)]
    # The better score decides between equal accuracies: candidates are in its order.
    best = max(candidates, key=lambda c: c.accuracy)
    return EigenSearch(best.architecture, best.accuracy, candidates, len(scores.architectures), scores.forms)


def best_forms(space: Space, scores: Scores, metric: str, number: int) -> list[tuple[str, float]]:
    """The best architectures by a metric and their scores, one of each form, without those that have no score.

    Parameters
    ----------
    space : the space of the architectures.
    scores : their scores.
    metric : the metric by which they are compared.
    number : at most this many are given.

    >>> from nasight.kernels import score
    >>> from nasight.spaces.mlp import Mlp
    >>> found = score(Mlp(2), "params", "digits", sample=5, workers=1)
    >>> len(best_forms(Mlp(2), found, "params", 3))
    3
    """
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
