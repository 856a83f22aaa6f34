"""The epochs of a search: steps, a row of history for each epoch, checkpoints between them, the result."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from shlex import quote
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from nasight.compute import Poll, everywhere
from nasight.data import Units, augment_text
from nasight.errors import RunError
from nasight.runs import RunFolder, writing
from nasight.searching._agreement import check_agreement, picked_by_first
from nasight.searching._engine import Engine
from nasight.searching._engine_state import keep, load_state, return_kept, state_of
from nasight.searching._judging import derive, evaluate, judged
from nasight.searching._progress import Progress
from nasight.searching._run import Run, check_rows
from nasight.searching._tally import Diverged
from nasight.searching._track import tracked
from nasight.spaces import Group

CANDIDATES_WHILE_SEARCHING = 10


def run_search(
    engine: Engine, folder: RunFolder, told: Progress | None, track: str | None, note: str | None = None
) -> Run:
    """The run that is left when all epochs are over; it begins at the checkpoint of the folder, if there is one."""
    ranks = engine.ranks
    progress = tracked(told, track, folder.path, engine.groups) if ranks.first else Progress()
    if note is not None:
        progress.note(note)
    with (
        writing(folder, ranks),
        _stop_requests() as stopping,
        closing(progress),
        _resume_hint(engine, folder),
    ):
        state, poll = ranks.of_first(folder.load), Poll(ranks)
        first_epoch, first_step, seconds = 0, 0, 0.0
        if state is not None:
            with ranks.together():
                load_state(engine, state["engine"])
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
                    keep(engine)
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
def _resume_hint(engine: Engine, folder: RunFolder) -> Iterator[None]:
    """The error of a search that diverges says what state is left, and the command that resumes from there."""
    try:
        yield
    except Diverged as error:
        lower = f"nasight search --resume {quote(str(folder.path))} --lr {engine.settings.lr / 10:g}"
        there = (folder.path / "state.json").exists()
        kept = "the checkpoint before it is kept" if there else "there was no checkpoint yet"
        text = f"{error} with lr {engine.settings.lr:g}; {kept}; resume with a lower learning rate: {lower}"
        raise everywhere(Diverged(text)) from error


def _save(
    engine: Engine, folder: RunFolder, epoch: int, step: int, seconds: float, moving: dict[str, Any] | None = None
) -> None:
    """Keep a checkpoint: of the state that was read already, or of the present one."""
    ranks, moving = engine.ranks, state_of(engine) if moving is None else moving
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
    arch = derive(engine, epoch, candidates=min(CANDIDATES_WHILE_SEARCHING, engine.settings.candidates))
    unusable = engine.space.usable(arch)
    relaxed, discrete = evaluate(engine, None, epoch), None if unusable else evaluate(engine, arch, epoch)
    state = state_of(engine, relaxed, *([discrete] if discrete else []))
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
    return_kept(engine)
    arch = derive(engine, s.epochs, candidates=s.candidates)
    limited: dict[str, Any] = {}
    if s.max_params is not None or s.max_latency is not None:
        # Clocks differ between ranks: the first one measures, and picks for all.
        arch, limited["constraint"] = picked_by_first(engine, arch)
    unusable = engine.space.usable(arch)
    weights = engine.weights()
    each = entropies(weights, engine.groups)
    accuracy, figures = (None, {}) if unusable else judged(engine, arch, s.epochs)
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
