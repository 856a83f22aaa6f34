"""`search`: epochs of steps, a row of history each, checkpoints between them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from nasight.arguments import typed
from nasight.compute import Poll, check_precision, choose_device, current_ranks, everywhere, resumed_device
from nasight.data import Dataset, Units, augment_text, holds_photos, load_at, with_label
from nasight.errors import RequestError, RunError
from nasight.options import SearchOptions, takes
from nasight.own import OwnParts, own_parts
from nasight.reproducible import torch_threads
from nasight.runs import DataRecord, RunFolder, same_data, writing
from nasight.searching._agreement import check_agreement, picked_by_first
from nasight.searching._amounts import tell_amounts, tell_protocol
from nasight.searching._constraint import check_limit
from nasight.searching._engine import Engine
from nasight.searching._lengthen import lengthen
from nasight.searching._progress import Progress
from nasight.searching._published import published_for
from nasight.searching._run import Run, check_rows
from nasight.searching._settings import CHANGED, SearchSettings, checked, resolve
from nasight.searching._tally import Diverged
from nasight.searching._track import check_track, tracked
from nasight.searching.methods import Method, method_row
from nasight.spaces import DEFAULT, Group, ModuleSpace, Space, family_of, search_options
from nasight.spaces import load as load_space

CANDIDATES_WHILE_SEARCHING = 10
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
        return _run(engine, folder, progress, track)


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

    With `epochs`, a search that has ended gets more of them, along the cosine of the new length.

    A search over a user's own module, method or arrays needs them again, as `space`, `method` and `data`, and one with
    parts of their own (a loss, a metric, an optimizer, an augmentation) needs those, as `own`. With `track` the epochs
    behind it are tracked too. Under `max_latency` the times of the end are measured anew, so there the pick may differ.
    It goes on on the device that it began on, or on `device`; on another kind of device the random numbers are the
    same, but sums are rounded otherwise. `lr` goes on with another learning rate, for a search that
    diverged; run.json keeps from where on.
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
        ranks.of_first(partial(_lengthen, run, epochs))
        run = Run(path, space=run.space, method=run.method)
    if run.finished:
        return run
    with ranks.together():
        dataset = run.load_data(data, data_folder=data_folder)
    if lr is not None and lr != run.settings.lr:
        ranks.of_first(partial(_set_rate, run, lr))
        run = Run(path, space=run.sendable_space if space is None else run.space, method=run.method)
    with ranks.together():
        settings, note = on_device(run.settings, device)
        own = (own or OwnParts()).again(run.folder.about, f"the search in {run.path}")
    same_data(ranks, dataset)
    with torch_threads(settings.threads):
        with ranks.together():
            engine = Engine(settings, run.space, dataset, run.method, own, ranks)
        return _run(engine, run.folder, progress, track, note)


def _lengthen(run: Run, epochs: int) -> None:
    lengthen(run, epochs)


def on_device(settings: SearchSettings, device: str | None) -> tuple[SearchSettings, str | None]:
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


def _run(engine: Engine, folder: RunFolder, told: Progress | None, track: str | None, note: str | None = None) -> Run:
    ranks = engine.ranks
    progress = tracked(told, track, folder.path, engine.groups) if ranks.first else Progress()
    if note is not None:
        progress.note(note)
    with (
        writing(folder, ranks),
        _stop_requests() as stopping,
        closing(progress),
        _told_how_to_resume(engine, folder),
    ):
        state, poll = ranks.of_first(folder.load), Poll(ranks)
        first_epoch, first_step, seconds = 0, 0, 0.0
        if state is not None:
            with ranks.together():
                engine.load_state(state["engine"])
            first_epoch, first_step, seconds = state["epoch"], state["step"], state["seconds"]
            if first_step:
                engine.set_rate(first_epoch)
        rows = ranks.of_first(partial(folder.resume_history, first_epoch))
        with ranks.together():
            check_rows(rows, engine.space.groups(), folder.path)
        s = engine.settings
        progress.begin(s, engine.length, first_epoch * engine.length + first_step)
        for epoch in range(first_epoch, s.epochs):
            start = time.monotonic() - seconds
            saved = time.monotonic()
            if not first_step:
                engine.set_epoch(epoch)
            for step in range(first_step, engine.length):
                engine.advance(epoch, step)
                last = s.epochs * engine.length
                iterate = epoch * engine.length + step + 1
                if iterate < last and engine.objective.keeps(iterate, last, engine.generator("iterate")):
                    engine.keep()
                progress.step(epoch, step)
                if step + 1 == engine.length:
                    continue
                stop, due = poll(stop=stopping.is_set(), due=time.monotonic() - saved > s.checkpoint_seconds)
                if stop or due:
                    _save(engine, folder, epoch, step + 1, time.monotonic() - start)
                    saved = time.monotonic()
                    _leave_if(stop, folder)
            first_step, seconds = 0, 0.0
            row, moving = _row(engine, epoch, start)
            rows.append(row)
            with ranks.together():
                if ranks.first:
                    folder.append_history(row)
            _save(engine, folder, epoch + 1, 0, 0.0, moving)
            progress.epoch(rows[-1])
            if epoch + 1 < s.epochs:
                _leave_if(bool(ranks.largest(float(stopping.is_set()))[0]), folder)
        return _finish(engine, folder, rows)


@contextmanager
def _told_how_to_resume(engine: Engine, folder: RunFolder) -> Iterator[None]:
    """What diverges is said with the state that is left, and the command that goes on from there."""
    try:
        yield
    except Diverged as error:
        lower = f"nasight search --resume {quote(str(folder.path))} --lr {engine.settings.lr / 10:g}"
        there = (folder.path / "state.json").exists()
        kept = "the checkpoint before it is kept" if there else "there was no checkpoint yet"
        text = f"{error} with lr {engine.settings.lr:g}; {kept}; go on with a lower rate: {lower}"
        raise everywhere(Diverged(text)) from error


def _save(
    engine: Engine, folder: RunFolder, epoch: int, step: int, seconds: float, moving: dict[str, Any] | None = None
) -> None:
    """Keep a checkpoint: of the state that was read already, or of the present one."""
    ranks, moving = engine.ranks, engine.state() if moving is None else moving
    state = {"engine": moving, "epoch": epoch, "step": step, "seconds": seconds}
    tensors = (*moving["supernet"].values(), *moving["params"].values())
    if not all(bool(torch.isfinite(value).all()) for value in tensors):
        # Such a state is never kept: the one before it is what a smaller rate resumes from. All ranks have the same.
        raise everywhere(Diverged(f"a weight became infinite or NaN in epoch {max(epoch - (step == 0), 0)}"))
    with ranks.together():
        if ranks.first:
            folder.save(state, mark=f"{epoch:05d}-{step:06d}")


def _row(engine: Engine, epoch: int, start: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an epoch came to (both splits, entropy, the derived architecture and what discretizing it costs), and the
    state of the search, which comes from a device with the same wait."""
    arch = engine.derive(epoch, candidates=min(CANDIDATES_WHILE_SEARCHING, engine.settings.candidates))
    unusable = engine.space.usable(arch)
    relaxed, discrete = engine.evaluate(None, epoch), None if unusable else engine.evaluate(arch, epoch)
    state = engine.state(relaxed, *([discrete] if discrete else []))
    weights = engine.weights()
    check_agreement(engine)
    seen = {stream: tally.over(engine.ranks) for stream, tally in engine.tallies.items()}
    row: dict[str, Any] = {"epoch": epoch, **seen["weights"].means("train")}
    row |= relaxed.over(engine.ranks).means("valid")
    if seen["architecture"].count:
        row |= seen["architecture"].means("arch")
    if engine.judge_task.units != Units():
        row |= engine.judge_task.units.kept()
    row["discrete_loss"] = row["discrete_accuracy"] = row["drop"] = None
    if discrete is not None:
        row |= discrete.over(engine.ranks).means("discrete")
        row["drop"] = row["valid_accuracy"] - row["discrete_accuracy"]
    each = entropies(weights, engine.groups)
    row |= {
        "entropy": sum(each.values()) / len(each),
        "entropies": each,
        "architecture": engine.space.format(arch),
        "unusable": unusable,
        "weights": {name: value.tolist() for name, value in weights.items()},
        "lr": engine.weight_lr,
        "arch_lr": engine.arch_lr if engine.learns(epoch) else 0.0,
        "seconds": time.monotonic() - start,
    }
    return row, state


