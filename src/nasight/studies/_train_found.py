"""What a search or a find found, trained from scratch with several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Unpack

from nasight.notes import note
from nasight.options import TrainOptions, takes
from nasight.studies._train import Trainable, trainable
from nasight.training import EpochRow, Summary, moved, train_seeds


@takes(TrainOptions)
def train_found(
    found: Trainable | str | Path,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    executor: Executor | None = None,
    workers: int | None = None,
    threads: int | None = None,
    slices: int | None = None,
    progress: Callable[[int, EpochRow], None] | None = None,
    device: str = "auto",
    **settings: Unpack[TrainOptions],
) -> Summary:
    """Train what was found once for each seed: all accuracies, their mean and their spread.

    The same call resumes what an interrupt left unfinished, and reads the seeds that are finished. A note says so where
    a training goes on on another kind of device (see `nasight.data.listening`).

    Parameters
    ----------
    found : the folder of a finished search or find, whose trainings go to FOLDER/train; or what `trainable` gives, for
        other data, another preset, another point of a front or a named architecture.
    seeds : one training for each.
    executor : where the trainings run; processes of this machine by default.
    workers : seeds trained at once, where no executor is given; as many as cores by default, on a device one.
    threads : of each training; by default the workers divide torch's threads between them.
    slices : parts of every batch, of which batch norm sees one at a time; one per rank by default.
    progress : called with the seed and the row of every epoch.
    device : where networks are trained: "auto", "cpu", "cuda", "cuda:N" or "mps".
    settings : any setting of `nasight.training.TrainOptions`, such as `epochs=20` or `size={"channels": 8}`; those not
        given are what was found along with the architecture, or follow from the preset.

    >>> import nasight
    >>> run = nasight.search("mlp", data="digits", preset="tiny", epochs=1, examples=100, out=tmp / "search")
    >>> summary = train_found(run.path, seeds=[0], epochs=1)
    >>> summary.architecture == run.result["architecture"], summary.epochs
    (True, 1)
    """
    what = (found if isinstance(found, Trainable) else trainable(found)).changed(**settings)
    for place in sorted(what.out.glob("*/seed-*")):
        if (text := moved(place, device)) is not None:
            note(f"{place.name}: {text}")
    return train_seeds(
        what.space,
        what.arch,
        what.data,
        seeds=seeds,
        preset=what.preset,
        out=what.out,
        executor=executor,
        workers=workers,
        threads=threads,
        slices=slices,
        progress=progress,
        device=device,
        **what.settings,
    )
