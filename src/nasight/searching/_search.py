"""`search` and `resume`: what a caller asks for becomes an engine and a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from torch import nn

from nasight.arguments import typed
from nasight.compute import check_precision, choose_device, current_ranks, resumed_device
from nasight.data import Dataset, holds_photos, load_at, with_label
from nasight.errors import RequestError
from nasight.options import SearchOptions, takes
from nasight.own import OwnParts, own_parts
from nasight.reproducible import torch_threads
from nasight.runs import DataRecord, RunFolder, same_data
from nasight.searching._amounts import tell_amounts, tell_protocol
from nasight.searching._constraint import check_limit
from nasight.searching._engine import Engine
from nasight.searching._lengthen import lengthen
from nasight.searching._loop import run_search
from nasight.searching._progress import Progress
from nasight.searching._published import published_for
from nasight.searching._run import Run
from nasight.searching._settings import CHANGED, SearchSettings, checked, resolve
from nasight.searching._track import check_track
from nasight.searching.methods import Method, method_row
from nasight.spaces import DEFAULT, ModuleSpace, Space, family_of, search_options
from nasight.spaces import load as load_space

DEFAULT_METHOD = "gaea-darts"


@typed
@takes(SearchOptions)
def search(
    space: str | Space | nn.Module | Callable[[], nn.Module] = DEFAULT,
    method: str | Method = DEFAULT_METHOD,
    data: Any = "digits",
    *,
    objective: str | None = None,
    out: str | Path,
    preset: str = "small",
    data_folder: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    track: str | None = None,
    **settings: Unpack[SearchOptions],
) -> Run:
    """Find an architecture with one shared-weights network.

    Parameters
    ----------
    space : a name (`nasight.spaces.names()`), a `Space`, or an `nn.Module` (or a function that makes one) with
        `Choice`s in it.
    method : a row of the method table (`nasight.searching.METHODS`), or its name.
    data : a name, a file, a folder, arrays `(x, y)` or a `Dataset`; see `nasight.data.load`.
    objective : "erm", "bilevel", ...; by default the one the method was published with on such a space.
    out : the run folder.
    preset : "tiny", "small", "medium", "paper" or "imagenet": size, amount of data and epochs together.
    data_folder : the folder of the data sets that have names.
    overwrite : replace a run that is in `out`.
    progress : told of every step and epoch.
    track : "tensorboard" writes event files into the folder `tensorboard` of the run, an epoch at a time.
    settings : any setting of `SearchOptions`, such as `epochs=20`, `seed=1`, `size={"channels": 8}`.

    Examples
    --------
    >>> run = search(data="digits", preset="tiny", epochs=1, out=tmp / "run")
    >>> run.architecture in run.space
    True
    """
    check_track(track)
    row = method_row(method)
    given: dict[str, Any] = dict(settings)
    own = own_parts(given)
    if given.pop("top", None) is not None:
        raise RequestError(f"top is for methods without training, not for {row.name!r}")
    none = given.pop("none", None)
    published = published_for(row.name, family_of(space), preset)
    declared: Mapping[str, Any] = {} if published is None else published.settings
    none = declared.get("none") if none is None else none
    asked = {**declared.get("space_options", {}), **(given.pop("space_options", None) or {})}
    found, name, options = chosen_space(space, asked, none=none)
    ranks = current_ranks()
    with ranks.together():
        data = with_label(data, given.pop("label", None), given.pop("task", None))
        dataset = _read(data, data_folder, found.photo_pixels.get(preset), given)
        named = {key: value for key, value in given.items() if value is not None}
        resolved = resolve(
            row,
            found,
            name=name,
            space_options=options,
            data=data if isinstance(data, str) else dataset.origin or dataset.name,
            objective=objective,
            preset=preset,
            **{"slices": ranks.size, **named},
        )
    same_data(ranks, dataset)
    if ranks.first:
        tell_amounts(resolved, dataset, asked=bool({"examples", "share"} & named.keys()))
        tell_protocol(resolved, found)
    with torch_threads(resolved.threads):
        with ranks.together():
            engine = Engine(resolved, found, dataset, row, own, ranks)
        record = DataRecord.of(dataset, engine.dataset.inputs).to_dict()
        about = {"settings": resolved.model_dump(), "data": record, **own.about()}
        folder = RunFolder(out)

        def begin() -> None:
            nonlocal folder
            check_limit(engine)
            # It holds the lock of the run, so it is the one that writes.
            folder = RunFolder.create(out, kind="search", about=about, overwrite=overwrite, code=[name])

        ranks.of_first(begin)
        return run_search(engine, folder, progress, track)


def _read(data: Any, folder: str | Path | None, pixels: int | None, given: dict[str, Any]) -> Dataset:
    """The data set with the random changes that are asked for; the settings get the resolution at which photos are."""
    photos, asked = holds_photos(data), given.get("augment")
    # Photos are decoded at the resolution; other images are shrunk to it by the engine.
    side = given.get("resolution") if photos else None
    dataset = load_at(pixels, data, folder=folder, resolution=side, augment=asked)
    if photos:
        given["resolution"] = dataset.reading.get("resolution")
    if isinstance(asked, str):
        del given["augment"]
    return dataset


def chosen_space(
    space: str | Space | nn.Module | Callable[[], nn.Module], options: Mapping[str, Any] | None, *, none: bool | None
) -> tuple[Space, str, dict[str, Any]]:
    """The space to search, and the name and options with which a run finds it again.

    Options that are not given are those the space declares.
    """
    if not isinstance(space, str):
        found = load_space(space)
        return found, "module" if isinstance(found, ModuleSpace) else found.name, found.options
    given = {**dict(options or {}), **({} if none is None else {"none": none})}
    asked = {**search_options(space), **given}
    return load_space(space, **asked), space, asked


def resume(
    path: str | Path,
    *,
    space: str | Space | nn.Module | Callable[[], nn.Module] | None = None,
    method: Method | None = None,
    data: Any = None,
    own: OwnParts | None = None,
    data_folder: str | Path | None = None,
    progress: Progress | None = None,
    track: str | None = None,
    lr: float | None = None,
    epochs: int | None = None,
    device: str | None = None,
) -> Run:
    """Resume an interrupted search; the result is that of a search that was never interrupted.

    Under `max_latency` the times of the end are measured anew, so there the pick may differ.

    Parameters
    ----------
    path : the run folder.
    space, method, data : those of a search over a user's own module, method or arrays, which a folder cannot keep.
    own : the loss, metric, optimizer and augmentation of a search with functions of a user's own.
    data_folder, progress : as in `search`.
    track : as in `search`; the epochs before the resume are tracked too.
    lr : another learning rate from here on, for a search that diverged; run.json keeps from where on.
    epochs : more epochs for a search that has ended, along the cosine of the new length.
    device : where it is resumed; by default where it started. On another kind of device the random numbers are the
        same, but rounding differs.
    """
    check_track(track)
    given = space if space is None or isinstance(space, str) else load_space(space)
    run = Run(path, space=given, method=method)
    ranks = current_ranks()
    if run.settings.edition < CHANGED.get(run.settings.method, 1) and (epochs is not None or not run.finished):
        raise RequestError(
            f"the search in {run.path} was begun with the {run.settings.method!r} of an earlier version, which differs "
            "from this one: begin it anew"
        )
    if epochs is not None:
        ranks.of_first(partial(lengthen, run, epochs))
        run = Run(path, space=run.space, method=run.method)
    if run.finished:
        return run
    with ranks.together():
        dataset = run.load_data(data, data_folder=data_folder)
    if lr is not None and lr != run.settings.lr:
        ranks.of_first(partial(_set_rate, run, lr))
        run = Run(path, space=run.sendable_space if space is None else run.space, method=run.method)
    with ranks.together():
        settings, note = _on_device(run.settings, device)
        own = (own or OwnParts()).again(run.folder.about, f"the search in {run.path}")
    same_data(ranks, dataset)
    with torch_threads(settings.threads):
        with ranks.together():
            engine = Engine(settings, run.space, dataset, run.method, own, ranks)
        return run_search(engine, run.folder, progress, track, note)


def _on_device(settings: SearchSettings, device: str | None) -> tuple[SearchSettings, str | None]:
    """Settings for another device, or as they are, and what to say of the change; None if nothing."""
    chosen, note = resumed_device(settings.device, device)
    check_precision(settings.precision, choose_device(chosen))
    return settings.model_copy(update={"device": chosen}), note


def _set_rate(run: Run, lr: float) -> None:
    """Give the run another learning rate from its last checkpoint on."""
    changed = checked({**run.settings.model_dump(), "lr": lr, "lr_min": min(lr, run.settings.lr_min)})
    with run.folder.writing():
        about, state = run.folder.about, run.folder.load()
        where = {"epoch": 0, "step": 0} if state is None else {"epoch": state["epoch"], "step": state["step"]}
        changes = [*about.get("changes", []), {**where, "lr": [run.settings.lr, lr]}]
        run.folder.amend({**about, "settings": changed.model_dump(), "changes": changes})
