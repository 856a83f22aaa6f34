"""Train one architecture with one seed, in a run folder that survives a kill."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import Any, Unpack

import torch
from torch import nn

from nasight.architecture import Architecture
from nasight.arguments import typed
from nasight.compute import (
    Poll,
    Ranks,
    Slices,
    check_precision,
    choose_device,
    current_ranks,
    everywhere,
    moved_note,
)
from nasight.data import input_record, load_at, tell_augmentation, with_label
from nasight.errors import RequestError
from nasight.options import TrainOptions, takes
from nasight.own import check_sources, own_parts
from nasight.reproducible import torch_threads
from nasight.runs import (
    RunFolder,
    check_weights,
    load_weights,
    named_again,
    same_data,
    versions,
    write_json,
    writing,
)
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.training._loop import Diverged, Job, Trainer
from nasight.training._result import EpochRow, TrainingResult
from nasight.training._settings import kept_settings, settings_for

Progress = Callable[[EpochRow], None]
CHECKPOINT_SECONDS = 60.0
INPUTS = "inputs.json"
"""In the folder of a finished training: what turns new examples into its inputs."""


@typed
@takes(TrainOptions)
def train(
    space: Space | str,
    arch: Architecture | str,
    data: Any,
    *,
    preset: str = "small",
    seed: int = 0,
    out: str | Path | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
    slices: int | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    device: str = "auto",
    **settings: Unpack[TrainOptions],
) -> TrainingResult:
    """Train an architecture from scratch.

    With `out`, a killed training is resumed when the same call is made again, with the same functions of your own if it
    had any, to the same weights bit for bit; a finished one is read. A checkpoint is written after every epoch. Every
    random number is drawn on the CPU, so devices agree up to rounding.

    Parameters
    ----------
    space : a `Space` or its name.
    arch : an architecture of it, or its text.
    data : a name, a file, a folder, arrays `(x, y)` or a `Dataset`; see `nasight.data.load`.
    preset : "tiny", "small", "paper" or another that the space declares: size, epochs and learning rate together.
    seed : of the initial weights and of everything that is drawn.
    out : the folder of the training; None: nothing is written.
    progress : called with the row of every epoch, those before a resume too.
    threads : torch's threads; by default as many as torch has now. A resumed training keeps the first number, since the
        order of a sum decides its last bits.
    slices : parts in which every batch passes through the network, one after the other in one process (less memory), or
        shared by the ranks that torchrun started (by default one each). Batch norm sees a slice. A resumed training
        keeps the first number.
    checkpoint_seconds : in long epochs a checkpoint is written this often too.
    device : "auto", "cpu", "cuda", "cuda:1" or "mps"; a training may be resumed on another one (`moved` says so).
    settings : any setting of `TrainOptions`, such as `epochs=20`; they change the preset. `loss`, `metric`, `optimizer`
        and `augment` may be functions of your own (see `nasight.OwnParts`); the folder keeps their names.

    Examples
    --------
    >>> result = train("nasbench201", "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|none~2|",
    ...                "digits", preset="tiny", epochs=1)
    >>> result.epochs, result.judged_by
    (1, 'the test part')
    """
    job = make_job(space, arch, data, preset, seed, dict(settings), device)
    return run_job(job, out, progress=progress, threads=threads, slices=slices, checkpoint_seconds=checkpoint_seconds)


def make_job(
    space: Space | str,
    arch: Architecture | str,
    data: Any,
    preset: str,
    seed: int,
    settings: dict[str, Any],
    device: str = "auto",
) -> Job:
    """The training that these words mean."""
    own = own_parts(settings)
    data = with_label(data, settings.pop("label", None), settings.pop("task", None))
    file = space if isinstance(space, str) and ".py:" in space else None
    space = load_space(space) if isinstance(space, str) else space
    arch = space.parse(arch) if isinstance(arch, str) else arch
    dataset = load_at(space.photo_pixels.get(preset), data, augment=settings.get("augment"), training=True)
    if isinstance(settings.get("augment"), str):
        settings = {**settings, "augment": True}
    if dataset.augmentation is None and preset_cutout(space, preset, settings):
        settings = {**settings, "cutout": 0}  # images that nobody declared to bear random changes get none unasked
    resolved, chosen = settings_for(space, preset, **settings), choose_device(device)
    check_precision(resolved.precision, chosen)
    tell_augmentation(dataset, applied=resolved.augment, cutout=resolved.cutout)
    return Job(space, arch, dataset, resolved, checked_seed(seed), file, own, str(chosen))


def preset_cutout(space: Space, preset: str, settings: Mapping[str, Any]) -> bool:
    """Whether a preset cuts holes into images without the caller having said so."""
    return settings.get("cutout") is None and settings_for(space, preset, **settings).cutout > 0


def checked_seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise RequestError(f"a seed must be a whole number of at least 0, got {seed!r}")
    return seed


def run_job(
    job: Job,
    out: str | Path | None,
    *,
    progress: Progress | None = None,
    threads: int | None = None,
    slices: int | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    judged_once: bool = False,
    ended: Callable[[Trainer], None] | None = None,
) -> TrainingResult:
    """Train what a job describes; `train` with its words made into one.

    With `judged_once` the network meets the rows that judge it when its training has ended, and not before. Checkpoints
    are then written every `checkpoint_seconds` and at the end, not after every epoch. `ended` gets the trainer of what
    has been trained in this call.
    """
    ended = ended or _nothing
    ranks = current_ranks()
    progress = progress if ranks.first else None
    threads, slices = threads or torch.get_num_threads(), slices or ranks.size
    same_data(ranks, job.data)
    if out is None:
        with torch_threads(threads):
            trainer = _trainer(job, slices, ranks)
            with _resume_hint(job, None):
                while not trainer.done:
                    _tell(progress, trainer.run_epoch(lambda: None, judge=not judged_once))
            ended(trainer)
            return trainer.result(None)
    folder, about = Path(out), job.about()
    finished = ranks.of_first(lambda: finished_result(folder, about))
    if finished is None:
        beside = {
            "threads": threads,
            "slices": slices,
            "device": job.device,
            "space_options": job.space.options,
            **({"judged_once": True} if judged_once else {}),
        }
        run = RunFolder(folder)

        def begin() -> tuple[int, int, bool]:
            nonlocal run
            run = _begin(folder, about, beside, job.file)
            begun = run.about
            return int(begun["threads"]), int(begun.get("slices", 1)), bool(begun.get("judged_once", False))

        threads, slices, judged_once = ranks.of_first(begin)
        with writing(run, ranks), torch_threads(threads):
            finished = ranks.of_first(lambda: finished_result(folder, about))
            if finished is None:
                with _resume_hint(job, run):
                    trainer = _trainer(job, slices, ranks)
                    result = _train_in(run, trainer, progress, checkpoint_seconds, judged_once=judged_once)
                ended(trainer)
                return result
    for row in finished.curve:
        _tell(progress, row)
    return finished


@contextmanager
def _resume_hint(job: Job, run: RunFolder | None) -> Iterator[None]:
    """The error of a training that diverges says what state is left, and the command that resumes from there."""
    try:
        yield
    except Diverged as error:
        advice = "train with a smaller lr"
        if run is not None and (run.path / "state.json").exists():
            lower = f"nasight train --resume {quote(str(run.path))} --lr {job.settings.lr / 10:g}"
            advice = f"the checkpoint before it is kept; resume with a lower learning rate: {lower}"
        raise everywhere(Diverged(f"{error}; {advice}")) from error


def _trainer(job: Job, slices: int, ranks: Ranks) -> Trainer:
    with ranks.together():
        return Trainer(job, Slices(slices, ranks))


def finished_result(folder: Path, about: dict[str, Any]) -> TrainingResult | None:
    """The result in this folder, if it has one; a folder of another training is refused."""
    if not (folder / "run.json").is_file():
        return None
    run = RunFolder.open(folder, kind="train")
    if run.about.get("own", {}) != about.get("own", {}):
        then, now = (" and ".join(f"{k}={v}" for k, v in each.get("own", {}).items()) for each in (run.about, about))
        raise RequestError(
            f"{folder} holds a training with {then or 'no functions of your own'}, not with {now or 'none'}: give them "
            "again, or choose another --out"
        )
    check_same(run, about)
    result = run.result
    if result is None:
        return None
    try:
        return replace(TrainingResult.from_dict(result), out=str(folder))
    except (TypeError, KeyError) as error:
        raise RequestError(f"{folder}/result.json is damaged: {error}") from error


def check_same(run: RunFolder, about: dict[str, Any], *, but: tuple[str, ...] = ()) -> None:
    there = run.about
    check_sources(there, about.get("own_sources", {}), run.path)
    for key, value in about.items():
        if key in (*but, "own_sources") or there.get(key) == value:
            continue
        # Data is too much to print, and its name may be the same.
        what = "on other data" if key == "data" else f"with {key} {there.get(key)!r}, not {value!r}"
        raise RequestError(f"{run.path} holds a training {what}; choose another --out")


def load_trained(folder: str | Path, *, space: Space | None = None) -> nn.Module:
    """The network of a finished training, in evaluation mode; a space of your own, or with options, is given again."""
    run = RunFolder.open(folder, kind="train")
    state = run.load()
    if run.result is None or state is None:
        raise RequestError(f"the training in {run.path} is not finished; train it again to go on")
    about = run.about
    if space is None:
        space = load_space(named_again(run.path, about, str(about["space"]), None), **about.get("space_options", {}))
    settings, arch = kept_settings(run), space.parse(about["architecture"])
    size = {**space.size(**settings.size), **({"auxiliary": True} if settings.auxiliary else {})}
    inputs, classes = tuple(about["data"]["inputs"]), len(about["data"]["classes"])
    what = f"the checkpoint in {run.path}"
    bare = space.bare_network(arch, inputs, classes, **size)
    if bare is not None:
        # A run.json that was changed must not decide how much memory is taken: the weights that are there do.
        check_weights(bare, state["network"], what)
    network = space.network(arch, inputs, classes, **size)
    load_weights(network, state["network"], what)
    return network.eval()


def _train_in(
    run: RunFolder, trainer: Trainer, progress: Progress | None, checkpoint_seconds: float, *, judged_once: bool
) -> TrainingResult:
    ranks = trainer.ranks
    state, poll = ranks.of_first(run.load), Poll(ranks)
    if state is not None:
        with ranks.together():
            trainer.restore(state)
        # The checkpoint has the rows too, so whatever became of the file is mended.
        ranks.of_first(lambda: run.write_history([asdict(row) for row in trainer.rows]))
    else:
        ranks.of_first(lambda: run.resume_history(0))
    for row in trainer.rows:
        _tell(progress, row)
    saved = time.monotonic()

    def save() -> None:
        nonlocal saved
        # Here all ranks come to see a loss that is not finite; below the first one is by itself.
        trainer.settle()
        state, mark = trainer.state(), f"{trainer.epoch:04d}-{trainer.step:06d}"
        trainer.check_finite(state["network"])
        ranks.of_first(lambda: run.save(state, mark=mark))
        saved = time.monotonic()

    def after_step() -> None:
        _, due = poll(stop=False, due=time.monotonic() - saved >= checkpoint_seconds)
        if due:
            save()

    while not trainer.done:
        row = trainer.run_epoch(after_step, judge=not judged_once)
        with ranks.together():
            if ranks.first:
                run.append_history(asdict(row))
        if trainer.done or not judged_once:
            save()
        _tell(progress, row)
    result = trainer.result(str(run.path))
    ranks.of_first(lambda: write_json(run.path / INPUTS, input_record(trainer.data)))
    ranks.of_first(lambda: run.write_result(result.to_dict()))
    return result


def moved(folder: str | Path, device: str) -> str | None:
    """What to tell a user whose unfinished training in this folder is resumed on another kind of device; else None."""
    if not (Path(folder) / "run.json").is_file():
        return None
    run = RunFolder.open(folder, kind="train")
    return None if run.result is not None else moved_note(run.about.get("device", "cpu"), str(choose_device(device)))


def _begin(folder: Path, about: dict[str, Any], beside: dict[str, Any], file: str | None) -> RunFolder:
    """The run to write: a new one, or the unfinished one that is there."""
    if (folder / "run.json").is_file():
        run = RunFolder.open(folder, kind="train")
        then, now = run.about.get("versions"), versions()
        if then != now:
            raise RequestError(
                f"{folder} was begun with {_differences(then, now)}; the rest of it would not be the same training: "
                "delete it or choose another --out"
            )
        return run
    return RunFolder.create(folder, kind="train", about={**about, **beside}, code=[file])


def _differences(then: object, now: dict[str, str]) -> str:
    known = then if isinstance(then, dict) else {}
    return " and ".join(
        f"{name} {known.get(name)}, not {value}" for name, value in now.items() if known.get(name) != value
    )


def _nothing(trainer: Trainer) -> None:
    """Nobody asked for it."""


def _tell(progress: Progress | None, row: EpochRow) -> None:
    if progress is not None:
        progress(row)
