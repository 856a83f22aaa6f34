"""What a finished run can be measured with again: its data, the examples it held out, short trainings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from nasight.data import Dataset
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.search import METHODS, Run
from nasight.search._streams import Streams, resized
from nasight.training import Summary, train_seeds
from nasight.trust import first_examples


def same_data(run: Run, data_folder: str | Path | None) -> Dataset:
    """The data that the run was searched on; refused if it is not there or is not the same."""
    words = run.settings.data
    try:
        dataset = load_data(words, folder=data_folder)
    except RequestError as error:
        raise RequestError(f"the data of {run.path} cannot be loaded again ({error}); name it with --data") from error
    if dataset.fingerprint != run.folder.about["data"]["fingerprint"]:
        raise RequestError(
            f"{words!r} is not what {run.path} was searched on: its content has changed; if that is meant, "
            f"say --data {words}"
        )
    return dataset


def held_out(run: Run, dataset: Dataset, examples: int | None) -> list[tuple[Tensor, Tensor]]:
    """Batches of the examples that no part of the search has learned from."""
    s = run.settings
    streams = Streams(s, resized(dataset, s.resolution), halves=METHODS[s.method].objective(s.objective).halves)
    return first_examples(streams.validation, examples)


def retrain(
    run: Run,
    texts: Sequence[str],
    dataset: Dataset,
    *,
    preset: str,
    epochs: int | None,
    seeds: int,
    progress: Callable[[int, int], None],
) -> list[Summary]:
    """Each architecture after a short training, judged by held-out training examples and not by the test part.

    Trainings are kept in RUN/resolve: the same one is not done twice.
    """
    settings: dict[str, Any] = {"validation": 0.2} | ({} if epochs is None else {"epochs": epochs})
    # A space from a file goes to other processes by its name.
    space = run.settings.space if ".py:" in run.settings.space else run.space
    found = []
    for text in texts:
        out = run.path / "resolve" / hashlib.sha256(text.encode()).hexdigest()[:8]
        found.append(train_seeds(space, text, dataset, seeds=range(seeds), preset=preset, out=out, **settings))
        progress(len(found), len(texts))
    return found
