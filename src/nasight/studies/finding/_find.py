"""`find`: the time there is in, a trained network with proof out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import nn

from nasight.arguments import typed
from nasight.compute import check_precision, choose_device, cores, is_device, is_remote, led_by_first, resumed_device
from nasight.data import Dataset, SentData, augment_text, load_at, read_augment, with_label
from nasight.data import load as load_data
from nasight.errors import RequestError
from nasight.own import OwnParts
from nasight.runs import DataRecord, RunFolder, data_of, named_again
from nasight.searching import chosen_space, method_row, read_count, read_milliseconds
from nasight.spaces import FixedSpace, Space
from nasight.spaces import load as load_space
from nasight.studies._folder_name import folder_name
from nasight.studies.finding._answer import Answer
from nasight.studies.finding._budget import Budget, read_budget
from nasight.studies.finding._context import Context, Event
from nasight.studies.finding._finder import has_ended, run_find
from nasight.studies.finding._journal import Journal
from nasight.studies.finding._names import OWN, SPACE
from nasight.studies.finding._page import find_page
from nasight.studies.finding._settings import EDITION, FindSettings, read_shares, with_test_part

DEFAULT_SPACES = ("convnet", "mlp")
"""For images, and for vectors."""
LONG = 1_200.0
"""A budget of so many seconds has time for searches of the size `small`."""


@typed
@led_by_first
def find(
    data: Any = "digits",
    *,
    budget: str | float | None = None,
    out: str | Path | None = None,
    label: str | None = None,
    task: str | None = None,
    space: str | Space | nn.Module | Callable[[], nn.Module] | None = None,
    baseline: str | Callable[[], nn.Module] | None = None,
    target: str | None = None,
    shares: str | Mapping[str, float] | None = None,
    max_params: int | str | None = None,
    max_latency: float | str | None = None,
    trainings: int | None = None,
    epochs: int | None = None,
    method: str | None = None,
    seed: int = 0,
    level: float = 0.95,
    workers: int | None = None,
    executor: Executor | None = None,
    data_folder: str | Path | None = None,
    overwrite: bool = False,
    progress: Event | None = None,
    began: float | None = None,
    device: str = "auto",
    precision: str = "32",
    class_weights: str | None = None,
    loss: Callable[..., Any] | None = None,
    metric: str | Callable[..., Any] | None = None,
    optimizer: Callable[..., Any] | None = None,
    augment: str | Callable[..., Any] | None = None,
) -> Answer:
    """Find an architecture for this data within a budget, trained, and compared with a baseline.

    Parameters
    ----------
    data : a name, a file, a folder, arrays `(x, y)`, a frame, a torch or a nasight `Dataset`; see `nasight.data.load`.
    budget : a time such as "90s", "30m" or "8h", or seconds.
    out : the folder of the find; by default runs/find-DATA-SEED.
    label, task : of a table, the column that is asked for; "classes", "labels" or "numbers". See `nasight.data.load`.
    space : a space by name, a `Space`, or a model with `Choice`s; by default convnet for images and mlp for vectors.
    baseline : what has to be beaten: FILE.py:NAME, or a function that makes a model. The space's reference
        architecture and a plain network run along in any case; without a baseline of your own the best of them is it
        (of a model of your own: its first options).
    target : the preset of the training that is meant in the end: limits are counted at its size. Where the budget does
        not reach it, more candidates have shorter trainings, and the answer says what decided.
    shares : of the budget, such as "race=0.5,recipe=0.05", for "recipe", "propose", "race" and "answer"; parts that are
        not named divide the rest.
    max_params, max_latency : limits that hold for every candidate, such as "300k" and milliseconds per example.
    trainings : a budget in trainings in place of time, so that no clock plays a role.
    epochs : of the trainings that answer, with a budget in trainings.
    method : of the proposing searches; GAEA-PC-DARTS, or GAEA-DARTS where a space has no partial channels.
    seed : everything random follows from it.
    level : of the intervals.
    workers : processes that train at once; as many as cores.
    executor : where trainings go in place of own processes. In ranks that torchrun started, all of them train, and the
        first one plans and writes.
    data_folder : the folder of the data sets that have names.
    overwrite : replace a find that is in `out`.
    progress : called with the name of an event ("note", "plan", "stage", "proposer", "training", "rung", "leaders",
        "answer") and its values.
    began : when the time of the budget began, by `time.monotonic()`; by default with this call.
    device : where networks are trained and searched: "auto", "cpu", "cuda", "cuda:N" or "mps". On a device one process
        works by default.
    precision : "32", "bf16" or "16": of the products in trainings and searches; scores are computed in 32 bits.
    class_weights : "balanced" lets every class count alike in the loss.
    loss, metric, optimizer, augment : functions of your own; see `nasight.OwnParts`. `augment` may also be words
        for random changes of images, such as "shift,flip" (by default those that help the baseline), and `metric`
        a name such as "balanced accuracy". What cannot be sent to other processes lets the find run in this one.
    """
    began = time.monotonic() if began is None else began
    own = OwnParts(loss, metric, optimizer, None if isinstance(augment, str) else augment)
    limit = read_budget(budget, trainings)
    _check_numbers(workers, level, epochs, limit)
    if limit.more:
        raise RequestError("a budget with + is for a find that is there: nasight.resume_find(out, budget='+20m')")
    data = with_label(data, label, task)
    loaded, found, name, options = data_and_space(data, space, target, data_folder)
    dataset, sent = with_test_part(loaded), _sent(loaded, executor)
    if target is not None and found.train_size(target) is None:
        known = ", ".join(found.train_settings)
        raise RequestError(f"space {found.name!r} has no preset {target!r} to train for later, only {known}")
    row = method_row(method or default_method(found))
    chosen = choose_device(device)
    check_precision(precision, chosen)
    own_model = own_baseline(baseline, dataset)
    if precision != "32" and row.objectives[0].differences:
        raise RequestError(f"method {row.name!r} takes differences of gradients, which need precision 32")
    settings = FindSettings(
        space=name,
        space_options=options,
        data=data if isinstance(data, str) else dataset.origin or dataset.name,
        method=row.name,
        seed=seed,
        size=found.train_size("tiny") or found.size(),
        search_size=search_size(found, limit),
        target=target,
        baseline=baseline if isinstance(baseline, str) else None if baseline is None else "given",
        max_params=read_count(max_params) if isinstance(max_params, str) else max_params,
        max_latency=read_milliseconds(max_latency) if isinstance(max_latency, str) else max_latency,
        level=level,
        workers=workers or getattr(executor, "workers", None) or (1 if is_device(chosen) else cores()),
        batch_size=32 if len(dataset.train_y) < 4_000 else 64,
        trainings=limit.trainings,
        epochs=epochs,
        device=str(chosen),
        augment=checked_augment(augment, dataset) if isinstance(augment, str) else None,
        class_weights=class_weights,
        precision=precision,
        shares=read_shares(shares),
        edition=EDITION,
    )
    record = DataRecord.of(loaded).to_dict()
    about = {"settings": asdict(settings), "data": record, "budget": asdict(limit), **own.about()}
    code = [name, settings.baseline]
    place = out or Path("runs") / f"find-{folder_name(data if isinstance(data, str) else dataset.name)}-{seed}"
    folder = RunFolder.create(place, kind="find", about=about, overwrite=overwrite, code=code)
    journal = Journal(folder.path)
    journal.put("budget 0", asdict(limit))
    try:
        context = Context(folder, journal, settings, found, dataset, own_model, executor, progress, own, sent, began)
        return run_find(context)
    except RequestError:
        if not any(key.startswith("training ") for key in journal):
            # Nothing was trained: there is nothing to resume.
            folder.discard()
        raise


def data_and_space(
    data: Any, space: Any, target: str | None, folder: str | Path | None
) -> tuple[Dataset, Space, str, dict[str, Any]]:
    """The data, and the space with its name and options; photos have the pixels of the target, where it has some."""
    if space is None:
        loaded = load_data(data, folder=folder)
        return loaded, *chosen_space(DEFAULT_SPACES[len(loaded.inputs) != 3], None, none=None)
    found, name, options = chosen_space(space, None, none=None)
    return load_at(found.photo_pixels.get(target or ""), data, folder=folder), found, name, options


def own_baseline(given: str | Callable[[], nn.Module] | None, data: Dataset) -> FixedSpace | None:
    """The user's own model that has to be beaten, made once to see that it takes this data; None: there is none."""
    if given is None:
        return None
    found = FixedSpace.from_file(given) if isinstance(given, str) else FixedSpace(given)
    found.network(found.reference, data.inputs, data.n_classes)
    return found