def entropies(weights: Mapping[str, Tensor], groups: tuple[Group, ...]) -> dict[str, float]:
    """The entropy, in nats, of the weights of every decision (rows of which one option is chosen)."""
    found = {}
    for group in groups:
        if group.exclusive:
            for name, row in zip(group.rows, group.split(weights[group.name].detach()), strict=True):
                found[name] = float(torch.special.entr(row.double()).sum())
    return found


def _finish(engine: Engine, folder: RunFolder, rows: list[dict[str, Any]]) -> Run:
    """The result: the architecture of the iterate that the objective returns."""
    s, run = engine.settings, Run(folder.path, space=engine.space, method=engine.method)
    engine.return_kept()
    arch = engine.derive(s.epochs, candidates=s.candidates)
    limited: dict[str, Any] = {}
    if s.max_params is not None or s.max_latency is not None:
        # Clocks differ between ranks: the first one measures, and picks for all.
        arch, limited["constraint"] = picked_by_first(engine, arch)
    unusable = engine.space.usable(arch)
    weights = engine.weights()
    each = entropies(weights, engine.groups)
    accuracy, figures = (None, {}) if unusable else engine.judged(arch, s.epochs)
    result = {
        "run": str(folder.path),
        "space": s.space,
        "method": s.method,
        "objective": s.objective,
        "data": s.data,
        "seed": s.seed,
        "epochs": s.epochs,
        "augmentation": augment_text(engine.loaders["weights"].augment),
        "architecture": engine.space.format(arch),
        "accuracy": accuracy,
        "figures": figures,
        **engine.judge_task.units.kept(),
        "unusable": unusable,
        "entropy": sum(each.values()) / len(each),
        "seconds": sum(row["seconds"] for row in rows),
        "weights": {name: value.tolist() for name, value in weights.items()},
        **limited,
    }
    engine.ranks.of_first(lambda: folder.write_result(result))
    if unusable:
        raise everywhere(
            RunError(
                f"the search ended at {engine.space.format(arch)}, which is no network: {unusable}; "
                f"search without `none`, or longer (the run is kept in {folder.path})"
            )
        )
    return run


class Interrupted(KeyboardInterrupt):
    """The search was asked to stop and has saved its state."""


def _leave_if(stop: bool, folder: RunFolder) -> None:
    if stop:
        raise Interrupted(f"stopped; resume with: nasight search --resume {quote(str(folder.path))}")


@contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM ask for a stop at the next step; a second one stops at once, without saving."""
    stopping = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
