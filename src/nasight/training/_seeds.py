"""The same training with several seeds, at once, and what they have in common."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from torch import Tensor, from_numpy, get_num_threads

from nasight.architecture import Architecture
from nasight.arguments import typed
from nasight.compute import current_ranks, everywhere, is_remote, map_resumable, worker_count
from nasight.data import Dataset, SentData
from nasight.errors import RequestError
from nasight.options import TrainOptions, takes
from nasight.runs import Parcel, RunFolder, parcel, write_json
from nasight.spaces import Space
from nasight.spaces import load as load_space
from nasight.training._loop import Job
from nasight.training._result import EpochRow, Summary, TrainingResult
from nasight.training._settings import label
from nasight.training._train import check_same, checked_seed, finished_result, make_job, run_job

SeedProgress = Callable[[int, EpochRow], None]
POLL_SECONDS = 0.5


@typed
@takes(TrainOptions)
def train_seeds(
    space: Space | str,
    arch: Architecture | str,
    data: Any,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    preset: str = "small",
    out: str | Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    threads: int | None = None,
    slices: int | None = None,
    progress: SeedProgress | None = None,
    device: str = "auto",
    **settings: Unpack[TrainOptions],
) -> Summary:
    """Train an architecture once for each seed: all accuracies, their mean and their spread.

    With `out`, the same call resumes what a kill left unfinished. Ranks that torchrun started train one seed after the
    other, all of them together.

    Parameters
    ----------
    space, arch, data, preset : as in `train`.
    seeds : different numbers, one training each.
    out : seed k is the run OUT/SETTINGS/seed-k, where SETTINGS is the preset, followed by a digest when settings were
        changed; OUT/SETTINGS/summary.json covers every finished seed there. None: nothing is written.
    executor : any `concurrent.futures.Executor`; by default processes of this machine.
    workers : trainings at once; by default as many as there are cores, and one on a device.
    threads : torch's threads of each training; by default the workers divide torch's threads between them.
    slices, device, settings : as in `train`.
    progress : called with the seed and the row of every epoch. With several processes it reads rows from the folder, so
        without `out` it gets those of a seed when the seed is done.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise RequestError(f"seeds must be one or more different numbers, got {list(seeds)}")
    ranks = current_ranks()
    with ranks.together():
        job = make_job(space, arch, data, preset, seeds[0], dict(settings), device)
        for seed in seeds:
            checked_seed(seed)
    if job.device != "cpu" and executor is None:
        workers = workers or 1
    if ranks.size > 1:
        if executor is not None or (workers or 1) > 1:
            raise everywhere(RequestError("ranks train one seed after the other: give no workers and no executor"))
        workers = 1
    # The threads of a training decide its last bits: they follow from the whole request, not from what is left of it.
    threads = threads or max(1, get_num_threads() // worker_count(len(seeds), workers))
    if out is None:
        return Summary.of(_train_all(_Work(job, None, threads, slices), seeds, executor, workers, progress), None)
    asked = settings.get("augment")
    folder = Path(out) / label(job.space, preset, job.settings, asked if isinstance(asked, str) else None)
    ranks.of_first(lambda: _check_folder(folder, job))
    results = _train_all(_Work(job, folder, threads, slices), seeds, executor, workers, progress)
    ranks.of_first(lambda: write_json(folder / "summary.json", _finished_here(folder, job).to_dict()))
    return Summary.of(results, str(folder))


def _train_all(
    work: _Work,
    seeds: Sequence[int],
    executor: Executor | None,
    workers: int | None,
    progress: SeedProgress | None,
) -> list[TrainingResult]:
    folder, tell = work.folder, progress or _nothing
    done = {} if folder is None else current_ranks().of_first(lambda: _results(folder, work.job, seeds))
    for seed, result in done.items():
        for row in result.curve:
            tell(seed, row)
    here = executor is None and (worker_count(len(seeds) - len(done), workers) == 1 or not work.job.own.sendable)
    if here:
        return map_resumable(replace(work, progress=tell), seeds, workers=1, done=done)
    if is_remote(executor):
        return _train_away(replace(work, sent=SentData.of(work.job.data)), seeds, executor, done, tell)
    if folder is None:

        def arrived(seed: int, result: TrainingResult) -> None:
            for row in result.curve:
                tell(seed, row)

        return map_resumable(work, seeds, executor=executor, workers=workers, on_result=arrived)
    with _watching({seed: _place(folder, seed) for seed in seeds if seed not in done}, tell):
        return map_resumable(work, seeds, executor=executor, workers=workers, done=done)


def _train_away(
    work: _Work,
    seeds: Sequence[int],
    executor: Executor | None,
    done: Mapping[int, TrainingResult],
    tell: SeedProgress,
) -> list[TrainingResult]:
    """On machines that see no folder of this one: what they wrote is written here as it arrives."""
    folder, found = work.folder, dict(done)

    def arrived(seed: int, sent: Parcel[TrainingResult]) -> None:
        result = sent.value
        if folder is not None:
            sent.unpack(_place(folder, seed))
            result = replace(result, out=str(_place(folder, seed)))
            RunFolder(_place(folder, seed)).write_result(result.to_dict())
        found[seed] = result
        for row in result.curve:
            tell(seed, row)

    map_resumable(work, [seed for seed in seeds if seed not in done], executor=executor, on_result=arrived)
    return [found[seed] for seed in seeds]


@dataclass
class _Work:
    """The training of a seed, as sent to another process.

    Tensors go as NumPy arrays: as tensors they would go through shared memory, which containers keep small. A space
    from a file goes by its name: the file is no module that another process could import.
    """

    job: Job
    folder: Path | None
    threads: int
    slices: int | None = None
    progress: SeedProgress | None = None
    sent: SentData | None = None
    """For another machine: where it finds the data."""

    def __call__(self, seed: int) -> Any:
        if self.sent is not None:
            job = replace(self.job, seed=seed, data=self.sent.load())
            return parcel(lambda place: run_job(job, place, threads=self.threads, slices=self.slices))
        tell = None if self.progress is None else partial(self.progress, seed)
        out = None if self.folder is None else _place(self.folder, seed)
        return run_job(replace(self.job, seed=seed), out, progress=tell, threads=self.threads, slices=self.slices)

    def __getstate__(self) -> dict[str, Any]:
        data = self.job.data if self.sent is None else None
        values = {} if data is None else {f.name: getattr(data, f.name) for f in fields(data)}
        arrays = {name: value.numpy() for name, value in values.items() if isinstance(value, Tensor)}
        rest = {name: value for name, value in values.items() if name not in arrays}
        job = {f.name: getattr(self.job, f.name) for f in fields(self.job) if f.name != "data"}
        if self.job.file:
            job["space"] = None
        kept = {"folder": self.folder, "threads": self.threads, "slices": self.slices, "sent": self.sent}
        return {"arrays": arrays, "rest": rest, "job": job, **kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        tensors: dict[str, Any] = {name: from_numpy(array) for name, array in state["arrays"].items()}
        job = state["job"]
        space = load_space(job["file"]) if job["file"] else job["space"]
        data: Any = Dataset(**tensors, **state["rest"]) if tensors else None
        self.job = Job(**{**job, "space": space, "data": data})
        self.folder, self.threads, self.progress = state["folder"], state["threads"], None
        self.slices, self.sent = state["slices"], state["sent"]


@contextmanager
def _watching(folders: Mapping[int, Path], tell: SeedProgress) -> Iterator[None]:
    """Tell of the epochs that other processes write into these folders, as they are written."""
    if not folders:
        yield
        return
    told, stop = dict.fromkeys(folders, 0), threading.Event()

    def look() -> None:
        for seed, folder in folders.items():
            # Another process is writing there; what cannot be read now is read the next time.
            with suppress(RequestError):
                rows = RunFolder(folder).history[told[seed] :]
                told[seed] += len(rows)
                for row in rows:
                    tell(seed, EpochRow(**row))

    def watch() -> None:
        while not stop.wait(POLL_SECONDS):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    look()


def _place(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}"


def _results(folder: Path, job: Job, seeds: Sequence[int]) -> dict[int, TrainingResult]:
    """The results of those seeds that have one."""
    found = {seed: finished_result(_place(folder, seed), replace(job, seed=seed).about()) for seed in seeds}
    return {seed: result for seed, result in found.items() if result is not None}


def _seeds_in(folder: Path) -> list[int]:
    names = (path.parent.name.removeprefix("seed-") for path in folder.glob("seed-*/run.json"))
    return sorted(int(name) for name in names if name.isdecimal())


def _check_folder(folder: Path, job: Job) -> None:
    """Seeds beside each other are of one training, or their mean would be of nothing."""
    about = job.about()
    for seed in _seeds_in(folder):
        check_same(RunFolder.open(_place(folder, seed), kind="train"), about, but=("seed",))


def _finished_here(folder: Path, job: Job) -> Summary:
    return Summary.of(list(_results(folder, job, _seeds_in(folder)).values()), str(folder))


def _nothing(seed: int, row: EpochRow) -> None:
    pass
