"""Short trainings of candidates that a search left open."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from nasight.data import Dataset
from nasight.searching import Run
from nasight.spaces import Space
from nasight.training import Summary, train_seeds

Counter = Callable[[int, int], None]


def retrain(
    run: Run,
    texts: Sequence[str],
    dataset: Dataset,
    *,
    preset: str = "tiny",
    epochs: int | None = None,
    seeds: int = 1,
    progress: Counter | None = None,
    device: str = "auto",
) -> list[Summary]:
    """Each architecture after a short training, judged by held-out training examples and not by the test part.

    Trainings are kept in RUN/resolve: the same one is not done twice.

    Parameters
    ----------
    run : the search that the architectures come from; its space builds them.
    texts : the architectures, as their space writes them.
    dataset : what they are trained on.
    preset, epochs, seeds : how they are trained.
    progress : called with how many are trained and how many there are.
    device : where they are trained.
    """
    settings: dict[str, Any] = {"validation": 0.2} | ({} if epochs is None else {"epochs": epochs})
    found = []
    for text in texts:
        out = run.path / "resolve" / hashlib.sha256(text.encode()).hexdigest()[:8]
        found.append(
            train_seeds(
                sendable_space(run),
                text,
                dataset,
                seeds=range(seeds),
                preset=preset,
                out=out,
                device=device,
                **settings,
            )
        )
        if progress is not None:
            progress(len(found), len(texts))
    return found


def sendable_space(run: Run) -> Space | str:
    """The space of a run as other processes can have it: one from a file goes by its name."""
    return run.sendable_space


def resolved(run: Run, candidates: Sequence[str], dataset: Dataset, **settings: Any) -> list[dict[str, Any]]:
    """The candidates after a short training, best first; the first of `candidates` is the one that was found.

    `settings` are those of `retrain`.
    """
    short = retrain(run, candidates, dataset, **settings)
    rows = [
        {"architecture": text, "accuracy": each.mean, "spread": each.spread, "found": i == 0}
        for i, (text, each) in enumerate(zip(candidates, short, strict=True))
    ]
    return sorted(rows, key=lambda row: -row["accuracy"])
