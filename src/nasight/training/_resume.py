"""A training that was cut off, or that diverged: on from its last checkpoint, by its folder alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from nasight.compute import choose_device
from nasight.errors import RequestError
from nasight.own import OwnParts
from nasight.runs import DataRecord, RunFolder, data_of, named_again
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.training._loop import Job
from nasight.training._result import TrainingResult
from nasight.training._settings import TrainSettings, checked_settings, kept_settings
from nasight.training._train import Progress, run_job


def resume_train(
    folder: str | Path,
    *,
    lr: float | None = None,
    space: Space | str | None = None,
    data: Any = None,
    own: OwnParts | None = None,
    data_folder: str | Path | None = None,
    progress: Progress | None = None,
    device: str = "auto",
) -> TrainingResult:
    """Resume one training; with `lr`, one that diverged goes on from its last checkpoint with that rate.

    The second leaves the folder as it is and goes on in one beside it, FOLDER-lr-RATE, whose run.json says from where
    on; the same call resumes that one too.

    Parameters
    ----------
    folder : the folder of one training: `out` of `train`, or a seed-N that `nasight train` has written.
    lr : another learning rate from the last checkpoint on.
    space : the space, where it is your own code: such code is never run because a folder names it.
    data : the data it was trained on; by default it is loaded again by its name. Other data is refused.
    own : its parts of your own, which a folder does not keep.
    data_folder : the folder of the data sets that have names.
    progress : gets every epoch.
    device : as in `train`.
    """
    run = RunFolder.open(folder, kind="train")
    about, settings = run.about, kept_settings(run)
    file: str | None = None
    if not isinstance(space, Space):
        named = named_again(run.path, about, str(about["space"]), space)
        file = named if ".py:" in named else None
        space = load_space(named, **about.get("space_options", {}))
    dataset = data_of(run, DataRecord.read(run).name, data, data_folder=data_folder)
    parts = (own or OwnParts()).again(about, f"the training in {run.path}")
    arch, where = space.parse(about["architecture"]), str(choose_device(device))
    job = Job(space, arch, dataset, settings, about["seed"], file, parts, where)
    how = {"progress": progress, "threads": about["threads"], "slices": about.get("slices", 1)}
    if lr is None or lr == settings.lr:
        return run_job(job, run.path, **how)
    if parts.optimizer is not None:
        raise RequestError("the optimizer of this training is your own: its learning rate is set there, not by lr")
    if run.result is not None:
        raise RequestError(f"the training in {run.path} has ended; train again with another lr")
    place = run.path.with_name(f"{run.path.name}-lr-{lr:g}")
    changed = replace(job, settings=_with_rate(settings, lr))
    if not (place / "run.json").is_file():
        _copy(run, place, changed, {"lr": [settings.lr, lr]})
    return run_job(changed, place, **how)


def _with_rate(settings: TrainSettings, lr: float) -> TrainSettings:
    values = settings.model_dump()
    return checked_settings({**values, "lr": lr, "lr_min": min(lr, settings.lr_min)})


def _copy(run: RunFolder, place: Path, job: Job, change: dict[str, Any]) -> None:
    """A new run with the last checkpoint of this one."""
    about = run.about
    with run.writing():
        state = run.load()
        if state is None:
            raise RequestError(f"the training in {run.path} has no checkpoint yet; train again with another lr")
        where = {"epoch": state["epoch"], "step": state["step"]}
        kept: dict[str, Any] = {
            key: about[key] for key in ("threads", "slices", "device", "space_options", "judged_once") if key in about
        }
        changes = [*about.get("changes", []), {**where, **change}]
        new = RunFolder.create(place, kind="train", about={**job.about(), **kept, "changes": changes}, code=[job.file])
        with new.writing():
            new.write_history(state["rows"])
            new.save(state, mark=f"{state['epoch']:04d}-{state['step']:06d}")