def _check_numbers(workers: int | None, level: float, epochs: int | None, limit: Budget) -> None:
    if workers is not None and workers < 1:
        raise RequestError(f"there must be at least 1 worker, got {workers}")
    if not 0 < level < 1:
        raise RequestError(f"the level of an interval must be between 0 and 1, got {level:g}")
    if epochs is not None and epochs < 1:
        raise RequestError(f"there must be at least 1 epoch, got {epochs}")
    if epochs is not None and limit.trainings is None:
        raise RequestError("epochs go with a budget in trainings: a budget of time decides how long trainings are")


def search_size(space: Space, limit: Budget) -> dict[str, int]:
    """The size of the proposing searches."""
    preset = "small" if limit.seconds is None or limit.seconds >= LONG else "tiny"
    return dict(space.search_sizes.get(preset, {}))


def default_method(space: Space) -> str:
    """The method of the proposing searches where none is named."""
    return "gaea-pc-darts" if space.partial_channels and space.edge_weights else "gaea-darts"


def checked_augment(text: str, data: Dataset) -> str:
    """The words for random changes, with their pixels."""
    return augment_text(read_augment(text, data.inputs))


@led_by_first
def resume_find(
    out: str | Path,
    *,
    budget: str | float | None = None,
    trainings: int | None = None,
    space: str | Space | nn.Module | Callable[[], nn.Module] | None = None,
    baseline: str | Callable[[], nn.Module] | None = None,
    data: Any = None,
    workers: int | None = None,
    executor: Executor | None = None,
    data_folder: str | Path | None = None,
    progress: Event | None = None,
    own: OwnParts | None = None,
    device: str | None = None,
) -> Answer:
    """Resume a find that was interrupted, or give a find more time.

    Code in a file is named again, as "FILE.py:NAME": a folder alone does not make it run.

    Parameters
    ----------
    out : the folder of the find.
    budget : more time, such as "+20m", for a find that was interrupted or has ended.
    trainings : more trainings, in place of time.
    space, baseline, data : a model, a network or arrays of your own, as `find` had them.
    workers : processes that train at once; as many as before.
    executor : where trainings go in place of own processes.
    data_folder : the folder of the data sets that have names.
    progress : called with the name of an event and its values, as in `find`.
    own : the functions of your own that the find began with.
    device : another device than the one it began on.
    """
    began = time.monotonic()
    if workers is not None and workers < 1:
        raise RequestError(f"there must be at least 1 worker, got {workers}")
    folder = RunFolder.open(out, kind="find")
    try:
        settings = FindSettings(**folder.about["settings"])
    except (KeyError, TypeError) as error:
        raise RequestError(f"{folder.path}/run.json is damaged: {error}") from error
    journal, more = Journal(folder.path), None
    if "budget 0" not in journal and isinstance(first := folder.about.get("budget"), Mapping):
        journal.put("budget 0", dict(first))  # a kill came between the folder and the first line of its journal
    if budget is not None or trainings is not None:
        more = read_budget(budget, trainings)
        if trainings is None and not more.more:
            raise RequestError(
                f"there is a find in {folder.path} already: to give it more time, write --budget +{budget}"
            )
        more = replace(more, more=True)
    elif folder.result is not None and has_ended(folder.result, journal):
        return _read_again(folder, _own_space(folder.result, space, baseline))
    if settings.edition < EDITION and (settings.target or settings.max_params or settings.max_latency):
        raise RequestError(
            f"the find in {folder.path} was begun by an earlier version, which decided otherwise where there is a "
            "target or a limit: begin it anew"
        )
    settings = _on_device(settings, device, progress)
    settings = replace(settings, workers=workers or getattr(executor, "workers", None) or settings.workers)
    if space is None and settings.space == "module":
        raise RequestError(f"the find in {folder.path} is of a model of your own: give it again as space=")
    about = folder.about
    if space is None or isinstance(space, str):
        settings = replace(settings, space=named_again(folder.path, about, settings.space, space))
    if settings.baseline is not None and (baseline is None or isinstance(baseline, str)):
        kept = named_again(folder.path, about, settings.baseline, baseline, flag="--baseline")
        settings = replace(settings, baseline=kept)
    by_name = space is None or isinstance(space, str)
    found = load_space(settings.space, **settings.space_options) if by_name else load_space(space)  # type: ignore[arg-type]
    loaded = data_of(folder, settings.data, data, data_folder=data_folder)
    dataset, sent = with_test_part(loaded), _sent(loaded, executor)
    own = (own or OwnParts()).again(about, f"the find in {folder.path}")
    own_model = own_baseline(settings.baseline if baseline is None or isinstance(baseline, str) else baseline, dataset)
    context = Context(folder, journal, settings, found, dataset, own_model, executor, progress, own, sent, began)
    return run_find(context, more)


def _read_again(folder: RunFolder, space: Space | None) -> Answer:
    """The answer of a find that has ended; its page is written again if a kill came before it was."""
    answer, page = Answer(folder.path, space=space), folder.path / "report.html"
    if not page.is_file() or page.stat().st_mtime < (folder.path / "result.json").stat().st_mtime:
        find_page(answer, space=space)
    return answer


def _own_space(result: Mapping[str, Any], space: Any, baseline: Any) -> Space | None:
    """A model of one's own that the answer takes, where it was given again."""
    given = {SPACE: space, OWN: baseline}.get(str(result["taken_from"]))
    if given is None or isinstance(given, str):
        return None
    return load_space(given) if result["taken_from"] == SPACE else FixedSpace(given)


def _on_device(settings: FindSettings, device: str | None, progress: Event | None) -> FindSettings:
    """The settings for where the find goes on; another kind of device is told."""
    chosen, note = resumed_device(settings.device, device)
    check_precision(settings.precision, choose_device(chosen))
    if note is not None and progress is not None:
        progress("note", {"text": note})
    return replace(settings, device=chosen)


def _sent(data: Dataset, executor: Executor | None) -> SentData | None:
    return SentData.of(data, with_test_part) if is_remote(executor) else None
