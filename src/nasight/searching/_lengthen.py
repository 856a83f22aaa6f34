"""More epochs for a search that has ended."""

from __future__ import annotations

import math
import shutil
from typing import Any

from nasight.data import note
from nasight.errors import RequestError
from nasight.runs import write_json
from nasight.searching._run import Run
from nasight.searching._settings import SearchSettings, checked


def lengthen(run: Run, epochs: int) -> None:
    """Give a finished search more epochs, so that it is unfinished again; its old result is kept beside.

    The epochs that are added follow the cosine of the new length: the learning rate rises again to where a search of
    that length would be, and falls to its end. So the result is not that of a search that was that long from the start.
    """
    with run.folder.writing():
        # What was read before the lock may have been changed by whoever held it.
        _make_longer(Run(run.path, space=run.space, method=run.method), epochs)


def _make_longer(run: Run, epochs: int) -> None:
    s = run.settings
    if not run.finished:
        raise RequestError(f"the search in {run.path} has not ended: resume it first, without --epochs")
    if epochs <= s.epochs:
        raise RequestError(f"the search in {run.path} has {s.epochs} epochs already, got --epochs {epochs}")
    if len(run.method.schedule.stages) > 1:
        raise RequestError(f"method {s.method!r} has stages that are cut for {s.epochs} epochs: begin a longer search")
    if run.method.objective(s.objective).keeps_any:
        raise RequestError(
            f"objective {s.objective!r} has drawn the iterate it returns from {s.epochs} epochs: begin a longer search"
        )
    if run.folder.load() is None:
        raise RequestError(f"{run.path} has no checkpoint to go on from")
    new = _settings(s, epochs)
    about = run.folder.about
    about["settings"] = new.model_dump()
    about["lengthened"] = [*about.get("lengthened", []), {"from": s.epochs, "to": epochs}]
    # First the result goes: a kill here leaves a search that ends at once when it is resumed, and can be lengthened.
    shutil.move(run.path / "result.json", run.path / f"result-{s.epochs}.json")
    write_json(run.path / "run.json", about)
    note(schedule_text(s, new))


def _settings(s: SearchSettings, epochs: int) -> SearchSettings:
    values: dict[str, Any] = s.model_dump()
    longer = round(s.schedule_epochs / s.epochs * epochs)
    return checked({**values, "epochs": epochs, "schedule_epochs": longer})


def schedule_text(old: SearchSettings, new: SearchSettings) -> str:
    """A sentence on the learning rate of the epochs that are added."""
    last, first, end = (_rate(s, at) for s, at in ((old, old.epochs - 1), (new, old.epochs), (new, new.epochs - 1)))
    return (
        f"epochs {old.epochs + 1} to {new.epochs} follow the cosine of {new.epochs} epochs: the learning rate, "
        f"{last:.3g} at last, goes on from {first:.3g} to {end:.3g}; that of the architecture stays as it was"
    )


def _rate(s: SearchSettings, epoch: int) -> float:
    return s.lr_min + 0.5 * (s.lr - s.lr_min) * (1 + math.cos(math.pi * epoch / s.schedule_epochs))
